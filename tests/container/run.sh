#!/usr/bin/env bash
# The image, built by buildah without a registry and run by podman: read-only, without a capability, its health check
# by its own binary. With CONTAINERFILE=1 also deploy/Containerfile as a registry's user would build it, over a Debian 12
# of this machine's making (it compiles everything anew).
#
#   tests/container/run.sh BUILD    (as root; wants buildah, podman and crun or runc)
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${1:-build}")
[ "$(id -u)" -eq 0 ] || { echo "skipped: want root"; exit 0; }
for program in buildah podman; do
    command -v $program >/dev/null || { echo "skipped: want $program"; exit 0; }
done
# crun refuses cgroups of both versions at once; what follows needs none.
if [ -z "${IN_NAMESPACE:-}" ]; then
    IN_NAMESPACE=1 exec unshare -m "$0" "$BUILD"
fi
umount /sys/fs/cgroup/unified 2>/dev/null || true

scratch=$(mktemp -d)
storage=(--storage-driver vfs --root "$scratch/storage" --runroot "$scratch/run")
engine=
ended() {
    local status=$?
    set +e
    [ "$status" -eq 0 ] || podman "${storage[@]}" logs router
    podman "${storage[@]}" rm -f -t 0 router >/dev/null 2>&1
    [ -z "$engine" ] || kill "$engine"
    rm -rf "$scratch"
    exit "$status"
}
trap ended EXIT
want() { # want WHAT COMMAND...
    local what=$1
    shift
    if "$@"; then
        echo "ok   $what"
    else
        echo "FAIL $what"
        exit 1
    fi
}
until_ok() { # until_ok COMMAND...
    local end=$((SECONDS + 20))
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        sleep 0.2
    done
}

line=$(BUILD=$BUILD deploy/container/image.sh)
echo "     ${line##*/}"
podman "${storage[@]}" load -q -i "${line%%: *}" >/dev/null
image=$(podman "${storage[@]}" images -q | head -n 1)

if [ -n "${CONTAINERFILE:-}" ]; then
    [ -e "$BUILD/debian.tar" ] || { echo "FAIL make test-deb makes the Debian 12 that this wants"; exit 1; }
    podman "${storage[@]}" import -q "$BUILD/debian.tar" docker.io/library/debian:12-slim >/dev/null
    buildah "${storage[@]}" bud --isolation chroot --pull-never --format docker -t grapevine:containerfile -f deploy/Containerfile . \
        >"$scratch/log" 2>&1 || { tail -n 30 "$scratch/log"; exit 1; }
    echo "ok   deploy/Containerfile builds"
    image=localhost/grapevine:containerfile
fi

"$BUILD/tests/engine-sim" --listen 127.0.0.1:0 --model m >"$scratch/engine" 2>&1 &
engine=$!
until_ok grep -q 127.0.0.1: "$scratch/engine"
at=$(grep -o '127\.0\.0\.1:[0-9]*' "$scratch/engine" | head -n 1)
port=$((20000 + RANDOM % 10000)) files=$(ulimit -Hn)
# podman adds a timer of systemd for the health check, where there is one.
run() { # run OPTION...
    podman "${storage[@]}" run -d --name router --network host --cgroups disabled --ulimit "nofile=$files:$files" \
        --ulimit nproc=1000:1000 --read-only --cap-drop all --security-opt no-new-privileges "$@" >/dev/null 2>"$scratch/podman" ||
        { cat "$scratch/podman"; exit 1; }
}
run -e "GRAPEVINE_LISTEN=127.0.0.1:$port" -e "GRAPEVINE_ADMIN_LISTEN=127.0.0.1:$((port + 1))" "$image" --replica "http://$at" \
    --drain-delay 0
ask() {
    curl -sf "http://127.0.0.1:$port/v1/completions" -H 'content-type: application/json' -d '{"model":"m","max_tokens":4,"prompt":"hi"}'
}
want "it answers" until_ok ask
want "its health check" podman "${storage[@]}" healthcheck run router
want "it is no root" [ "$(podman "${storage[@]}" inspect router --format '{{.Config.User}}')" = 65532:65532 ]
want "it has no shell" bash -c '! "$@"' bash podman "${storage[@]}" exec router /bin/sh -c true 2>/dev/null
podman "${storage[@]}" stop -t 20 router >/dev/null 2>&1
want "it ends by itself" [ "$(podman "${storage[@]}" inspect router --format '{{.State.ExitCode}}')" = 0 ]
podman "${storage[@]}" rm router >/dev/null

# TLS for clients and for the admin port, keys of clients, tokens, a port for probes: as docs/how-to/secure.md tells it.
. tests/lib/page_commands.sh
if ss -Hltn '( sport = :8443 or sport = :9090 or sport = :9091 )' | grep -q .; then
    echo "skipped: port 8443, 9090 or 9091 is taken; what docs/how-to/secure.md tells is not tried"
    exit 0
fi
mkdir "$scratch/bin"
ln -s "$BUILD/gvctl" "$scratch/bin/gvctl"
podman "${storage[@]}" tag "$image" grapevine
{ # podman as it is used above
    printf '#!/bin/bash\nstorage=(%s)\n' "${storage[*]}"
    printf 'if [ "$1" = run ]; then\n    shift\n'
    printf '    set -- run --network host --cgroups disabled --ulimit nofile=%s:%s --ulimit nproc=1000:1000 "$@"\nfi\n' "$files" "$files"
    printf 'exec %s "${storage[@]}" "$@"\n' "$(command -v podman)"
} >"$scratch/bin/podman"
chmod 755 "$scratch/bin/podman"
page_yaml 'Container' | sed "s|http://10.0.0.1:8000|http://$at|" >"$scratch/settings"
script="$(page_commands 'Make the files')
cp settings files/grapevine.yaml
$(page_commands 'Container')"
(cd "$scratch" && PATH=$scratch/bin:$PATH bash -euc "$script") >"$scratch/page" 2>&1 || { cat "$scratch/page"; exit 1; }
want "what the page tells works: by TLS, to a key" grep -q '"id":"m"' "$scratch/page"
want "and for gvctl, inside and outside" grep -q "^replicas  *1: 1 up" <(grep -A9 "^REPLICA .*HEALTH" "$scratch/page")
want "nobody comes in without a key" [ "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$scratch/ca.crt" \
    "https://localhost:8443/v1/models")" = 401 ]
podman "${storage[@]}" rm -f -t 20 router >/dev/null 2>&1

# The health check asks the port for probes, where the admin port is elsewhere.
etc=$scratch/files
sed -i 's/^admin-listen: .*/admin-listen: 127.0.0.2:9090/' "$etc/grapevine.yaml"
run -v "$etc:/etc/grapevine:ro" -e GRAPEVINE_CONFIG=/etc/grapevine/grapevine.yaml "$image"
want "a port for probes" until_ok curl -sf http://127.0.0.1:9091/readyz
want "its health check, there" podman "${storage[@]}" healthcheck run router
