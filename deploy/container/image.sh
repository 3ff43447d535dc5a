#!/usr/bin/env bash
# Makes an image of what `make` built, without a registry: the last stage of deploy/Containerfile over the files of
# root.sh. The result is an archive that `podman load -i`, `docker load -i` and `ctr images import` take; the storage
# of this machine is left alone. The size that is printed is that of all files in the image.
#
#   BUILD=build deploy/container/image.sh    (as root; wants buildah)
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
if ! command -v buildah >/dev/null; then
    echo "buildah is missing: apt-get install buildah" >&2
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
BUILD=$BUILD deploy/container/root.sh "$scratch/root-fs"

version=$("$BUILD/grapevine" --version | cut -d' ' -f2 | cut -d+ -f1) # a tag takes no +
archive=$BUILD/grapevine-$version.image.tar
storage=(--storage-driver vfs --root "$scratch/storage" --runroot "$scratch/run")
sed -n '/^FROM scratch/,$p' deploy/Containerfile | sed 's|--from=build /root-fs/|root-fs/|' >"$scratch/Containerfile"
# HEALTHCHECK is of Docker's format alone.
buildah "${storage[@]}" bud --isolation chroot --format docker --timestamp "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" \
    -t "grapevine:$version" -f "$scratch/Containerfile" "$scratch" >"$scratch/log" 2>&1 || {
    cat "$scratch/log" >&2
    exit 1
}
rm -f "$archive"
buildah "${storage[@]}" push -q "grapevine:$version" "docker-archive:$archive:localhost/grapevine:$version" >/dev/null
echo "$archive: grapevine:$version, $(($(du -sk "$scratch/root-fs" | cut -f1) / 1024)) MiB"
