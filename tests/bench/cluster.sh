#!/usr/bin/env bash
# Several real routers in front of the same eight simulated engines: coding sessions, each request at
# a random router, with gossip between them (shared) and without (apart).
#   COUNTS="1 2 4 8" REQUESTS=1200 SPEED=10 SESSIONS=32 tests/bench/cluster.sh [shared] [apart]
#   WHOLE=1    all 14,496 requests (hours)
#   ROUNDS=3   every run so many times, each with another order of the sessions; the table has means
# Time is compressed as in processes.sh: a millisecond of this machine, and so of the gossip, counts as
# SPEED milliseconds. "machine" is the share of all cores that was busy, and the part of it that was
# this bench (routers, engines, driver): beyond 80 % or so the figures speak of the machine.
# Results: build/bench/cluster.txt, cluster.json, and the picture build/bench/routers.svg.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine" "$BUILD/gvctl" "$BUILD/tests/engine-sim" "$BUILD/tests/replay"

SPEED=${SPEED:-10}
CACHE=${CACHE:-400000}
SESSIONS=${SESSIONS:-32}
REQUESTS=${REQUESTS:-1200}
REPLICAS=${REPLICAS:-8}
ROUNDS=${ROUNDS:-1}
[ -z "${WHOLE:-}" ] || REQUESTS=0
out=$BUILD/bench/cluster
rm -rf "$out"
mkdir -p "$out"
[ $# -gt 0 ] || set -- shared apart
tests/bench/traces.sh coding

# Busy and all ticks of the machine, and those of the children that have ended.
machine() {
    awk '/^cpu / { for (i = 2; i <= 9; i++) all += $i; printf "%d %d ", all - $5 - $6, all }' /proc/stat
    awk '{ print $16 + $17 }' "/proc/$$/stat"
}

run() { # HOW COUNT SEED
    local how=$1 flags=() i before after
    start_engines "$REPLICAS" --model sim --cache-tokens "$CACHE" --max-model-len 200000 --prefill-rate 10000 \
        --decode-base-ms 15 --decode-ns-per-context-token 30 --prefill-chunk 2048 --speed-up "$SPEED"
    [ "$2" -gt 1 ] || how=apart # one router needs no gossip
    start_routers "$how" "$2" cache_aware "${COMPRESSED[@]}"
    for i in "${!ROUTERS[@]}"; do
        flags+=(--target "${ROUTERS[$i]}" --pid "${ROUTER_PIDS[$i]}")
    done
    read -r -a before < <(machine)
    "$BUILD/tests/replay" "${flags[@]}" --trace "coding:$BUILD/traces/coding" --sessions "$SESSIONS" \
        --requests-max "$REQUESTS" --speed-up "$SPEED" --seed "$3" --label "$2 $1" \
        --json "$out/$1.$2.$3.json" >"$out/$1.$2.$3.txt"
    stop "${PIDS[@]}"
    read -r -a after < <(machine)
    echo $((100 * (after[0] - before[0]) / (after[1] - before[1]))) \
        $((100 * (after[2] - before[2]) / (after[1] - before[1]))) >"$out/$1.$2.$3.busy"
}

step "Coding sessions over several routers: $REPLICAS engines of $CACHE tokens, $SESSIONS sessions at once," \
    "$([ "$REQUESTS" -gt 0 ] && echo "$REQUESTS" || echo all) requests, time x $SPEED"
compressed "$SPEED"
for round in $(seq "$ROUNDS"); do
    for how in "$@"; do
        for count in ${COUNTS:-1 2 4 8}; do
            [ "$how $count" = "apart 1" ] || run "$how" "$count" "$round"
        done
    done
done
tests/bench/table.py cluster "$out" "$BUILD/bench/cluster.json" | tee "$BUILD/bench/cluster.txt"
say "  One millisecond of this machine counts as $SPEED in these figures."
tests/bench/picture.py "$BUILD/bench/cluster.json" >"$BUILD/bench/routers.svg"
