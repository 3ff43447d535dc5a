#!/usr/bin/env bash
# Routing quality on real coding sessions, with real processes: eight simulated engines, one router.
#   REQUESTS=2000 SPEED=15 SESSIONS=32 CACHE=400000 tests/bench/quality.sh [POLICY ...]
# Time is compressed; what router, network and simulator really take counts SPEED times in the
# simulated seconds: a millisecond of this machine is SPEED milliseconds of the result.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine" "$BUILD/tests/engine-sim" "$BUILD/tests/replay"

SPEED=${SPEED:-15}
CACHE=${CACHE:-400000}
SESSIONS=${SESSIONS:-32}
REQUESTS=${REQUESTS:-2000}
REPLICAS=${REPLICAS:-8}
out=$BUILD/bench/quality
mkdir -p "$out"
[ $# -gt 0 ] || set -- round_robin session cache_aware
tests/bench/traces.sh coding

step "Coding sessions: $REPLICAS engines of $CACHE tokens, $SESSIONS sessions at once, $REQUESTS requests, time x $SPEED"
compressed "$SPEED"
results=()
for policy in "$@"; do
    start_engines "$REPLICAS" --model sim --cache-tokens "$CACHE" --max-model-len 200000 --prefill-rate 10000 \
        --decode-base-ms 15 --decode-ns-per-context-token 30 --prefill-chunk 2048 --speed-up "$SPEED"
    start_router "$policy" "${COMPRESSED[@]}"
    "$BUILD/tests/replay" --target "$ROUTER" --pid "$ROUTER_PID" --trace "coding:$BUILD/traces/coding" \
        --sessions "$SESSIONS" --requests-max "$REQUESTS" --speed-up "$SPEED" --label "$policy" \
        --json "$out/$policy.json" >"$out/$policy.txt"
    results+=("$out/$policy.json")
    stop "${PIDS[@]}"
done
tests/bench/table.py policies "${results[@]}" | tee "$BUILD/bench/quality.txt"
say "  One millisecond of this machine counts as $SPEED in these figures."
