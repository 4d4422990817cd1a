#!/bin/sh
# bundle_env.sh TOOLS-FOLDER: what the bundle's `env` prints, and whose folders it trusts.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0

check() { # what; then a command that is to succeed
    what=$1
    shift
    "$@" || { printf 'not so: %s\n' "$what" >&2; failures=$((failures + 1)); }
}

top="$work/it's here"
mkdir -p "$top/lib/samepage" "$work/tmp"
cp "$1/bundle-env.sh" "$top/env"
chmod +x "$top/env"
uid=$(id -u)
fallback=$work/tmp/samepage-vendors-$uid

env_lines() { TMPDIR=$work/tmp "$top/env" 2>"$work/said"; }
vendors_of() { (eval "$1" && printf '%s' "$OCL_ICD_VENDORS"); }
names_the_library() { [ "$(cat "$1/samepage.icd")" = "$top/lib/samepage/libsamepage.so" ]; }
refuses() { lines=$(env_lines); [ $? -ne 0 ] && [ -z "$lines" ] && grep -q "$1" "$work/said"; }
mode_is() { [ "$(stat -c %a "$1")" = "$2" ]; }

lines=$(env_lines)
check "the vendor file is beside the bundle" [ "$(vendors_of "$lines")" = "$top/vendors" ]
check "it names the library" names_the_library "$top/vendors"
check "nothing is in the temporary folder" [ ! -e "$fallback" ]

# A bundle that cannot be written, though root could.
rm -r "$top/vendors"
: >"$top/vendors"
lines=$(env_lines)
check "the vendor file is in the temporary folder" [ "$(vendors_of "$lines")" = "$fallback" ]
check "it names the library there" names_the_library "$fallback"
check "the folder is the user's alone" mode_is "$fallback" 700

chmod 777 "$fallback"
rm "$fallback/samepage.icd"
: >"$work/other"
ln -s "$work/other" "$fallback/samepage.icd"
lines=$(env_lines)
check "an own folder is closed to others" mode_is "$fallback" 700
check "a link in it is replaced" [ ! -L "$fallback/samepage.icd" ]
check "and what it led to is not written" [ ! -s "$work/other" ]

rm -r "$fallback"
mkdir "$work/elsewhere"
ln -s "$work/elsewhere" "$fallback"
check "a link is refused" refuses "is not a folder of yours: set TMPDIR"
check "and nothing is written behind it" [ ! -e "$work/elsewhere/samepage.icd" ]

rm "$fallback"
mkdir -m 777 "$fallback"
if chown 12345 "$fallback" 2>/dev/null; then
    check "another user's folder is refused" refuses "is not a folder of yours: set TMPDIR"
fi
[ $failures -eq 0 ]
