#!/usr/bin/env bash
# `make test-clients`: the official OpenAI clients for Python and Node, and Anthropic's for Python,
# against grapevine in front of two simulated engines. Needs their package registries once; what is
# not reachable is skipped with a line that says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine" "$BUILD/tests/engine-sim"
CLIENTS=$BUILD/clients
mkdir -p "$CLIENTS"

start_engines 2 --model sim --prompt-tokens-details on --speed-up 20
start_router cache_aware
export ADMIN OPENAI_BASE_URL=$ROUTER/v1 OPENAI_API_KEY=none ANTHROPIC_BASE_URL=$ROUTER ANTHROPIC_API_KEY=none
failed=0
passed=0
skipped=0

run() { # NAME COMMAND...
    local name=$1
    shift
    step "$name"
    if timeout 120 "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

if [ -x "$CLIENTS/venv/bin/python" ] ||
    { python3 -m venv "$CLIENTS/venv" && "$CLIENTS/venv/bin/pip" -q --disable-pip-version-check \
        install openai anthropic; } >"$CLIENTS/pip.log" 2>&1; then
    run "Python clients" "$CLIENTS/venv/bin/python" tests/clients/client.py
else
    rm -rf "$CLIENTS/venv"
    say "skipped: the Python clients cannot be installed here (see $CLIENTS/pip.log)"
    skipped=$((skipped + 1))
fi

if command -v npm >/dev/null && { [ -d "$CLIENTS/node_modules/openai" ] ||
    npm --prefix "$CLIENTS" --no-audit --no-fund install openai >"$CLIENTS/npm.log" 2>&1; }; then
    cp tests/clients/client.mjs "$CLIENTS/client.mjs"
    run "Node client" node "$CLIENTS/client.mjs"
else
    say "skipped: the Node client cannot be installed here (see $CLIENTS/npm.log)"
    skipped=$((skipped + 1))
fi
say "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
