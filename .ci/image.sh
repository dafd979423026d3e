#!/bin/bash
# Make a stand-in for the public base image out of Debian packages, for machines without a registry.
# usage: image.sh TAG UV       TAG: the name that the Dockerfile uses; UV: the uv program to put in
set -euo pipefail
tag=$1 uv=$2 suite=trixie root=$(mktemp -d)
mirror=$(grep -hm1 -oE '^URIs: .*' /etc/apt/sources.list.d/*.sources 2>/dev/null | cut -d' ' -f2 || true)
[ -n "$mirror" ] || mirror=$(grep -hm1 -oE '^deb +(\[[^]]*\] +)?[^ ]+' /etc/apt/sources.list | awk '{print $NF}')
debootstrap --variant=minbase --include=python3,ca-certificates,tzdata "$suite" "$root" "$mirror" \
    /usr/share/debootstrap/scripts/sid >"$root.log" 2>&1 || { tail -20 "$root.log"; exit 1; }
install -m 0755 "$uv" "$root/usr/local/bin/uv"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # a proxy of this network may sign with its own CA
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}
tar -C "$root" -c . | docker import - "$tag" >/dev/null
rm -rf "$root" "$root.log"
docker image inspect --format '{{.Size}}' "$tag"
