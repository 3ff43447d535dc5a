#!/usr/bin/env bash
# `make test-k8s`: grapevine against a real kube-apiserver with etcd, in a network of its own. With NODE=1 (`make
# test-k8s-node`) the manifests as they stand, on a node: kubelet, containerd, kube-proxy, scheduler, controllers, and
# kube-router for the policies.
#
# Needs Go and its module proxy (the parts of Kubernetes are built below build/k8s, once: five to ten minutes), etcd
# (Debian: etcd-server) and a right to make network namespaces; a node needs root, containerd, buildah,
# containernetworking-plugins, iptables, ipset, and kubectl and Helm (make deploy-tools), too. It is no part of the
# ordinary run, and says what is missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/lib.sh
need "$BUILD/grapevine"
KUBERNETES=1.34.4
POLICIES=2.1.0 # of kube-router, which enforces network policies on a node
HOME_DIR=$(realpath -m "$BUILD/k8s")
PARTS=(kube-apiserver)
LIMIT=1200 # seconds, to build it
# Charts ask which version a cluster has; a build from the module does not know.
NAMED="-X k8s.io/component-base/version.gitVersion=v$KUBERNETES"

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
    printf '//go:build tools\n\npackage scratch\n\n' >tools.go
    printf 'import _ "k8s.io/kubernetes/cmd/%s"\n' "${PARTS[@]}" >>tools.go
}

build() { # build PART
    mkdir -p "$HOME_DIR/module" && cd "$HOME_DIR/module" && rm -f go.mod go.sum &&
        go mod init scratch && go mod download "k8s.io/kubernetes@v$KUBERNETES" &&
        write_module "$(go env GOMODCACHE)/k8s.io/kubernetes@v$KUBERNETES/go.mod" >go.mod.new &&
        mv go.mod.new go.mod &&
        GOFLAGS=-mod=mod nice -n 19 timeout "$LIMIT" go build -ldflags "$NAMED" -o "$HOME_DIR/$1.new" \
            "k8s.io/kubernetes/cmd/$1" &&
        mv "$HOME_DIR/$1.new" "$HOME_DIR/$1-$KUBERNETES"
}

command -v etcd >/dev/null || skip "etcd is not here (Debian: etcd-server)"
unshare -n true 2>/dev/null || skip "no network namespace can be made here (root may)"
if [ -n "${NODE:-}" ]; then
    PARTS+=(kubelet kube-proxy kube-scheduler kube-controller-manager)
    [ "$(id -u)" -eq 0 ] || skip "a node wants root"
    for program in containerd ctr runc buildah nft iptables ipset; do
        command -v $program >/dev/null || skip "$program is not here (Debian: containerd, buildah, nftables, iptables, ipset)"
    done
    [ -x /usr/lib/cni/ptp ] || skip "/usr/lib/cni/ptp is not here (Debian: containernetworking-plugins)"
    PATH=$PATH:${DEPLOY_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/grapevine}/bin
    command -v kubectl >/dev/null || skip "kubectl is not here (make deploy-tools)"
fi
for part in "${PARTS[@]}"; do
    [ ! -x "$HOME_DIR/$part-$KUBERNETES" ] || continue
    command -v go >/dev/null || skip "Go is not here, to build $part with"
    step "Building $part $KUBERNETES (some minutes, once) ..."
    mkdir -p "$HOME_DIR"
    if ! (build "$part") >"$HOME_DIR/build.log" 2>&1; then
        tail -n 5 "$HOME_DIR/build.log"
        skip "$part cannot be built here (see $HOME_DIR/build.log)"
    fi
done
if [ -n "${NODE:-}" ] && [ ! -x "$HOME_DIR/kube-router-$POLICIES" ]; then
    command -v go >/dev/null || skip "Go is not here, to build kube-router with"
    step "Building kube-router $POLICIES (some minutes, once) ..."
    if ! GOBIN=$HOME_DIR/new nice -n 19 timeout "$LIMIT" go install \
        "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router@v$POLICIES" >"$HOME_DIR/build.log" 2>&1; then
        tail -n 5 "$HOME_DIR/build.log"
        skip "kube-router cannot be built here (see $HOME_DIR/build.log)"
    fi
    mv "$HOME_DIR/new/kube-router" "$HOME_DIR/kube-router-$POLICIES"
fi
export KUBE_ROUTER=$HOME_DIR/kube-router-$POLICIES
export KUBE_APISERVER=$HOME_DIR/kube-apiserver-$KUBERNETES BUILD PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=tests/e2e:tests/k8s:tests/k8s/node
if [ -n "${NODE:-}" ]; then
    step "Making the images"
    IMAGES=$(mktemp -d)
    export IMAGES
    groups=$(for g in /sys/fs/cgroup/*/tasks; do echo "${g%/tasks}/grapevine-node"; done)
    [ -e /sys/fs/cgroup/cpu/tasks ] || groups=/sys/fs/cgroup/grapevine-node
    # What the kubelet made there is left when its processes are gone.
    ended() {
        rm -rf "$IMAGES"
        for g in $groups; do
            find "$g" -depth -type d -exec rmdir {} + 2>/dev/null || true
        done
    }
    trap ended EXIT
    tests/k8s/node/images.sh "$BUILD" "$IMAGES"
    mkdir -p $groups
    step "Checking"
    # The default route is that of kube-proxy's addresses: it leads to nobody. All that runs ends with the namespace of
    # processes.
    unshare --net --mount --pid --fork --kill-child --mount-proc sh -c '
        ! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
        ip link set lo up && ip addr add 192.0.2.1/32 dev lo && sysctl -qw net.ipv4.ip_forward=1 &&
        ip link add out type veth peer name nobody && ip link set out up && ip link set nobody up &&
        ip route add default dev out src 192.0.2.1 && exec python3 tests/k8s/node/check_node.py -v '"${TEST:-}"
    exit
fi
step "Checking"
# Endpoints may not be loopback addresses: here is another one, on an interface of this network alone.
unshare -n sh -c 'ip link set lo up && ip addr add 192.0.2.1/32 dev lo && exec python3 tests/k8s/check.py -v '"${TEST:-}"
