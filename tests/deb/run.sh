#!/usr/bin/env bash
# The package in a fresh Debian 12 with a real systemd, from `apt install` to `apt purge`: how long until a request is
# answered, with what rights it runs, what a hang, a stop, an upgrade and wrong settings do.
#
#   tests/deb/run.sh BUILD    (as root; wants mmdebstrap and Debian's archive; ports 8080 and 9090 are free)
#
# The fresh system is made once (BUILD/debian.tar). It boots in namespaces of its own, but for the network.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=$(realpath "${1:-build}")
[ "$(id -u)" -eq 0 ] || { echo "skipped: want root"; exit 0; }
command -v mmdebstrap >/dev/null || { echo "skipped: want mmdebstrap"; exit 0; }
if ss -Hltn '( sport = :8080 or sport = :9090 or sport = :8001 )' | grep -q .; then
    echo "skipped: port 8080, 9090 or 8001 is taken"
    exit 0
fi

base=$BUILD/debian.tar
if [ ! -e "$base" ]; then
    echo "making a fresh Debian 12"
    mmdebstrap --quiet --format=tar --variant=minbase --include=systemd-sysv,dbus,curl,ca-certificates bookworm "$base.new"
    mv "$base.new" "$base"
fi
package=$(VERSION_SUFFIX=+first deploy/debian/build.sh)
later=$(VERSION_SUFFIX=+later deploy/debian/build.sh)

root=$(mktemp -d)
boot=
ended() {
    local status=$?
    set +e
    [ "$status" -eq 0 ] || inside journalctl -u grapevine --no-pager -n 30 || cat "$root/boot.log"
    [ -z "$boot" ] || { kill -KILL "$boot"; wait "$boot"; } 2>/dev/null
    rm -rf "$root"
    rm -f "$package" "$later"
    exit "$status"
}
trap ended EXIT
tar -xf "$base" -C "$root"
cp "$package" "$root/first.deb"
cp "$later" "$root/later.deb"
cp "$BUILD/tests/engine-sim" "$root/usr/local/bin/"
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp -a /etc/apt/. "$root/etc/apt/" # wherever this machine gets its packages

# --- a system that boots ------------------------------------------------------------------------

unshare -mpfu --kill-child bash -c '
    set -e
    mount --make-rprivate /
    mount --bind "$1" "$1"
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount -t tmpfs tmpfs "$1/run"
    mount --rbind /dev "$1/dev"
    mount -t tmpfs tmpfs "$1/sys/fs/cgroup"
    mkdir "$1/sys/fs/cgroup/systemd"
    mount -t cgroup -o none,name=systemd cgroup "$1/sys/fs/cgroup/systemd"
    hostname fresh
    mkdir -p "$1/old"
    cd "$1"
    pivot_root . old # in a mere chroot no user namespace can be made: PrivateUsers
    umount -l /old
    exec env -i container=namespaces PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd' bash "$root" \
    >"$root/boot.log" 2>&1 &
boot=$!

inside() {
    local first
    first=$(pgrep -P "$boot" | head -n 1)
    nsenter -t "$first" -m -p -u -r env -i DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        "$@" </dev/null
}

until_ok() { # until_ok SECONDS COMMAND...
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || { echo "FAIL: never: $*"; exit 1; }
        sleep 0.1
    done
}

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

