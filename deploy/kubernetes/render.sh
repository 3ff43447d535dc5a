#!/usr/bin/env bash
# Writes the plain manifests that the Helm chart renders, to the folder OUT (default: beside this file).
#
#   deploy/kubernetes/render.sh [OUT] [HELM]
#
# The chart's copies of the rules and of the dashboard are made anew first. What only Helm knows (its labels,
# annotations of hooks) is left out. A test compares what is committed with what this writes
# (tests/e2e/test_deploy_kubernetes.py).
set -euo pipefail
cd "$(dirname "$0")/../.."
out=${1:-deploy/kubernetes}
helm=${2:-helm}
chart=deploy/helm/grapevine

cp deploy/prometheus/recording.yaml deploy/prometheus/alerts.yaml deploy/grafana/grapevine.json $chart/files/

render() { # render FILE TITLE FLAG... -- TEMPLATE...
    local file=$1 title=$2 flags=() templates=()
    shift 2
    while [ "$1" != -- ]; do
        flags+=("$1")
        shift
    done
    shift
    for template in "$@"; do
        templates+=(--show-only "templates/$template.yaml")
    done
    {
        printf '# %s\n# Rendered from %s by deploy/kubernetes/render.sh: change that, not this.\n' "$title" "$chart"
        # A Helm that Go's module proxy brought takes itself for that of an old cluster.
        "$helm" template grapevine $chart --namespace grapevine --kube-version 1.27.0 \
            -f deploy/kubernetes/values.yaml "${flags[@]}" "${templates[@]}" |
            sed -E '/^# Source: /d; /^ +(helm\.sh\/|app\.kubernetes\.io\/managed-by:)/d' |
            awk '
                { line[NR] = $0 }
                END {
                    for (i = 1; i <= NR; i++) { # an `annotations:` that has nothing left
                        match(line[i], /^ */); own = RLENGTH
                        match(line[i + 1], /^ */)
                        if (line[i] ~ /^ +annotations:$/ && RLENGTH <= own)
                            continue
                        print line[i]
                    }
                }'
    } >"$out/$file"
}

mkdir -p "$out"
render rbac.yaml 'The service account of the routers, and its right to see the engines. In another namespace than "grapevine" change
# the names with it: "grapevine-grapevine-replicas" of two clusters would be one.' -- rbac
render key.yaml 'Makes the secret of the cluster, once: the first thing to apply, behind the namespace. Change the image here, too.' -- key
render router.yaml 'Three routers in front of the engines behind the service "vllm" of the namespace "inference".' \
    --set autoscaling.enabled=false -- configmap service service-gossip deployment poddisruptionbudget networkpolicy
render kv-events.yaml 'Optional: a port where engines connect to publish KV-cache events. Any pod of the namespace "inference" reaches it.
# Also add this line to the ConfigMap of router.yaml, and restart the routers (docs/how-to/kubernetes.md):
#     kv-events-listen: "0.0.0.0:5557"' --set ports.kvEvents=5557 -- kv-events
render autoscaler.yaml 'Optional: as many routers as their CPU and requests in flight want (a metrics adapter tells the latter).
# First take "replicas" out of what was applied, or each "kubectl apply" of router.yaml brings back three (docs/how-to/kubernetes.md).' \
    -- autoscaler
render monitoring.yaml 'Optional, with the Prometheus operator: what to scrape, and the alerts.' -- monitoring
