#!/bin/bash
# Make Pythons for machines without the internet: uv downloads 3.12 and 3.13 from a file:// mirror of pyenv's
# trees, 3.14 and 3.15 are Debian's next ones with a libc of their own, on PATH.
# usage: pythons.sh BASE PATCHELF
set -euo pipefail
base=$1 patchelf=$2 mirror=$1/mirror tag=20991231 farm=/usr/local/lib/pysbx-python
mkdir -p "$mirror/$tag"

if [ ! -f "$mirror/downloads.json" ]; then
    json=$mirror/downloads.json.new separator=""
    echo '{' >"$json"
    for tree in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[23].*; do
        [ -x "$tree/bin/python3" ] || continue
        v=$(basename "$tree") mm=$(basename "$tree" | cut -d. -f1,2) work=$(mktemp -d)
        mkdir "$work/python"
        tar -C "$tree" --exclude=__pycache__ --exclude="lib/python$mm/test" --exclude="lib/python$mm/idlelib" --exclude='*.a' \
            --exclude=share --exclude="lib/python$mm/site-packages/*" -cf - . | tar -C "$work/python" -xf -
        "$patchelf" --set-rpath '$ORIGIN/../lib' "$work/python/bin/python$mm" # pyenv's is absolute
        file="cpython-$v+$tag-x86_64-unknown-linux-gnu-install_only_stripped.tar.gz"
        tar -C "$work" --owner=0 --group=0 -czf "$mirror/$tag/$file" python
        rm -rf "$work"
        cat >>"$json" <<JSON
$separator "cpython-$v-linux-x86_64-gnu": {"name": "cpython", "arch": {"family": "x86_64", "variant": null}, "os": "linux", "libc": "gnu",
  "major": 3, "minor": ${mm#3.}, "patch": ${v##*.}, "prerelease": "", "variant": null, "build": "$tag",
  "sha256": "$(sha256sum "$mirror/$tag/$file" | cut -d' ' -f1)", "url": "file://$mirror/$tag/$file"}
JSON
        separator=","
    done
    echo '}' >>"$json"
    mv "$json" "$mirror/downloads.json"
fi

[ -x "$farm/3.15/bin/python3.15" ] && exit 0
suite=forky state=$(mktemp -d) debs=$base/debs
source=$(grep -hm1 -oE '^URIs: .*' /etc/apt/sources.list.d/*.sources 2>/dev/null | cut -d' ' -f2 || true)
[ -n "$source" ] || source=$(grep -hm1 -oE '^deb +(\[[^]]*\] +)?[^ ]+' /etc/apt/sources.list | awk '{print $NF}')
mkdir -p "$state/lists/partial" "$debs"
echo "deb [trusted=yes] $source $suite main" >"$state/sources.list"
apt() {
    apt-get -q -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::State::lists="$state/lists" -o APT::Sandbox::User=root "$@" >/dev/null
}
packages="libc6 libssl3t64 libexpat1 zlib1g libbz2-1.0 libdb5.3t64 libffi8 liblzma5 libncursesw6 libreadline8t64 libsqlite3-0
    libtinfo6 libuuid1 libzstd1 libgcc-s1 libstdc++6"
for v in 3.14 3.15; do packages="$packages python$v python$v-minimal libpython$v-minimal libpython$v-stdlib"; done
# shellcheck disable=SC2086
apt update && (cd "$debs" && apt download $packages) || { echo "no newer Pythons: $source has no $suite"; exit 0; }
rm -rf "$state"

libraries=$farm/rt/lib
mkdir -p "$libraries"
for v in 3.14 3.15; do
    work=$(mktemp -d) prefix=$farm/$v
    for deb in "$debs"/*.deb; do
        case $(basename "$deb") in
        python$v* | libpython$v*) dpkg -x "$deb" "$work/py" ;;
        python3* | libpython3*) ;;
        *) dpkg -x "$deb" "$work/rt" ;;
        esac
    done
    find "$work/rt" \( -name '*.so' -o -name '*.so.*' \) -path '*x86_64-linux-gnu/*' ! -path '*/gconv/*' ! -path '*/audit/*' \
        ! -path '*/ossl-modules/*' ! -path '*/engines-3/*' -exec cp -a {} "$libraries/" \;
    cp -L "$libraries/ld-linux-x86-64.so.2" "$libraries/.ld" && mv -f "$libraries/.ld" "$libraries/ld-linux-x86-64.so.2"
    rm -rf "$prefix" && mkdir -p "$prefix/bin" "$prefix/lib"
    cp -a "$work/py/usr/bin/python$v" "$prefix/bin/"
    cp -a "$work/py/usr/lib/python$v" "$prefix/lib/"
    rm -rf "$prefix/lib/python$v/EXTERNALLY-MANAGED" "$prefix/lib/python$v/test" "$prefix/lib/python$v"/config-*
    find "$prefix/lib/python$v" -type l -lname '/etc/*' -delete
    "$patchelf" --set-interpreter "$libraries/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$libraries" "$prefix/bin/python$v"
    ln -sf "$prefix/bin/python$v" "/usr/local/bin/python$v"
    rm -rf "$work"
    "$prefix/bin/python$v" -c 'import sys, ssl, sqlite3; print(sys.version)'
done
