#!/usr/bin/env bash
# Do virtual time and real processes agree? The same coding sessions, engines and rates in both, one
# router with its defaults: the shares served from cache are to be within a point.
#   FILES=40 SPEED=15 SESSIONS=32 CACHE=400000 tests/bench/agree.sh
# `make bench SECTION=agree`. The sessions are of the half that no setting was chosen by.
set -euo pipefail
cd "$(dirname "$0")/../.."
export BUILD=${BUILD:-build} FILES=${FILES:-40} SPEED=${SPEED:-15} SESSIONS=${SESSIONS:-32}
export CACHE=${CACHE:-400000} HALF=2 TOLD=none REQUESTS=1000000
tests/bench/traces.sh coding
few=$BUILD/bench/agree
rm -rf "$few"
mkdir -p "$few/coding"
mapfile -t files < <(cd "$BUILD/traces/coding" && ls)
count=$((${#files[@]} / 2))
for file in "${files[@]:count:FILES}"; do
    ln -s "$(realpath "$BUILD/traces/coding/$file")" "$few/coding/"
done
"$BUILD/tests/bench/quality-bench" --section coding --traces "$few" --half 0 --policy cache_aware \
    --speed "$SPEED" --routers 1 --clients "$SESSIONS" --cache "$CACHE" --block 64 --json "$few/virtual.jsonl"
tests/bench/processes.sh cache_aware
python3 - "$few/virtual.jsonl" "$BUILD/bench/processes/cache_aware.json" <<'END'
import json
import sys

virtual = next(r for r in map(json.loads, open(sys.argv[1])) if r["kind"] == "row")
real = json.load(open(sys.argv[2]))
apart = 100 * (real["cached_share"] - virtual["cached"])
print(f"\nvirtual time: {100 * virtual['cached']:.1f} % from cache, first token after {virtual['ttft_s']:.2f} s")
print(f"processes:    {100 * real['cached_share']:.1f} % from cache, first token after {real['ttft_s']['mean']:.2f} s")
print(f"{'agree' if abs(apart) <= 1 else 'DISAGREE'}: {apart:+.1f} points apart (1)")
sys.exit(abs(apart) > 1)
END