value() { inside systemctl show -P "$1" grapevine; }
is() { [ "$(value "$1")" = "$2" ]; }
status_says() { value StatusText | grep -q "$1"; }
ask() { # ask TOKENS: a stream, whole if its last event came
    inside curl -sN --max-time 60 http://127.0.0.1:8080/v1/completions -H 'content-type: application/json' \
        -d "{\"model\":\"m\",\"stream\":true,\"max_tokens\":$1,\"ignore_eos\":true,\"prompt\":\"tell me\"}"
}
service_reads() { inside setpriv --reuid grapevine --regid grapevine --clear-groups cat "$1" >"$root/read"; }
whole() { grep -q '^data: \[DONE\]' "$1"; }
streams() { inside curl -s http://127.0.0.1:9090/metrics | grep -q '^grapevine_requests_open 2'; }

until_ok 60 inside systemctl is-system-running
inside apt-get update -qq >"$root/apt.log" 2>&1

# --- from the package to an answer --------------------------------------------------------------

began=$(date +%s%N)
inside apt-get install -y -qq /first.deb >"$root/apt.log" 2>&1 || { cat "$root/apt.log"; exit 1; }
installed=$(date +%s%N)
want "it runs as soon as it is installed" is ActiveState active
want "its status says what is missing" until_ok 5 status_says 'Not ready: .* name one in /etc/grapevine/replicas'
inside systemd-run -q --unit=engine /usr/local/bin/engine-sim --listen 127.0.0.1:8001 --model m
edited=$(date +%s%N)
echo http://127.0.0.1:8001 >>"$root/etc/grapevine/replicas"
until_ok 20 inside gvctl ready
ask 8 >"$root/answer"
answered=$(date +%s%N)
want "an answer, one file edited" whole "$root/answer"
seconds() { awk -v n="$1" 'BEGIN { printf "%.1f", n / 1e9 }'; }
echo "     from apt install to installed $(seconds $((installed - began))) s, from the edit to an answer $(seconds $((answered - edited))) s"
want "its status says so" until_ok 5 status_says 'Ready: replicas up: 1'

# --- with what rights ---------------------------------------------------------------------------

pid=$(value MainPID)
proc() { inside awk -v key="$1:" '$1 == key { print $2 }' "/proc/$pid/status"; }
want "it is nobody in particular" [ "$(inside stat -c %U "/proc/$pid")" = grapevine ]
want "no capability, a seccomp filter, no new privileges" [ "$(proc CapEff) $(proc Seccomp) $(proc NoNewPrivs)" = "0000000000000000 2 1" ]
want "its root is read-only" inside awk '$2 == "/" { n = $4 } END { exit n !~ /(^|,)ro/ }' "/proc/$pid/mounts"
exposure=$(inside systemd-analyze security --no-pager grapevine | sed -n 's/.*exposure level for grapevine.service: \([0-9.]*\).*/\1/p')
want "systemd-analyze security: $exposure" awk -v e="$exposure" 'BEGIN { exit e == "" || e > 2.0 }'

# --- a hang, a stop, an upgrade -----------------------------------------------------------------

mkdir -p "$root/etc/systemd/system/grapevine.service.d"
printf '[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\nTimeoutStopSec=2s\n' >"$root/etc/systemd/system/grapevine.service.d/test.conf"
inside systemctl daemon-reload
inside systemctl restart grapevine
pid=$(value MainPID)
inside kill -STOP "$pid"
another() { local now; now=$(value MainPID); [ "$now" != "$pid" ] && [ "$now" != 0 ] && is ActiveState active; }
want "a loop that hangs is started again" until_ok 20 another
until_ok 20 inside gvctl ready

ask 300 >"$root/stream" &
stream=$!
until_ok 10 streams
pid=$(value MainPID)
inside apt-get install -y -qq /later.deb >"$root/apt.log" 2>&1 || { cat "$root/apt.log"; exit 1; }
wait "$stream" || true
want "an upgrade cuts no answer, whatever TimeoutStopSec is" whole "$root/stream"
want "and the new one runs" another
want "of the new version" inside dpkg-query -W -f '${Version}\n' grapevine

pid=$(value MainPID)
echo 'no-such-setting: 1' >>"$root/etc/grapevine/grapevine.yaml"
inside apt-get install -y -qq --reinstall --allow-downgrades /first.deb >"$root/apt.log" 2>&1 || { cat "$root/apt.log"; exit 1; }
want "an upgrade that does not understand the settings says so" grep -q 'no-such-setting' "$root/apt.log"
want "and lets the old one run" is MainPID "$pid"
inside systemctl restart grapevine 2>/dev/null || true
want "a restart with wrong settings fails once, and is not tried again" is NRestarts 0
want "the reason stands in its status" grep -q 'no-such-setting' <(inside systemctl status --no-pager grapevine)
sed -i '/no-such-setting/d' "$root/etc/grapevine/grapevine.yaml"
inside systemctl restart grapevine
want "put right, it starts" is ActiveState active
inside gvctl keygen --out /etc/grapevine/cluster.key >/dev/null
want "what root makes with gvctl there the service may read" service_reads /etc/grapevine/cluster.key
inside chown root:root /etc/grapevine/cluster.key
inside chmod 600 /etc/grapevine/cluster.key
pid=$(value MainPID)
cp "$root/etc/grapevine/grapevine.yaml" "$root/before.yaml"
printf 'cluster-key-file: /etc/grapevine/cluster.key\ngossip-listen: 127.0.0.1:0\n' >>"$root/etc/grapevine/grapevine.yaml"
inside apt-get install -y -qq --reinstall --allow-downgrades /first.deb >"$root/apt.log" 2>&1 || { cat "$root/apt.log"; exit 1; }
want "an upgrade finds a key that root alone may read" grep -q 'cluster.key' "$root/apt.log"
want "and lets the old one run, which the new one could not" is MainPID "$pid"
cp "$root/before.yaml" "$root/etc/grapevine/grapevine.yaml"
inside chown root:grapevine /etc/grapevine/cluster.key
inside chmod 640 /etc/grapevine/cluster.key
printf 'cluster-key-file: /etc/grapevine/cluster.key\ngossip-listen: 127.0.0.1:0\n' >>"$root/etc/grapevine/grapevine.yaml"
inside systemctl restart grapevine
want "it reads a key that its group may read" until_ok 10 inside gvctl ready
want "and is a cluster of one" grep -q alive <(inside gvctl members)

# --- TLS, keys, tokens, a port for probes: as docs/how-to/secure.md tells it ----------------------

. tests/lib/page_commands.sh
inside bash -euc "cd /root; $(page_commands 'Make the files')
$(page_commands 'Debian package')" >"$root/page" 2>&1 || { cat "$root/page"; exit 1; }
want "with TLS, keys and tokens it answers" grep -q '"id":"m"' "$root/page"
want "gvctl finds both by the settings" grep -q 'replicas.*1 up' "$root/page"
want "probes have a port" grep -qx ready "$root/page"
code() { inside curl -s -o /dev/null -w '%{http_code}' --cacert /root/ca.crt "$@"; }
want "a client without a key does not come in" [ "$(code https://localhost:8080/v1/models)" = 401 ]
want "and nobody reads without a token" [ "$(code https://localhost:9090/replicas)" = 401 ]
inside systemctl stop grapevine
want "a stop is no failure" is Result success

# --- and gone -----------------------------------------------------------------------------------

inside apt-get purge -y -qq grapevine >"$root/apt.log" 2>&1 || { cat "$root/apt.log"; exit 1; }
rm -r "$root/etc/systemd/system/grapevine.service.d"
left=$(find "$root"/{etc,usr,lib,var/lib} -xdev -iname '*grapevine*' ! -path '*/var/lib/apt/*' | sed "s|$root||")
want "after purge nothing is left: ${left:-no file}" [ -z "$left" ]
want "nor the user" [ -z "$(grep grapevine "$root/etc/passwd" "$root/etc/group" "$root/etc/shadow" || true)" ]
