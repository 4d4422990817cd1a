#!/bin/sh
# Prints what makes this copy of Samepage known to a shell: eval "$(path/to/env)"
#
# A vendor file names the library by its absolute path, so it is written where this copy stands; and where that cannot be
# written, into a folder of the user's own. Whoever can write to that folder decides what programs load, so in /tmp, where
# another user may have made it first, it is used only if it is this user's and nobody else's.
top=$(cd "$(dirname "$0")" && pwd) || exit 1
library=$top/lib/samepage/libsamepage.so

fail() {
    printf 'samepage: %s\n' "$*" >&2
    exit 1
}

has_vendor_file() { [ "$(cat "$1/samepage.icd" 2>/dev/null)" = "$library" ]; }

write_vendor_file() {
    has_vendor_file "$1" && return
    mkdir -p "$1" 2>/dev/null && printf '%s\n' "$library" 2>/dev/null >"$1/samepage.icd" && has_vendor_file "$1"
}

# -O: the user owns it. A symbolic link may be replaced by who made it.
is_own() { [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ]; }

vendors=$top/vendors
if ! write_vendor_file "$vendors"; then
    vendors=${TMPDIR:-/tmp}/samepage-vendors-$(id -u)
    mkdir -m 700 "$vendors" 2>/dev/null
    is_own "$vendors" && chmod 700 "$vendors" ||
        fail "$top/vendors cannot be written, and $vendors is not a folder of yours: set TMPDIR to one that only you can write to"
    rm -f "$vendors/samepage.icd" # which may be a link, from a time when others could write there
    write_vendor_file "$vendors" || fail "$vendors/samepage.icd cannot be written"
fi

quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }
printf 'export OCL_ICD_VENDORS=%s\n' "$(quoted "$vendors")"
printf 'unset OCL_ICD_FILENAMES\n'
printf 'export PATH=%s:"$PATH"\n' "$(quoted "$top/bin")"
# Some loaders (the one of NVIDIA's toolkit, for instance) read no vendor folder but their own.
printf 'export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\n' "$(quoted "$top/lib/loader")"
