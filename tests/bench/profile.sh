#!/usr/bin/env bash
# Takes a branch profile of the daemon (make profile): bodies of three sizes, streamed and not, through one router, then
# conversations through two in front of simulated engines.
#   tests/bench/profile.sh TRAINED_BUILD TAR_TO_WRITE
set -euo pipefail
cd "$(dirname "$0")/../.."
TRAINED=${1:?usage: tests/bench/profile.sh TRAINED_BUILD TAR_TO_WRITE}
OUT=${2:?usage: tests/bench/profile.sh TRAINED_BUILD TAR_TO_WRITE}
. tests/bench/lib.sh
need "$BUILD/tests/replay" "$BUILD/tests/bench/backend" "$BUILD/tests/engine-sim" "$TRAINED/grapevine"
ROUTER_PROGRAM=$TRAINED/grapevine
find "$TRAINED/obj" -name '*.gcda' -delete

step "bodies of 1, 32 and 400 KB, streamed and not"
listen=()
for _ in 1 2 3 4 5 6 7 8; do listen+=(--listen 127.0.0.1:0); done
background "$WORK/backend.log" "$BUILD/tests/bench/backend" "${listen[@]}"
backends_listen() { [ "$(grep -c listening "$WORK/backend.log")" -eq 8 ]; }
until_true 5 backends_listen || die "the backend did not start"
mapfile -t ENGINES < <(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$WORK/backend.log")
start_router cache_aware
for row in 1024:off:20000 1024:on:10000 32768:off:4000 32768:on:4000 409600:off:300 409600:on:300; do
    IFS=: read -r bytes streamed requests <<<"$row"
    "$BUILD/tests/replay" --target "$ROUTER" --quiet --fixed "$bytes" --stream "$streamed" --requests "$requests" \
        --connections 8 >/dev/null
done
stop "$ROUTER_PID" # it writes its counts at its end

step "conversations through two routers and simulated engines"
start_engines 4 --speed-up 10
compressed 10
start_routers shared 2 cache_aware "${COMPRESSED[@]}"
"$BUILD/tests/replay" --target "${ROUTERS[0]}" --target "${ROUTERS[1]}" --quiet --trace demo --speed-up 10 --requests 2000 >/dev/null
stop "${ROUTER_PIDS[@]}"

mkdir -p "$(dirname "$OUT")"
(cd "$TRAINED/obj" && find base crdt gossip http node -name '*.gcda' | LC_ALL=C sort |
    tar --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=644 -cf - -T -) | xz -9e >"$OUT"
say "$(find "$TRAINED/obj" -name '*.gcda' | wc -l) files counted; $OUT: $(stat -c %s "$OUT") bytes"
