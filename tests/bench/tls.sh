#!/usr/bin/env bash
# What TLS towards clients costs, beside HAProxy with TLS in the same run, both with one thread, the same
# certificates and the same OpenSSL: CPU time of the router's process
#   - per request of 1 KB and of 32 KB on kept-alive connections, both versions (the driver speaks plain HTTP to
#     an HAProxy of its own, which speaks TLS to the router under test: one connection each),
#   - per connection with a full handshake and one request that the router answers itself, and so handshakes a
#     second on a core, ECDSA P-256 and RSA 2048. Without a request the client is gone as soon as it has
#     sent its last message, and a router that sees that first does not finish the handshake: HAProxy then computes
#     a fifth less than it does for a client that stays,
# and what a kept-alive request waits while others do handshakes as fast as they can.
#   QUICK=1 tests/bench/tls.sh                 a tenth
#   ROUNDS=3 CONNECTIONS=8
# Results: build/bench/tls.txt and the runs themselves under build/bench/tls/.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
PATH=$PATH:/usr/sbin:/sbin
need "$BUILD/tests/replay" "$BUILD/tests/bench/backend" "$BUILD/grapevine"
command -v haproxy >/dev/null || die "haproxy is not installed; try: make deps-bench"
out=$BUILD/bench/tls
rm -rf "$out"
mkdir -p "$out"
ROUNDS=${ROUNDS:-3}
CONNECTIONS=${CONNECTIONS:-8}
scale=$([ -n "${QUICK:-}" ] && echo 10 || echo 1)
seconds=$([ -n "${QUICK:-}" ] && echo 1 || echo 4)

certificate() { # NAME KIND...
    local name=$1
    shift
    openssl req -x509 -newkey "$@" -nodes -keyout "$WORK/$name.key" -out "$WORK/$name.crt" -days 2 \
        -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
    cat "$WORK/$name.crt" "$WORK/$name.key" >"$WORK/$name.pem"
}

backends_listen() { [ "$(grep -c listening "$WORK/backend.log")" -eq 8 ]; }

start_backends() {
    local listen=() i
    for i in 1 2 3 4 5 6 7 8; do
        listen+=(--listen 127.0.0.1:0)
    done
    background "$WORK/backend.log" "$BUILD/tests/bench/backend" "${listen[@]}" --pace-us 0
    until_true 5 backends_listen || die "the backend did not start"
    mapfile -t ENGINES < <(sed -n 's/.*listening on \(http:[^ ]*\).*/\1/p' "$WORK/backend.log")
}

# The routers under test: ports and pids by router and certificate.
declare -A PORT PID
start_haproxy() { # CERTIFICATE
    local i
    PORT[haproxy.$1]=$(free_port)
    {
        printf 'global\n    nbthread 1\n    maxconn 4096\n    ssl-default-bind-options ssl-min-ver TLSv1.2\n'
        printf '    ssl-default-bind-ciphers ECDHE+AESGCM:ECDHE+CHACHA20\n    tune.ssl.default-dh-param 2048\n'
        printf 'defaults\n    mode http\n    timeout connect 5s\n    timeout client 600s\n'
        printf '    timeout server 600s\n    option http-no-delay\n    http-reuse always\n'
        printf 'frontend f\n    bind 127.0.0.1:%s ssl crt %s alpn http/1.1\n    monitor-uri /health\n    default_backend b\n' \
            "${PORT[haproxy.$1]}" "$WORK/$1.pem"
        printf 'backend b\n    balance roundrobin\n'
        for i in "${!ENGINES[@]}"; do
            printf '    server s%s %s\n' "$i" "${ENGINES[$i]#http://}"
        done
    } >"$WORK/haproxy.$1.cfg"
    background "$WORK/haproxy.$1.log" haproxy -db -f "$WORK/haproxy.$1.cfg"
    PID[haproxy.$1]=$STARTED
}

