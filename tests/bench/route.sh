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
