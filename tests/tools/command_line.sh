#!/bin/sh
# command_line.sh SAMEPAGE-CC: what people write by hand. -D and -I take their value in the same word or in the next, blanks included.
set -eu

cc=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/a folder"
echo '#define FROM_FOLDER 7' >"$work/a folder/given.h"
cat >"$work/k.cl" <<'EOF'
#include "given.h"
#if FROM_FOLDER + NUMBER + SUM != 15
#error wrong values
#endif
kernel void k(global int *p) { p[0] = sizeof(TEXT); }
EOF

# takes OPTION...: the source compiles with them.
takes() {
  rm -f "$work/k.bc"
  "$cc" --compile "$work/k.cl" -o "$work/k.bc" "$@" || { echo "not taken: $*"; exit 1; }
  [ -s "$work/k.bc" ] || { echo "nothing made: $*"; exit 1; }
}
takes "-I$work/a folder" -DNUMBER=3 '-DSUM=(2 + 3)' '-DTEXT="a b"'
takes -I "$work/a folder" -D NUMBER=3 -D 'SUM=(2 + 3)' -D 'TEXT="a b"'

# refused WORDS ARGUMENT...: the arguments are wrong, and WORDS say how.
refused() {
  words=$1 status=0
  shift
  "$cc" "$@" >"$work/said" 2>&1 || status=$?
  if [ $status -ne 2 ] || ! grep -q -- "$words" "$work/said"; then
    echo "status $status: $*: $(cat "$work/said")"
    exit 1
  fi
}
refused 'a value is missing after -D' --compile "$work/k.cl" -o "$work/k.bc" -D
refused 'a value is missing after -I' --compile "$work/k.cl" -o "$work/k.bc" -I
refused 'one input is enough, what to do with NUMBER=3' --compile "$work/k.cl" NUMBER=3 -o "$work/k.bc"
refused 'no input is given' --compile -o "$work/k.bc" -D NUMBER=3
