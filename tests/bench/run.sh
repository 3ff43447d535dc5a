#!/usr/bin/env bash
# `make bench`: what a request costs, what the parts cost, and how well it routes.
#   tests/bench/run.sh [cpu] [micro] [quality] [virtual]      (all by default)
# QUICK=1 makes it short. Results also under build/bench/.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
export BUILD
mkdir -p "$BUILD/bench"
[ $# -gt 0 ] || set -- cpu micro quality virtual

for section in "$@"; do
    case $section in
    cpu)
        tests/bench/cpu.sh
        ;;
    micro)
        for bench in "$BUILD"/tests/bench/*_bench; do
            [ -x "$bench" ] || continue
            name=$(basename "$bench" _bench)
            [ "$name" != route ] || continue
            printf '\n%s\n' "$name"
            "$bench" | tee "$BUILD/bench/$name.txt"
        done
        ;;
    quality)
        printf '\n'
        [ -z "${QUICK:-}" ] || export REQUESTS=${REQUESTS:-600}
        tests/bench/quality.sh
        ;;
    virtual)
        [ -x "$BUILD/tests/bench/route_bench" ] || continue
        printf '\nthe routing rule in virtual time\n'
        tests/bench/traces.sh coding
        "$BUILD/tests/bench/route_bench" "$BUILD/traces/coding" | tee "$BUILD/bench/route.txt"
        ;;
    *)
        echo "unknown section $section: cpu, micro, quality or virtual" >&2
        exit 2
        ;;
    esac
done
