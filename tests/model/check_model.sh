#!/bin/sh
# check_model.sh MODEL: searches every state of a model in Promela, and sees that it fails where a rule of the
# protocol is broken. The model's first comment says which: lines " * search: DEFINITION..." and
# " * broken: DEFINITION... words". Works in the current folder; 77 where spin or gcc is missing.
set -u
model=$1

for tool in spin gcc; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: the model was not checked, because $tool is missing"
        exit 77
    fi
done

work=$(mktemp -d "$PWD/model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cp "$model" "$work/model.pml" && cd "$work" || exit 1 # pan writes its trail next to the model

# The definitions of each line of a kind: the words that begin with -D.
lines() {
    sed -n "s/^ \* $1://p" model.pml | sed 's/ [^ -].*//'
}

# search LEVEL DEFINITION...: with gcc's -O LEVEL; leaves what pan says in the file `said`.
search() {
    level=$1
    shift
    if ! { spin "$@" -a model.pml &&
        gcc "-O$level" -w -DSAFETY -DCOLLAPSE -DMEMLIM=4000 -o pan pan.c; } >built 2>&1; then
        cat built
        exit 1
    fi
    ./pan -m2000000 -w24 >said 2>&1
}

lines search >searches
lines broken >rules
if [ ! -s searches ] || [ ! -s rules ]; then
    echo "$model names no search or no rule to break"
    exit 1
fi

while read -r definitions; do
    # shellcheck disable=SC2086
    search 2 $definitions
    if ! grep -q 'errors: 0$' said || grep -q -e "not completed" -e "too small" said; then
        cat said
        # shellcheck disable=SC2086
        [ -f model.pml.trail ] && spin $definitions -t -p model.pml | tail -n 60
        exit 1
    fi
    echo "$definitions errors: 0, $(grep 'states, stored' said | tr -s ' ')"
done <searches

is_missed=0
while read -r definitions; do
    # It ends soon: compiling is what would take time.
    # shellcheck disable=SC2086
    search 0 $definitions
    if grep -q 'errors: 1$' said; then
        echo "$definitions: found by $(grep -o -m 1 -e 'assertion violated' -e 'invalid end state' said)"
    else
        echo "$definitions: NOT found"
        is_missed=1
    fi
done <rules
exit $is_missed
