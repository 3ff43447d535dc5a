#!/usr/bin/env bash
# Does a router's memory stay flat? Plain and streamed requests of 1 KB and 32 KB, and clients that
# go away in the middle of the request, before the answer and in the middle of it; the router's
# resident memory on the way. Fails if it grew by more than 2 MiB after the first quarter.
#   REQUESTS=200000 tests/bench/soak.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/tests/replay" "$BUILD/tests/bench/backend" "$BUILD/grapevine"
total=${REQUESTS:-200000}
round=$((total / 20))
growth_max_kb=2048

listens() { [ "$(grep -c listening "$WORK/backend.log")" -eq 2 ]; }
background "$WORK/backend.log" "$BUILD/tests/bench/backend" --listen 127.0.0.1:0 --listen 127.0.0.1:0
until_true 5 listens || die "the backend did not start"
mapfile -t ENGINES < <(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$WORK/backend.log")
start_router cache_aware

metric() { curl -fsS "$ADMIN/metrics" | sed -nE "s/^grapevine_$1 ([0-9]+).*/\\1/p"; }
rss_kb() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$ROUTER_PID/status"; }

requests() { # SHARE_PERCENT BYTES STREAM SEED
    "$BUILD/tests/replay" --target "$ROUTER" --fixed "$2" --stream "$3" --requests $((round * $1 / 100)) \
        --connections 16 --seed "$4" --quiet --json "$WORK/soak.json" >"$WORK/replay.log" 2>&1 ||
        { cat "$WORK/replay.log" >&2; die "the driver failed"; }
    grep -q '"failed": 0,' "$WORK/soak.json" || { cat "$WORK/replay.log" >&2; die "requests failed"; }
}

aborted() { # SHARE_PERCENT: each goes away at another point
    python3 - "$ROUTER" $((round * $1 / 100)) <<'PYTHON'
import socket, struct, sys
host, port = sys.argv[1].removeprefix("http://").split(":")
body = b'{"stream":true,"model":"sim","messages":[{"role":"user","content":"' + b"word " * 6000 + b'"}]}'
head = (b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n" % len(body))
for i in range(int(sys.argv[2])):
    with socket.create_connection((host, int(port))) as s:
        if i % 2 == 0:  # a reset, not an orderly end
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if i % 3 == 0:
            s.sendall(head + body[: len(body) // 2])
        else:
            s.sendall(head + body)
        if i % 3 == 2:
            s.recv(64)
PYTHON
}

step "Memory over $total requests (1 KB 40 %, 1 KB streamed 30 %, 32 KB 15 %, 32 KB streamed 10 %, aborted 5 %)"
printf '  %9s  %8s\n' requests 'RSS MiB'
start=$(rss_kb)
printf '  %9d  %8.1f\n' 0 "$(awk "BEGIN {print $start / 1024}")"
began=$(date +%s) quarter=0 now=0
for i in $(seq 20); do
    requests 40 1024 off "$i"
    requests 30 1024 on "$i"
    requests 15 32768 off "$i"
    requests 10 32768 on "$i"
    aborted 5
    case $i in
    2 | 5 | 10 | 20)
        now=$(rss_kb)
        printf '  %9d  %8.1f\n' $((i * round)) "$(awk "BEGIN {print $now / 1024}")"
        [ "$i" -ne 5 ] || quarter=$now
        ;;
    esac
done
printf '  growth from %d to %d: %d KiB, in %d s\n' $((5 * round)) $((20 * round)) $((now - quarter)) $(($(date +%s) - began))
no_bookings() { [ "$(metric bookings)" -eq 0 ]; }
until_true 5 no_bookings || die "bookings were left behind"
printf '  the router counted %d requests, %d answers of 200, %d bookings left\n' "$(metric requests_total)" \
    "$(metric 'responses_total\{class="2xx"\}')" "$(metric bookings)"
[ $((now - quarter)) -le $growth_max_kb ] || die "it grew by more than $growth_max_kb KiB"