start_grapevine() { # CERTIFICATE
    LOG=$WORK/grapevine.$1.log start_router cache_aware --tls-cert "$WORK/$1.crt" --tls-key "$WORK/$1.key"
    PORT[grapevine.$1]=${ROUTER##*:}
    PID[grapevine.$1]=$ROUTER_PID
}

# The driver's own HAProxy: a plain port for each router and version.
declare -A PLAIN
start_front() {
    local router version
    {
        printf 'global\n    maxconn 4096\ndefaults\n    mode tcp\n    timeout connect 5s\n'
        printf '    timeout client 600s\n    timeout server 600s\n'
        for router in haproxy grapevine; do
            for version in TLSv1.2 TLSv1.3; do
                PLAIN[$router.$version]=$(free_port)
                printf 'listen %s.%s\n    bind 127.0.0.1:%s\n' "$router" "$version" "${PLAIN[$router.$version]}"
                printf '    server s 127.0.0.1:%s ssl verify none force-%s\n' "${PORT[$router.ec]}" \
                    "$(tr -d . <<<"${version,,}" | sed 's/1\([23]\)/1\1/')"
            done
        done
    } >"$WORK/front.cfg"
    background "$WORK/front.log" haproxy -db -f "$WORK/front.cfg"
    for router in haproxy grapevine; do
        until_true 5 curl -fsS -o "$WORK/up" "http://127.0.0.1:${PLAIN[$router.TLSv1.3]}/health" ||
            { cat "$WORK"/*.log >&2; die "$router does not answer through TLS"; }
    done
}

ticks() { # PID: user and system time
    awk '{print $14 + $15}' "/proc/$1/stat"
}

requests() { # NAME BYTES VERSION REQUESTS
    local name=$1 bytes=$2 version=$3 n=$(($4 / scale)) round router
    printf '  %-14s' "$name" >&2
    for round in warm $(seq "$ROUNDS"); do
        for router in haproxy grapevine; do
            "$BUILD/tests/replay" --target "http://127.0.0.1:${PLAIN[$router.$version]}" \
                --pid "${PID[$router.ec]}" --quiet --label "$name $router" --json "$out/request.$name.$round.$router.json" \
                --fixed "$bytes" --stream off --requests "$n" --connections "$CONNECTIONS" \
                --seed "${round/warm/0}" >"$WORK/replay.log" 2>&1 || { cat "$WORK/replay.log" >&2; die "$router failed"; }
            printf '.' >&2
        done
    done
    rm -f "$out"/request."$name".warm.*
    printf '\n' >&2
}

handshakes() { # NAME CERTIFICATE FLAGS...
    local name=$1 certificate=$2 round router before done
    shift 2
    printf '  %-14s' "$name" >&2
    for round in $(seq "$ROUNDS"); do
        for router in haproxy grapevine; do
            before=$(ticks "${PID[$router.$certificate]}")
            openssl s_time -connect "127.0.0.1:${PORT[$router.$certificate]}" -new -www /health -time "$seconds" "$@" \
                >"$WORK/s_time.log" 2>&1 || { cat "$WORK/s_time.log" >&2; die "openssl s_time failed"; }
            done=$(sed -n 's/^\([0-9]*\) connections in .* real seconds.*/\1/p' "$WORK/s_time.log")
            printf '{"count": %s, "cpu_s": %s}\n' "$done" \
                "$(awk -v a="$before" -v b="$(ticks "${PID[$router.$certificate]}")" -v hz="$(getconf CLK_TCK)" \
                    'BEGIN {print (b - a) / hz}')" >"$out/handshake.$name.$round.$router.json"
            printf '.' >&2
        done
    done
    printf '\n' >&2
}

# beside NAME CERTIFICATE: a request at a time on one connection, alone and while four others shake hands.
beside() {
    local router pids=() i
    for router in haproxy grapevine; do
        tests/bench/tls_beside.py "${PORT[$router.$2]}" $((2000 / scale)) >"$out/beside.alone-$1.1.$router.json"
        for i in 1 2 3 4; do
            background "$WORK/s_time.$i.log" openssl s_time -connect "127.0.0.1:${PORT[$router.$2]}" -new -time 60
            pids+=("$STARTED")
        done
        tests/bench/tls_beside.py "${PORT[$router.$2]}" $((2000 / scale)) >"$out/beside.$1.1.$router.json"
        stop "${pids[@]}"
        pids=()
    done
}

step "TLS towards clients (8 backends, $CONNECTIONS connections, $ROUNDS rounds)"
certificate ec ec -pkeyopt ec_paramgen_curve:prime256v1
certificate rsa rsa:2048
start_backends
for certificate in ec rsa; do
    start_haproxy $certificate
    start_grapevine $certificate
done
start_front
requests 1KB-TLS1.3 1024 TLSv1.3 20000
requests 1KB-TLS1.2 1024 TLSv1.2 20000
requests 32KB-TLS1.3 32768 TLSv1.3 10000
handshakes ECDSA-TLS1.3 ec -tls1_3
handshakes ECDSA-TLS1.2 ec -tls1_2
handshakes RSA-TLS1.3 rsa -tls1_3
handshakes RSA-TLS1.2 rsa -tls1_2
beside ECDSA ec
beside RSA rsa
tests/bench/table.py tls "$out" | tee "$BUILD/bench/tls.txt"
