#!/usr/bin/env bash
# `make bench`: what a request costs, what the parts cost, how well one router and several of them
# route, what gossip costs and how fast it is, and whether memory stays flat.
#   tests/bench/run.sh [cpu] [tls] [instructions] [micro] [quality] [ablation] [events] [processes] [agree] [cluster] [gossip] [soak] [beside] [sizing]    (all but agree, ablation and events by default)
# QUICK=1 makes it short. Results also under build/bench/. A program that crashes or finds a result wrong,
# or a promise of routing that is broken, fails the whole at its end; a speed that was missed does not: the machine may be busy.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
export BUILD
mkdir -p "$BUILD/bench"
failed=0
[ $# -gt 0 ] || set -- cpu tls instructions micro quality processes cluster gossip soak beside sizing

for section in "$@"; do
    case $section in
    cpu)
        tests/bench/cpu.sh
        ;;
    tls)
        printf '\n'
        tests/bench/tls.sh
        ;;
    instructions)
        printf '\n'
        tests/bench/instructions.py | tee "$BUILD/bench/instructions.txt" || failed=1
        ;;
    sizing)
        printf '\nmemory of a router\n'
        tests/bench/sizing.py | tee "$BUILD/bench/sizing.txt"
        ;;
    micro)
        for bench in "$BUILD"/tests/bench/*_bench; do
            [ -x "$bench" ] || continue
            name=$(basename "$bench" _bench)
            printf '\n%s\n' "$name"
            "$bench" | tee "$BUILD/bench/$name.txt" || { echo "$name: ended with an error"; failed=1; }
        done
        ;;
    quality)
        printf '\nhow well requests are routed, in virtual time\n'
        [ ! -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || tests/bench/traces.sh
        # The bench fails on a broken promise, also on one that docs/quality.md lists as broken.
        "$BUILD/tests/bench/quality-bench" --traces "$BUILD/traces" ${QUICK:+--talks 40 --asks 500} \
            --known "$(tests/bench/quality/picture.py known docs/quality.md)" \
            --json "$BUILD/bench/quality.jsonl" | tee "$BUILD/bench/quality.txt" ||
            { echo "quality: a promise is broken"; failed=1; }
        tests/bench/quality/picture.py svg "$BUILD/bench/quality.jsonl" >"$BUILD/bench/quality.svg" || failed=1
        tests/bench/quality/picture.py tables "$BUILD/bench/quality.jsonl" | tee "$BUILD/bench/quality.md" || failed=1
        echo "Picture: $BUILD/bench/quality.svg. make quality-docs puts it and the tables into docs/quality.md"
        ;;
    ablation)
        printf '\nwhat each part of the routing rule is worth, in virtual time\n'
        [ ! -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || tests/bench/traces.sh
        make -s -j"$(nproc)" VARIANT=ablation build/ablation/tests/bench/quality-bench
        tests/bench/ablation.py ${QUICK:+--draws 12 --mixed 6 --only draws} --out "$BUILD/bench/ablation.md" || failed=1
        ;;
    events)
        printf '\nwhat KV-cache events are worth, in virtual time\n'
        [ ! -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || tests/bench/traces.sh coding
        "$BUILD/tests/bench/quality-bench" --traces "$BUILD/traces" --section events ${QUICK:+--talks 40} | tee "$BUILD/bench/events.txt" ||
            { echo "events: a promise is broken"; failed=1; }
        ;;
    processes)
        printf '\n'
        if [ -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || [ -d "$BUILD/traces/coding" ]; then
            REQUESTS=${REQUESTS:-${QUICK:+600}} tests/bench/processes.sh
        else
            echo "processes: no traces at ${GRAPEVINE_SHARED:-../shared}/traces, skipped"
        fi
        ;;
    agree)
        printf '\nvirtual time against real processes\n'
        if [ -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || [ -d "$BUILD/traces/coding" ]; then
            FILES=${FILES:-${QUICK:+16}} tests/bench/agree.sh || { echo "agree: they do not"; failed=1; }
        else
            echo "agree: no traces at ${GRAPEVINE_SHARED:-../shared}/traces, skipped"
        fi
        ;;
    cluster)
        printf '\n'
        if [ -d "${GRAPEVINE_SHARED:-../shared}/traces" ] || [ -d "$BUILD/traces/coding" ]; then
            REQUESTS=${REQUESTS:-${QUICK:+400}} tests/bench/cluster.sh
        else
            echo "cluster: no traces at ${GRAPEVINE_SHARED:-../shared}/traces, skipped"
        fi
        ;;
    gossip)
        printf '\n'
        tests/bench/gossip.sh
        ;;
    soak)
        printf '\n'
        REQUESTS=${REQUESTS:-${QUICK:+20000}} tests/bench/soak.sh | tee "$BUILD/bench/soak.txt"
        ;;
    beside)
        printf '\nthe load beside idle connections, slow readers and slow uploads\n'
        tests/faults/beside.py --seconds "$([ -n "${QUICK:-}" ] && echo 6 || echo 15)" --json "$BUILD/bench/beside.json" ||
            echo "beside: a target was missed"
        ;;
    *)
        echo "unknown section $section: cpu, tls, instructions, micro, quality, ablation, events, processes, agree, cluster, gossip, soak, beside or sizing" >&2
        exit 2
        ;;
    esac
done
exit "$failed"
