#!/usr/bin/env bash
# `make demo`: the same conversations through three policies, side by side; then one conversation whose
# turns go to three routers in turn.
#
# Four simulated engines and three routers that share what they know, on free ports of 127.0.0.1,
# fresh for every policy; the mix of tests/bench/replay/trace_demo.c, each request at a random router.
# KEEP=1 leaves the last set running; REQUESTS=n sends only the first n of the mix to each policy.
# OBSERVE=1 starts Prometheus (Debian: prometheus) beside it, with the rules of deploy/prometheus/.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine" "$BUILD/gvctl" "$BUILD/tests/engine-sim" "$BUILD/tests/replay"

SPEED=${SPEED:-10}     # simulated seconds per second
CACHE=${CACHE:-100000} # tokens that one engine can keep
COUNT=3                # routers that share what they know
MODEL=demo-model

FIRST_ADMIN=$(free_port) # of the first router, under all three policies
step "Watch it work: http://127.0.0.1:$FIRST_ADMIN/ (in a browser on this machine, from now on)"
step "Grapevine demo: four engines, three routers, the same conversations under three policies"
say "Each simulated engine has an LRU prefix cache of $CACHE tokens and prefills 10,000 tokens/s;"
say "decoding slows with the running requests. Time runs ${SPEED} times as fast as real. 24 coding agents,"
say "36 chats, 120 questions about twelve documents and 40 one-shot prompts send streamed HTTP requests."
say "Each request goes to a random one of three routers, which share what they learn."
say

compressed "$SPEED"
engines_and_routers() { # POLICY
    start_engines 4 --model "$MODEL" --cache-tokens "$CACHE" --prefill-rate 10000 \
        --decode-base-ms 15 --decode-ns-per-context-token 30 --prefill-chunk 2048 --speed-up "$SPEED"
    start_routers shared "$COUNT" "$1" "${COMPRESSED[@]}"
}

# Prometheus finds the routers of the present policy in a file that it follows.
observe() {
    command -v prometheus >/dev/null || die "Prometheus is not installed: apt-get install prometheus"
    local port rules=$PWD/deploy/prometheus
    port=$(free_port)
    echo '[]' >"$WORK/routers.json"
    cat >"$WORK/prometheus.yml" <<YAML
global: {scrape_interval: 1s, evaluation_interval: 5s}
rule_files: ["$rules/recording.yaml", "$rules/alerts.yaml"]
scrape_configs:
  - job_name: grapevine
    file_sd_configs: [{files: ["$WORK/routers.json"], refresh_interval: 1s}]
YAML
    background "$WORK/prometheus.log" prometheus --config.file "$WORK/prometheus.yml" \
        --storage.tsdb.path "$WORK/prometheus" --web.listen-address "127.0.0.1:$port"
    PROMETHEUS=http://127.0.0.1:$port
    until_true 20 curl -fsS -o "$WORK/ready" "$PROMETHEUS/-/ready" ||
        { cat "$WORK/prometheus.log" >&2; die "Prometheus did not start"; }
    step "Prometheus: $PROMETHEUS (alerts: $PROMETHEUS/alerts; dashboard for Grafana: deploy/grafana/grapevine.json)"
    say
}

observed() { # POLICY: these routers are scraped from now on, each at least once before it goes on
    local targets=${ADMINS[*]#http://}
    printf '[{"targets": ["%s"], "labels": {"policy": "%s"}}]\n' "${targets// /\", \"}" "$1" >"$WORK/routers.json.new"
    mv "$WORK/routers.json.new" "$WORK/routers.json"
    until_true 20 sees "count(up{policy=\"$1\"} == 1) == $COUNT" || die "Prometheus does not see the routers"
}

sees() { # QUERY: it has a result
    curl -fsS -G "$PROMETHEUS/api/v1/query" --data-urlencode "query=$1" | grep -q '"value"'
}

# What it counted of all policies; routers that are gone count with their last value.
saw() {
    local query='sum by (policy) (max_over_time(grapevine_answered_cached_tokens_total[1h]))
        / sum by (policy) (max_over_time(grapevine_answered_prompt_tokens_total[1h]))'
    step "Share of prompt tokens served from cache, by policy, from Prometheus"
    curl -fsS -G "$PROMETHEUS/api/v1/query" --data-urlencode "query=$query" | python3 -c '
import json, sys
for row in json.load(sys.stdin)["data"]["result"]:
    print("  %-12s %5.1f %%" % (row["metric"]["policy"], 100 * float(row["value"][1])))'
    say
}

[ -z "${OBSERVE:-}" ] || observe
results=()
for policy in round_robin session cache_aware; do
    engines_and_routers "$policy"
    [ -z "${OBSERVE:-}" ] || observed "$policy"
    results+=("$WORK/$policy.json")
    [ -t 2 ] || say "  $policy ..."
    flags=(${REQUESTS:+--requests-max "$REQUESTS"})
    for i in "${!ROUTERS[@]}"; do
        flags+=(--target "${ROUTERS[$i]}" --pid "${ROUTER_PIDS[$i]}")
    done
    "$BUILD/tests/replay" "${flags[@]}" --trace demo --speed-up "$SPEED" \
        --model "$MODEL" --label "$policy" --json "$WORK/$policy.json" >"$WORK/$policy.txt" ||
        { cat "$WORK/$policy.txt" "$WORK"/router-*.log >&2; die "the run failed"; }
    [ -z "${OBSERVE:-}" ] || until_true 20 sees "count(timestamp(up{policy=\"$policy\"}) > $(($(date +%s) + 1))) == $COUNT" ||
        die "Prometheus no longer sees the routers"
    [ "$policy" = cache_aware ] || stop "${ENGINE_PIDS[@]}" "${ROUTER_PIDS[@]}"
done

step "Results at the clients (in seconds of the simulated engines)"
tests/bench/table.py policies "${results[@]}"
say
tests/bench/table.py verdict "${results[@]}"
say

[ -z "${OBSERVE:-}" ] || saw
step "One conversation, with each turn at another router"
tests/bench/turns.py "$MODEL" "${ROUTERS[@]}"
say

step "Cluster members, seen by router 1 ($BUILD/gvctl --admin ${ADMINS[0]} members)"
"$BUILD/gvctl" --admin "${ADMINS[0]}" members
say
step "Check that all three routers have the same state ($BUILD/gvctl --admin ${ADMINS[0]} convergence --wait)"
"$BUILD/gvctl" --admin "${ADMINS[0]}" convergence --wait
say

step "Replicas, seen by router 1 ($BUILD/gvctl --admin ${ADMINS[0]} replicas)"
"$BUILD/gvctl" --admin "${ADMINS[0]}" replicas
say

step "Try it by hand"
body='{"model":"'$MODEL'","stream":true,"max_tokens":20,"messages":[{"role":"user","content":"Hello, grapevine"}]}'
[ -n "${KEEP:-}" ] || say "The demo has stopped its processes. After make demo KEEP=1 these commands work, with the ports that it prints:"
say "  curl -iN ${ROUTERS[0]}/v1/chat/completions -H 'content-type: application/json' -d '$body'"
say "  echo '$body' | $BUILD/gvctl --admin ${ADMINS[0]} explain    shows the cost at each engine, term by term"
say "  curl ${ADMINS[0]}/metrics    shows all metrics"
if [ -n "${KEEP:-}" ]; then
    say
    say "The demo is still running, with logs in $WORK. Stop it with: kill ${PIDS[*]}"
    trap - EXIT INT TERM
fi
