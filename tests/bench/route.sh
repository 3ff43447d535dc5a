#!/bin/sh
# Routing quality in virtual time on the coding sessions: table for caches that suffice, and for
# caches that are too small. Arguments go to route_bench (--whole: all sessions).
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build}
folder=$build/traces/coding
if [ ! -d "${GRAPEVINE_SHARED:-../shared}/traces" ] && [ ! -d "$folder" ]; then
    echo "route.sh: no traces at ${GRAPEVINE_SHARED:-../shared}/traces, skipped"
    exit 0
fi
tests/bench/traces.sh coding
for cache in 400000 200000; do
    "$build/tests/bench/route_bench" "$folder" --cache $cache "$@"
    echo
done
# The same rule in several routers, each request at a random one, with caches that suffice.
for routers in 2 4 8; do
    for shared in 1 0; do
        "$build/tests/bench/route_bench" "$folder" --cache 400000 --policy cache_aware --routers $routers \
            --shared $shared "$@"
        echo
    done
done
