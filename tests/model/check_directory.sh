#!/bin/sh
# check_directory.sh MODEL: searches every state of directory.pml, and sees that it fails where a
# rule of the protocol is broken. Works in the current folder; 77 where spin or gcc is missing.
set -u
model=$1

for tool in spin gcc; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: the model was not checked, because $tool is missing"
        exit 77
    fi
done

work=$(mktemp -d "$PWD/directory.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cp "$model" "$work/model.pml" && cd "$work" || exit 1 # pan writes its trail next to the model

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

for regions in 1 2; do
    search 2 "-DREGIONS=$regions"
    if ! grep -q 'errors: 0$' said || grep -q -e "not completed" -e "too small" said; then
        cat said
        [ -f model.pml.trail ] && spin "-DREGIONS=$regions" -t -p model.pml | tail -n 60
        exit 1
    fi
    echo "$regions region(s): errors: 0, $(grep 'states, stored' said | tr -s ' ')"
done

broken=0
while read -r regions rule; do
    # It ends soon: compiling is what would take time.
    search 0 "-DREGIONS=$regions" "-D$rule"
    if grep -q 'errors: 1$' said; then
        echo "$rule: found by $(grep -o -m 1 -e 'assertion violated' -e 'invalid end state' said)"
    else
        echo "$rule: NOT found"
        broken=1
    fi
done <<RULES
1 NO_INVALIDATION
1 SOURCE_ON_ITS_WAY
1 ONE_STEP
1 DROP_FIRST
1 EVICT_IN_USE
2 LOCKS_AS_THEY_COME
RULES
exit $broken
