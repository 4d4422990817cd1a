#!/bin/sh
# linked_tools.sh SAMEPAGE-CC CLANG LLD WITHOUT_CLOSE_RANGE SOURCE...: what samepage-cc makes of each source with the Clang and lld that are part of it
# is what it makes with their programs: bitcode, objects, PTX, and what is said of errors.
set -eu

cc=$1 clang=$2 lld=$3 without_close_range=$4
shift 4
unset SAMEPAGE_CLANG SAMEPAGE_LLD
"$cc" --version | grep '^Clang and lld' || { echo "$cc has no Clang and lld in it"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# both WHAT OUTPUT ARGUMENT...: runs samepage-cc both ways; compares OUTPUT, words and exit status.
both() {
  what=$1 output=$2
  shift 2
  for way in linked programs; do
    rm -f "$output"
    status=0
    if [ $way = linked ]; then
      "$cc" "$@" >"$work/said.$way" 2>&1 || status=$?
    else
      SAMEPAGE_CLANG=$clang SAMEPAGE_LLD=$lld "$cc" "$@" >"$work/said.$way" 2>&1 || status=$?
    fi
    echo "exit status $status" >>"$work/said.$way"
    if [ -e "$output" ]; then cp "$output" "$work/made.$way"; else : >"$work/made.$way"; fi
  done
  if ! cmp -s "$work/made.linked" "$work/made.programs"; then
    echo "$what: not the same output"
    failed=1
  fi
  if ! diff "$work/said.linked" "$work/said.programs"; then
    echo "$what: not the same words"
    failed=1
  fi
}

for source in "$@"; do
  name=$(basename "$source")
  both "$name to bitcode" "$work/$name.bc" --compile "$source" -o "$work/$name.bc" -cl-std=CL3.0
  [ -s "$work/made.linked" ] || { echo "$name: nothing was made: $(cat "$work/said.linked")"; exit 1; }
  cp "$work/made.linked" "$work/$name.bc"
  "$cc" --link "$work/$name.bc" -o "$work/$name.ir" >"$work/kernels"
  kernel=$(head -n 1 "$work/kernels" | sed "s/^kernel *//; s/[^a-zA-Z0-9_].*//")
  both "$name to code" "$work/$name.so" --code "$work/$name.ir" -o "$work/$name.so" --kernel "$kernel"
  [ -s "$work/made.linked" ] || { echo "$name: no code: $(cat "$work/said.linked")"; exit 1; }
  both "$name to PTX" "$work/$name.ptx" --code "$work/$name.ir" -o "$work/$name.ptx" --kernel "$kernel" --target nvptx64:sm_90
done

# wrong NAME TEXT OPTION...: an error of the source, or of the options.
wrong() {
  printf '%s\n' "$2" >"$work/$1.cl"
  name=$1
  shift 2
  both "$name" "$work/$name.bc" --compile "$work/$name.cl" -o "$work/$name.bc" "$@"
}
wrong syntax 'kernel void k(global int *p) { p[0] = q; int *;'
wrong warnings 'kernel void k(global int *p) { int unused = 1; p[0] = 1 << 40; }' -Werror
wrong missing_header '#include "there_is_none.h"'
wrong said '#error "one"
#warning two'
wrong pedantic 'kernel void k(global int *p) { p[0] = ({ 1; }); }' -w
wrong version 'kernel void k(global int *p) { atomic_int a; }' -cl-std=CL1.2
wrong option 'kernel void k(void) {}' -cl-std=CL9.9
wrong constraint 'kernel void k(global int *p) { asm("nothing" : "=q"(p[0])); }'
wrong nesting "kernel void k(global int *p) { p[0] = $(head -c 3000 /dev/zero | tr '\0' '(')1; }"
wrong deep "kernel void k(global int *p) { p[0] = $(head -c 20000 /dev/zero | tr '\0' '-')1; }"
wrong empty ''

# nested DEPTH: brackets in brackets.
nested() {
  printf 'kernel void k(global int *p) { p[0] = '
  i=0
  while [ $i -lt "$1" ]; do printf '(p[1] + '; i=$((i + 1)); done
  printf 1
  while [ $i -gt 0 ]; do printf ')'; i=$((i - 1)); done
  printf '; }\n'
}
nested 250 >"$work/nested.cl"
(ulimit -Ss 1024; "$cc" --compile "$work/nested.cl" -o "$work/nested.bc") || { echo "a low limit of the stack: not built"; failed=1; }

status=0
timeout 60 "$without_close_range" "$cc" --compile "$work/nested.cl" -o "$work/nested.bc" || status=$?
case $status in
  0) ;;
  77) echo "no filter of system calls can be set: not tried without close_range" ;;
  *) echo "without close_range: status $status"; failed=1 ;;
esac

[ $failed = 0 ] && echo "the same for $# sources and 11 errors"
exit $failed
