#!/usr/bin/env bash
# bundle.sh BUILD OUTPUT: packs what Samepage needs at run time into one archive, for machines where nothing can be
# installed. `./run bundle` calls it; docs/bundle.md is its manual.
#
# XZ_LEVEL=-1 packs in seconds, a quarter larger.
#
# The archive unpacks to samepage-VERSION-ARCHITECTURE/:
#   env                        prints the lines that make it known to a shell
#   bin/samepage
#   lib/samepage/              what `cmake --install` puts there
#   lib/samepage/toolchain/    Clang's headers for OpenCL, and the libraries of all programs but glibc's
#   lib/loader/libOpenCL.so.1  a loader that reads OCL_ICD_VENDORS
set -euo pipefail

build=$1 output=$2

die() { printf 'bundle: %s\n' "$*" >&2; exit 1; }

entry() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

clang=$(entry SP_CLANG) loader=$(readlink -f "$(entry OPENCL_LOADER)")
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:[A-Z]*=//p' "$build/CMakeCache.txt")
[ -x "$clang" ] || die "the build tree $build does not say where clang is: configure it again"
"$build/lib/samepage-cc" --version | grep -q '^Clang and lld' ||
  die "samepage-cc in $build needs the programs clang and lld: install libclang-19-dev and liblld-19-dev, and configure with -DSAMEPAGE_STATIC_COMPILER=ON"
name=samepage-$version-$(uname -m)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
top=$work/$name

DESTDIR="" cmake --install "$build" --prefix "$top" >/dev/null
rm -rf "$top/etc" # a vendor file names absolute paths: `env` makes one where it stands
parts=$(dirname "$(find "$top" -name libsamepage.so)")
[ "$parts" = "$top/lib/samepage" ] || { mkdir -p "$top/lib" && mv "$parts" "$top/lib/samepage"; parts=$top/lib/samepage; }
find "$top/lib" -mindepth 1 -type d -empty -delete

# Debug information is of use where the sources are.
strip --strip-unneeded "$parts/libsamepage.so" "$parts/samepage-cc" "$parts/samepage-device" "$top/bin/samepage"

toolchain=$parts/toolchain
resources=$("$clang" -print-resource-dir)
mkdir -p "$toolchain/lib/clang" "$top/lib/loader"
# Of clang's own headers only OpenCL's are ever included.
mkdir -p "$toolchain/lib/clang/$(basename "$resources")/include"
cp "$resources"/include/opencl-c*.h "$toolchain/lib/clang/$(basename "$resources")/include/"
cp "$loader" "$top/lib/loader/libOpenCL.so.1"

# Every library but glibc's own, which comes with each system and only fits itself.
for program in "$parts"/libsamepage.so "$parts"/samepage-cc "$parts"/samepage-device; do
  ldd "$program"
done | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -Ev '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' |
  while read -r library; do
    cp "$(readlink -f "$library")" "$toolchain/lib/$(basename "$library")"
  done

cp "$(dirname "$0")/bundle-env.sh" "$top/env"
chmod +x "$top/env"

tar -C "$work" --owner=0 --group=0 -cf - "$name" | xz "${XZ_LEVEL:--9}" -T0 >"$output.part"
mv "$output.part" "$output"
