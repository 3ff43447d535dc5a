#!/usr/bin/env bash
# The images of a node: the router's (make image), and one of the tests, with `pause`, which holds a pod's network, and
# the simulated engine. Made by buildah without a registry.
#
#   images.sh BUILD OUT    OUT/grapevine.tar, OUT/test.tar
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=$1 out=$2
BUILD=$BUILD deploy/container/image.sh
cp "$BUILD"/grapevine-*.image.tar "$out/grapevine.tar"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/root"
${CC:-cc} -Os -static -o "$scratch/root/pause" tests/k8s/node/pause.c
cp "$BUILD/tests/engine-sim" "$scratch/root/"
ldd "$BUILD/tests/engine-sim" | grep -oE '/[^ ]+' | sort -u | while read -r library; do
    install -D -m 755 "$(readlink -f "$library")" "$scratch/root$library"
done
printf 'FROM scratch\nCOPY root/ /\nUSER 65532:65532\nENTRYPOINT ["/pause"]\n' >"$scratch/Containerfile"
storage=(--storage-driver vfs --root "$scratch/storage" --runroot "$scratch/run")
buildah "${storage[@]}" bud -q --isolation chroot --format docker -t test:1 -f "$scratch/Containerfile" "$scratch" >/dev/null
buildah "${storage[@]}" push -q test:1 "docker-archive:$out/test.tar:docker.io/library/test:1" >/dev/null
