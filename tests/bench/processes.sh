#!/usr/bin/env bash
# Routing quality on real coding sessions, with real processes: eight simulated engines, one router.
#   REQUESTS=2000 SPEED=15 SESSIONS=32 CACHE=400000 TOLD=all HALF=0 tests/bench/processes.sh [POLICY ...]
# Time is compressed; what router, network and simulator really take counts SPEED times in the
# simulated seconds: a millisecond of this machine is SPEED milliseconds of the result.
# TOLD: which settings of the router follow SPEED: all that speak of time, the rates of the engines
# alone, or none (its defaults). HALF=2: only the second half of the sessions, which no setting was
# chosen by. FILES=40: only so many of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine" "$BUILD/tests/engine-sim" "$BUILD/tests/replay"

SPEED=${SPEED:-15}
CACHE=${CACHE:-400000}
SESSIONS=${SESSIONS:-32}
REQUESTS=${REQUESTS:-2000}
REPLICAS=${REPLICAS:-8}
TOLD=${TOLD:-all}
HALF=${HALF:-0}
FILES=${FILES:-0}
out=$BUILD/bench/processes
mkdir -p "$out"
[ $# -gt 0 ] || set -- round_robin session cache_aware
tests/bench/traces.sh coding

step "Coding sessions: $REPLICAS engines of $CACHE tokens, $SESSIONS sessions at once, $REQUESTS requests, time x $SPEED"
case $TOLD in
all) compressed "$SPEED" && settings=("${COMPRESSED[@]}") ;;
rates) settings=(--prefill-rate $((10000 * SPEED)) --decode-step 1ms) ;;
none) settings=() ;;
*) die "TOLD is all, rates or none" ;;
esac
trace=$BUILD/traces/coding
if [ "$HALF" -gt 0 ]; then
    mapfile -t files < <(cd "$trace" && ls)
    trace=$WORK/half
    mkdir "$trace"
    count=$((${#files[@]} / 2))
    [ "$FILES" -eq 0 ] || [ "$FILES" -gt "$count" ] || count=$FILES
    for file in "${files[@]:((HALF - 1) * ${#files[@]} / 2):$count}"; do
        ln -s "$(realpath "$BUILD/traces/coding/$file")" "$trace/"
    done
fi
results=()
for policy in "$@"; do
    start_engines "$REPLICAS" --model sim --cache-tokens "$CACHE" --max-model-len 200000 --prefill-rate 10000 \
        --decode-base-ms 15 --decode-ns-per-context-token 30 --prefill-chunk 2048 --speed-up "$SPEED"
    start_router "$policy" "${settings[@]}"
    "$BUILD/tests/replay" --target "$ROUTER" --pid "$ROUTER_PID" --trace "coding:$trace" \
        --sessions "$SESSIONS" --requests-max "$REQUESTS" --speed-up "$SPEED" --label "$policy" \
        --json "$out/$policy.json" >"$out/$policy.txt"
    results+=("$out/$policy.json")
    stop "${PIDS[@]}"
done
tests/bench/table.py policies "${results[@]}" | tee "$BUILD/bench/processes.txt"
say "  One millisecond of this machine counts as $SPEED in these figures."
