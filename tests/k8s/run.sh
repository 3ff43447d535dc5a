#!/usr/bin/env bash
# `make test-k8s`: grapevine against a real kube-apiserver with etcd, in a network of its own.
#
# Needs Go and its module proxy (kube-apiserver is built below build/k8s, once: about five minutes),
# etcd (Debian: etcd-server) and a right to make network namespaces; it is no part of the ordinary
# run, and says what is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine"
KUBERNETES=1.34.4
HOME_DIR=$(realpath -m "$BUILD/k8s")
API=$HOME_DIR/kube-apiserver-$KUBERNETES
LIMIT=1200 # seconds, to build it

skip() {
    say "skipped: $1"
    exit 0
}

# Kubernetes as a module has its own parts replaced by folders beside it, which the proxy has as
# modules: they are put in their places.
write_module() { # write_module GO_MOD_OF_KUBERNETES
    python3 - "$1" "$KUBERNETES" <<'PY'
import re
import sys
text = open(sys.argv[1]).read()
version = sys.argv[2]
print("module scratch\n\ngo %s\n" % re.search(r"^go (\S+)", text, re.M).group(1))
print("require k8s.io/kubernetes v%s\n" % version)
for name in sorted(set(re.findall(r"^\s*(k8s\.io/\S+) v0\.0\.0$", text, re.M))):
    print("replace %s => %s v0%s" % (name, name, version[1:]))
PY
    printf '//go:build tools\n\npackage scratch\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' >tools.go
}

build() {
    mkdir -p "$HOME_DIR/module" && cd "$HOME_DIR/module" && rm -f go.mod go.sum &&
        go mod init scratch && go mod download "k8s.io/kubernetes@v$KUBERNETES" &&
        write_module "$(go env GOMODCACHE)/k8s.io/kubernetes@v$KUBERNETES/go.mod" >go.mod.new &&
        mv go.mod.new go.mod &&
        GOFLAGS=-mod=mod nice -n 19 timeout "$LIMIT" go build -o "$API.new" k8s.io/kubernetes/cmd/kube-apiserver &&
        mv "$API.new" "$API"
}

command -v etcd >/dev/null || skip "etcd is not here (Debian: etcd-server)"
unshare -n true 2>/dev/null || skip "no network namespace can be made here (root may)"
if [ ! -x "$API" ]; then
    command -v go >/dev/null || skip "Go is not here, to build kube-apiserver with"
    step "Building kube-apiserver $KUBERNETES (some minutes, once) ..."
    mkdir -p "$HOME_DIR"
    if ! (build) >"$HOME_DIR/build.log" 2>&1; then
        tail -n 5 "$HOME_DIR/build.log"
        skip "kube-apiserver cannot be built here (see $HOME_DIR/build.log)"
    fi
fi
step "Checking"
# Endpoints may not be loopback addresses: here is another one, on an interface of this network alone.
KUBE_APISERVER=$API BUILD=$BUILD PYTHONPATH=tests/e2e PYTHONDONTWRITEBYTECODE=1 unshare -n sh -c \
    'ip link set lo up && ip addr add 192.0.2.1/32 dev lo && exec python3 tests/k8s/check.py -v'
