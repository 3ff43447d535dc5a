# Sourced by the demo and the benchmarks: starts engines and routers on free ports of 127.0.0.1 and
# stops what it started, whatever happens.

BUILD=${BUILD:-build}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/grapevine-bench.XXXXXX")
PIDS=()
ENGINES=()      # URLs
ENGINE_PIDS=()

if [ -t 1 ] && [ "${TERM:-dumb}" != dumb ]; then
    BOLD=$'\e[1m' DIM=$'\e[2m' PLAIN=$'\e[0m'
else
    BOLD='' DIM='' PLAIN=''
fi

say() { printf '%s\n' "$*"; }
step() { printf '%s%s%s\n' "$BOLD" "$*" "$PLAIN"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

need() {
    local file
    for file in "$@"; do
        [ -x "$file" ] || die "$file is not built; try: make everything"
    done
}

# A port that nobody listens on, by TCP or UDP. It is below those that the system gives out by itself: one of these might be
# another program's before it is used here.
free_port() {
    python3 - <<'PYTHON'
import random
import socket
given_out = int(open("/proc/sys/net/ipv4/ip_local_port_range").read().split()[0])
while True:
    udp, tcp = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
    port = random.randrange(10000, max(given_out, 20000))
    try:
        tcp.bind(("127.0.0.1", port))
        udp.bind(("127.0.0.1", port))
    except OSError:
        continue
    print(port)
    break
PYTHON
}

# background LOG COMMAND...: starts it and leaves its pid in $STARTED.
background() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 &
    STARTED=$!
    PIDS+=("$STARTED")
}

# until_true SECONDS COMMAND...: times SLOW (tests/run.sh)
until_true() {
    local slow=${SLOW:-1}
    local tries=$(($1 * 20 * ${slow%.*}))
    shift
    while ! "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return 1
        sleep 0.05
    done
}

# stop PID...: ends processes that were started here and waits for them.
stop() {
    local pid kept=() other
    for pid in "$@"; do
        kill "$pid" 2>/dev/null || true
    done
    for pid in "$@"; do
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.05
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    for other in "${PIDS[@]}"; do
        [[ " $* " == *" $other "* ]] || kept+=("$other")
    done
    PIDS=("${kept[@]}")
}

stop_all() {
    local status=$?
    trap - EXIT INT TERM
    [ ${#PIDS[@]} -eq 0 ] || stop "${PIDS[@]}"
    rm -rf "$WORK"
    exit "$status"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start_engines COUNT FLAGS...: engine simulators; fills ENGINES and ENGINE_PIDS.
start_engines() {
    local count=$1 i log
    shift
    ENGINES=() ENGINE_PIDS=()
    for i in $(seq "$count"); do
        log=$WORK/engine-$i.log
        background "$log" "$BUILD/tests/engine-sim" --listen 127.0.0.1:0 "$@"
        ENGINE_PIDS+=("$STARTED")
    done
    for i in $(seq "$count"); do
        log=$WORK/engine-$i.log
        until_true 10 grep -q 'listening on http' "$log" || { cat "$log" >&2; die "engine $i did not start"; }
        ENGINES+=("$(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$log" | head -n 1)")
    done
}

# start_router POLICY FLAGS...: one Grapevine in front of ENGINES; sets ROUTER, ADMIN, ROUTER_PID.
start_router() {
    local policy=$1 flags=() engine port admin log=${LOG:-$WORK/router.log}
    shift
    for engine in "${ENGINES[@]}"; do
        flags+=(--replica "$engine")
    done
    port=$(free_port) admin=${ADMIN_WANTED:-$(free_port)}
    background "$log" "${ROUTER_PROGRAM:-$BUILD/grapevine}" "${flags[@]}" --listen "127.0.0.1:$port" \
        --admin-listen "127.0.0.1:$admin" --policy "$policy" --drain-delay 0 "$@"
    ROUTER_PID=$STARTED ROUTER=http://127.0.0.1:$port ADMIN=http://127.0.0.1:$admin
    if ! until_true 10 curl -fsS -o "$WORK/ready" "$ADMIN/readyz"; then
        cat "$log" >&2
        die "the router did not become ready"
    fi
}

# cluster_key FILE: a fresh key.
cluster_key() {
    (umask 077 && "$BUILD/gvctl" keygen >"$1") || die "gvctl keygen failed"
}

# start_routers shared|apart COUNT POLICY FLAGS...: that many in front of ENGINES, with gossip between
# them or without; sets ROUTERS, ADMINS (URLs) and ROUTER_PIDS.
start_routers() {
    local how=$1 count=$2 policy=$3 i seed gossip=()
    shift 3
    ROUTERS=() ADMINS=() ROUTER_PIDS=()
    seed=127.0.0.1:$(free_port)
    [ "$how" = apart ] || [ -s "$WORK/cluster.key" ] || cluster_key "$WORK/cluster.key"
    for i in $(seq "$count"); do
        if [ "$how" = shared ]; then
            gossip=(--cluster-key-file "$WORK/cluster.key" --node-name "router-$i")
            [ "$i" -eq 1 ] && gossip+=(--gossip-listen "$seed") ||
                gossip+=(--gossip-listen "127.0.0.1:$(free_port)" --join "$seed")
        fi
        LOG=$WORK/router-$i.log ADMIN_WANTED=$([ "$i" -gt 1 ] || echo "${FIRST_ADMIN:-}") \
            start_router "$policy" "${gossip[@]}" "$@"
        ROUTERS+=("$ROUTER") ADMINS+=("$ADMIN") ROUTER_PIDS+=("$ROUTER_PID")
    done
}

# compressed SPEED: sets COMPRESSED, the settings that speak of time, for engines that run so many
# times as fast as real ones: what is 15 s to them is 15 s / SPEED to the router's clock.
compressed() {
    COMPRESSED=(--generation $((15000 / $1))ms --reuse-horizon $((120000 / $1))ms
        --ttl $((3600 / $1))s --prefill-rate $((10000 * $1)) --decode-step $(((20 + $1 - 1) / $1))ms
        --scrape-interval $((2000 / $1))ms)
}
