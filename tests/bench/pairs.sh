#!/usr/bin/env bash
# What a change costs: two builds of grapevine in front of the same backends, in turns, CPU time of
# each process per request, and the median of the ratios of nine pairs for each row. Each pair has
# processes of its own: one keeps the luck of its addresses, which is worth 2 %.
#   tests/bench/pairs.sh OTHER_GRAPEVINE       e.g. the build of the commit before, in a clone
#   PAIRS=9 ROWS="1024:off:8000" ...           bytes of a body : streamed : requests
#   ROWS="miniswe=build/traces/miniswe:on:400" ...   a trace that tests/bench/traces.sh unpacked, 1,000 times as fast
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
other=${1:?usage: tests/bench/pairs.sh OTHER_GRAPEVINE}
need "$BUILD/grapevine" "$BUILD/tests/replay" "$BUILD/tests/bench/backend" "$other"
pairs=${PAIRS:-9}
read -r -a rows <<<"${ROWS:-1024:off:8000 1024:on:6000 32768:off:3000 32768:on:3000 409600:off:400 409600:on:400}"

listen=()
for _ in 1 2 3 4 5 6 7 8; do listen+=(--listen 127.0.0.1:0); done
background "$WORK/backend.log" "$BUILD/tests/bench/backend" "${listen[@]}"
backends_listen() { [ "$(grep -c listening "$WORK/backend.log")" -eq 8 ]; }
until_true 5 backends_listen || die "the backend did not start"
replicas=()
while read -r url; do replicas+=(--replica "$url"); done < <(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$WORK/backend.log")

declare -A port pid
start() { # NAME PROGRAM
    local admin
    port[$1]=$(free_port) admin=$(free_port)
    # A log that goes to a pipe, as in a container: a file has a thread of its own.
    "$2" "${replicas[@]}" --listen "127.0.0.1:${port[$1]}" --admin-listen "127.0.0.1:$admin" 2> >(cat >"$WORK/$1.log") &
    pid[$1]=$!
    PIDS+=("${pid[$1]}")
    until_true 30 curl -fsS -o "$WORK/ready" "http://127.0.0.1:$admin/readyz" || die "$2 is not ready"
}
run() { # NAME BYTES STREAMED REQUESTS
    local before after what=(--fixed "$2" --connections 8)
    [[ $2 =~ ^[0-9]+$ ]] || what=(--trace "${2/=/:}" --speed-up 1000)
    before=$(cut -d' ' -f1 "/proc/${pid[$1]}/schedstat")
    "$BUILD/tests/replay" --target "http://127.0.0.1:${port[$1]}" --quiet "${what[@]}" --stream "$3" \
        --requests "$4" >"$WORK/replay.txt" 2>&1
    after=$(cut -d' ' -f1 "/proc/${pid[$1]}/schedstat")
    echo "$2 $3 $1 $(((after - before) / $4))" >>"$WORK/results"
}

restart() {
    stop ${pid[other]:-} ${pid[this]:-}
    start other "$other"
    start this "$BUILD/grapevine"
    cp "$WORK/results" "$WORK/before"
    for name in other this; do run "$name" 1024 on 3000; done # warm
    mv "$WORK/before" "$WORK/results"
}
: >"$WORK/results"
for ((i = 1; i <= pairs; i++)); do
    printf '\r%s of %s pairs' "$i" "$pairs" >&2
    restart
    for row in "${rows[@]}"; do
        IFS=: read -r bytes streamed requests <<<"$row"
        order=(other this)
        [ $((i % 2)) -eq 1 ] || order=(this other)
        for name in "${order[@]}"; do run "$name" "$bytes" "$streamed" "$requests"; done
    done
done
printf '\n' >&2
python3 - "$WORK/results" <<'PY'
import collections, statistics, sys
found = collections.defaultdict(list)
for line in open(sys.argv[1]):
    bytes_, streamed, name, ns = line.split()
    found[bytes_, streamed, name].append(int(ns))
print("  body           streamed   other us   this us   median of the pairs' ratios (least .. greatest)")
for size, streamed in dict.fromkeys(key[:2] for key in found):
    other, this = found[size, streamed, "other"], found[size, streamed, "this"]
    ratios = sorted(b / a for a, b in zip(other, this))
    print(f"  {size.split('=')[0]:>12}   {streamed:8} {statistics.median(other) / 1000:9.1f} {statistics.median(this) / 1000:9.1f}"
          f"   {statistics.median(ratios):.3f} ({ratios[0]:.3f} .. {ratios[-1]:.3f})")
PY
