#!/usr/bin/env bash
# `make deploy-tools`: what the tests of deploy/ use where it is there: Helm, by Go's module proxy, and the published
# schemas of Kubernetes with a program that knows them, by PyPI. They go to a folder outside the tree
# (DEPLOY_TOOLS, else ~/.cache/grapevine), once. Helm takes some minutes to build.
set -euo pipefail
HELM=v3.22.0
SCHEMAS=1.37.0
tools=${DEPLOY_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/grapevine}
mkdir -p "$tools/bin"
if ! command -v helm >/dev/null && [ ! -x "$tools/bin/helm" ]; then
    command -v go >/dev/null || { echo "Go is not here, to build Helm with" >&2; exit 1; }
    echo "Building Helm $HELM into $tools/bin ..."
    GOBIN=$tools/bin nice go install "helm.sh/helm/v3/cmd/helm@$HELM"
fi
if [ ! -x "$tools/venv/bin/kubernetes-validate" ]; then
    echo "Installing kubernetes-validate $SCHEMAS into $tools/venv ..."
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install -q "kubernetes-validate==$SCHEMAS"
fi
echo "Helm and kubernetes-validate are here. make test-one TEST=test_deploy_kubernetes"
