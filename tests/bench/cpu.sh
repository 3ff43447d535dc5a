#!/usr/bin/env bash
# What a request costs a router: CPU time of the router's process, and added latency, for Grapevine
# (cache_aware), HAProxy and nginx (round robin, one thread) in front of the same eight backends.
#   QUICK=1 tests/bench/cpu.sh                 a tenth of the requests
#   ROUTERS="haproxy grapevine" ...            only these
#   BODIES="1KB 400KB" ...                     only these
# Results: build/bench/cpu.txt and the runs themselves under build/bench/cpu/.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
read -r -a routers <<<"${ROUTERS:-haproxy nginx grapevine}"
bodies=" ${BODIES:-1KB 1KB-streamed 32KB 32KB-streamed 400KB 400KB-streamed 1KB-16-events} "
PATH=$PATH:/usr/sbin:/sbin
need "$BUILD/tests/replay" "$BUILD/tests/bench/backend"
for router in "${routers[@]}"; do
    case $router in
    grapevine) need "$BUILD/grapevine" ;;
    haproxy | nginx) command -v "$router" >/dev/null || die "$router is not installed; try: make deps-bench" ;;
    *) die "ROUTERS may name haproxy, nginx and grapevine" ;;
    esac
done
out=$BUILD/bench/cpu
rm -rf "$out"
mkdir -p "$out"

ROUNDS=${ROUNDS:-3}
CONNECTIONS=${CONNECTIONS:-8}
scale=$([ -n "${QUICK:-}" ] && echo 10 || echo 1)

backends_listen() { [ "$(grep -c listening "$WORK/backend.log")" -eq 8 ]; }

start_backends() { # PACE_US
    local listen=() i
    for i in 1 2 3 4 5 6 7 8; do
        listen+=(--listen 127.0.0.1:0)
    done
    background "$WORK/backend.log" "$BUILD/tests/bench/backend" "${listen[@]}" --pace-us "$1"
    BACKEND_PID=$STARTED
    until_true 5 backends_listen || die "the backend did not start"
    mapfile -t ENGINES < <(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$WORK/backend.log")
}

start_haproxy() { # PORT
    HAPROXY_PORT=$1
    {
        printf 'global\n    nbthread 1\n    maxconn 4096\n'
        printf 'defaults\n    mode http\n    timeout connect 5s\n    timeout client 600s\n'
        printf '    timeout server 600s\n    option http-no-delay\n    http-reuse always\n'
        printf 'frontend f\n    bind 127.0.0.1:%s\n    default_backend b\n' "$HAPROXY_PORT"
        printf 'backend b\n    balance roundrobin\n'
        for i in "${!ENGINES[@]}"; do
            printf '    server s%s %s\n' "$i" "${ENGINES[$i]#http://}"
        done
    } >"$WORK/haproxy.cfg"
    background "$WORK/haproxy.log" haproxy -db -f "$WORK/haproxy.cfg"
    HAPROXY_PID=$STARTED
    until_true 5 curl -fsS -o "$WORK/up" "http://127.0.0.1:$HAPROXY_PORT/health" || die "haproxy did not start"
}

start_nginx() { # PORT
    NGINX_PORT=$1
    mkdir -p "$WORK/nginx"
    {
        printf 'worker_processes 1;\nmaster_process off;\ndaemon off;\nuser root;\npid %s/nginx/pid;\n' "$WORK"
        printf 'error_log %s/nginx/error.log;\nevents { worker_connections 4096; }\nhttp {\n' "$WORK"
        printf '    access_log off;\n    client_max_body_size 64m;\n    client_body_buffer_size 1m;\n    keepalive_requests 100000000;\n'
        for kind in client_body proxy fastcgi uwsgi scgi; do
            printf '    %s_temp_path %s/nginx/%s;\n' $kind "$WORK" $kind
        done
        printf '    upstream engines {\n'
        for engine in "${ENGINES[@]}"; do
            printf '        server %s;\n' "${engine#http://}"
        done
        printf '        keepalive 64;\n        keepalive_requests 100000000;\n    }\n'
        printf '    server {\n        listen 127.0.0.1:%s;\n        location / {\n' "$NGINX_PORT"
        printf '            proxy_pass http://engines;\n            proxy_http_version 1.1;\n'
        printf '            proxy_set_header Connection "";\n            proxy_buffering off;\n        }\n    }\n}\n'
    } >"$WORK/nginx.conf"
    [ "$(id -u)" -eq 0 ] || sed -i '/^user /d' "$WORK/nginx.conf"
    background "$WORK/nginx.log" nginx -c "$WORK/nginx.conf" -e "$WORK/nginx/error.log"
    NGINX_PID=$STARTED
    until_true 5 curl -fsS -o "$WORK/up" "http://127.0.0.1:$NGINX_PORT/health" || die "nginx did not start"
}

# run NAME ROUTER JSON FLAGS...: one run of the driver against one router, or straight.
run() {
    local name=$1 router=$2 targets=()
    shift 2
    case $router in
    grapevine) targets=(--target "$ROUTER" --pid "$ROUTER_PID") ;;
    haproxy) targets=(--target "http://127.0.0.1:$HAPROXY_PORT" --pid "$HAPROXY_PID") ;;
    nginx) targets=(--target "http://127.0.0.1:$NGINX_PORT" --pid "$NGINX_PID") ;;
    direct) for engine in "${ENGINES[@]}"; do targets+=(--target "$engine"); done ;;
    esac
    "$BUILD/tests/replay" "${targets[@]}" --quiet --label "$name $router" --json "$out/$name.$router.json" \
        "$@" >"$WORK/replay.log" 2>&1 || { cat "$WORK/replay.log" "$WORK/$router.log" >&2; die "$router failed"; }
}

