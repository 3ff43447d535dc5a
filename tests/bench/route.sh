#!/bin/sh
# Routing quality in virtual time on the coding sessions: table for caches that suffice, and for
# caches that are too small. Arguments go to route_bench (--whole: all sessions).
set -eu
build=${BUILD:-build}
shared=${GRAPEVINE_SHARED:-../shared}
archive=$shared/traces/coding_sessions_dev.tar.xz
folder=$build/traces/coding_sessions
if [ ! -f "$archive" ]; then
    echo "route.sh: no $archive, skipped"
    exit 0
fi
if [ ! -f "$folder/.unpacked" ]; then
    mkdir -p "$folder"
    tar -xJf "$archive" -C "$folder"
    touch "$folder/.unpacked"
fi
for cache in 400000 200000; do
    "$build/tests/bench/route_bench" "$folder" --cache $cache "$@"
    echo
done
