#!/usr/bin/env bash
# `make bench`: what a request costs, what the parts cost, how well it routes, and whether memory
# stays flat.
#   tests/bench/run.sh [cpu] [micro] [quality] [virtual] [soak]      (all by default)
# QUICK=1 makes it short. Results also under build/bench/.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
export BUILD
mkdir -p "$BUILD/bench"
[ $# -gt 0 ] || set -- cpu micro quality virtual soak

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
            "$bench" | tee "$BUILD/bench/$name.txt" || echo "$name: ended with an error"
        done
        ;;
    quality)
        printf '\n'
        [ -z "${QUICK:-}" ] || export REQUESTS=${REQUESTS:-600}
        if [ -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || [ -d "$BUILD/traces/coding" ]; then
            tests/bench/quality.sh
        else
            echo "quality: no traces at ${GRAPEVINE_SHARED:-../shared}/traces, skipped"
        fi
        ;;
    virtual)
        printf '\nthe routing rule in virtual time\n'
        tests/bench/route.sh | tee "$BUILD/bench/route.txt"
        ;;
    soak)
        printf '\n'
        [ -z "${QUICK:-}" ] || export REQUESTS=${REQUESTS:-20000}
        tests/bench/soak.sh | tee "$BUILD/bench/soak.txt"
        ;;
    *)
        echo "unknown section $section: cpu, micro, quality, virtual or soak" >&2
        exit 2
        ;;
    esac
done