everything_up() {
    start_backends "$1"
    local router
    for router in "${routers[@]}"; do
        case $router in
        haproxy) start_haproxy "$(free_port)" ;;
        nginx) start_nginx "$(free_port)" ;;
        grapevine) start_router cache_aware ;;
        esac
    done
}

# measure NAME BYTES STREAM REQUESTS
measure() {
    local name=$1 bytes=$2 stream=$3 requests=$(($4 / scale)) round router
    [[ $bodies == *" $name "* ]] || return 0
    printf '  %-22s' "$name" >&2
    for router in "${routers[@]}"; do # pools and caches fill
        run warm $router --fixed "$bytes" --stream "$stream" --requests $((requests / 10 + 50)) --connections "$CONNECTIONS"
    done
    for round in $(seq "$ROUNDS"); do
        for router in "${routers[@]}"; do
            run "cpu.$name.$round" $router --fixed "$bytes" --stream "$stream" --requests "$requests" \
                --connections "$CONNECTIONS" --seed "$round"
            printf '.' >&2
        done
    done
    for router in direct "${routers[@]}"; do # one at a time: what it adds, not how it queues
        run "latency.$name.1" $router --fixed "$bytes" --stream "$stream" --requests $((requests / 4)) --connections 1
        printf '.' >&2
    done
    printf '\n' >&2
}

step "Router CPU per request and added latency (8 backends, $CONNECTIONS connections, $ROUNDS rounds)"
everything_up 0
measure 1KB 1024 off 20000
measure 1KB-streamed 1024 on 20000
measure 32KB 32768 off 10000
measure 32KB-streamed 32768 on 10000
measure 400KB 400000 off 2500
measure 400KB-streamed 400000 on 2500
[ ${#PIDS[@]} -eq 0 ] || stop "${PIDS[@]}"
# Events one by one, as an engine makes them: 16 of them, 1 ms apart.
everything_up 1000
CONNECTIONS=16 measure 1KB-16-events 1024 on 4000
rm -f "$out"/warm.*
tests/bench/table.py cpu "$out" | tee "$BUILD/bench/cpu.txt"
