#!/bin/sh
# Makes this host a router, as root, from the files of a folder. What is as it should be already is left alone, so it
# may be run again at any time. rollout.sh runs it on each host; a tool of your own may as well.
#
#   host.sh FOLDER [SECONDS]
#
# The folder may have:
#   grapevine.deb    installed where another version is, or none
#   cluster.key      to /etc/grapevine, for root and the group grapevine alone; read without a restart
#   replicas         to /etc/grapevine; read without a restart
#   files/           certificates, tokens, keys that the settings name: each to /etc/grapevine, for root and the group
#                    grapevine alone; read without a restart
#   grapevine.yaml   to /etc/grapevine, if the router understands it, and its user may read what it names; a change
#                    restarts it, and that waits for its open answers
# Ends when the router is ready; fails if it is not within SECONDS (120), and says what it waits for.
set -eu
from=${1:?the folder with the files} seconds=${2:-120}
etc=/etc/grapevine
restart= changed=

say() { echo "$(uname -n): $*"; }

# put FILE MODE: into place in one step. False if it was there as it is. `set -e` does not reach in here: callers say `||`.
put() {
    to=$etc/${1##*/}
    [ -e "$from/$1" ] || return 1
    ! cmp -s "$from/$1" "$to" || return 1
    install -m "$2" -o root -g grapevine "$from/$1" "$to.new" && mv "$to.new" "$to" || { say "cannot write $to" >&2; exit 1; }
    say "updated $to"
    changed=yes
}

# check FILE: as the service would read it, with its user and groups. Root may read keys that the service may not, and a
# router that ends with status 2 is not started again.
check() {
    user=$(systemctl show -P User grapevine.service 2>/dev/null) || true
    user=${user:-grapevine}
    more=$(systemctl show -P SupplementaryGroups grapevine.service 2>/dev/null) || true
    groups=$(echo $(id -G "$user") $more | tr ' ' ,)
    setpriv --reuid "$user" --regid "$(id -g "$user")" --groups "$groups" grapevine --check-config --config "$1" >/dev/null
}

if [ -e "$from/grapevine.deb" ]; then
    want=$(dpkg-deb -f "$from/grapevine.deb" Version)
    have=$(dpkg-query -W -f='${Version}' grapevine 2>/dev/null || true)
    if [ "$want" != "$have" ]; then
        say "installing $want${have:+ over $have}"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Options::=--force-confold "$from/grapevine.deb" \
            >"$from/apt.log" 2>&1 || { cat "$from/apt.log" >&2; exit 1; }
        changed=yes
    fi
fi
command -v grapevine >/dev/null || { say "grapevine is not installed: pass a package (rollout.sh --deb FILE)" >&2; exit 1; }

mkdir -p "$etc"
put cluster.key 640 || true
put replicas 644 || true
for file in "$from"/files/*; do
    [ ! -f "$file" ] || put "files/${file##*/}" 640 || true
done
if [ -e "$from/grapevine.yaml" ] && ! cmp -s "$from/grapevine.yaml" "$etc/grapevine.yaml"; then
    # Its own complaint says what is wrong. Nothing was changed then but those files.
    install -m 644 -o root -g grapevine "$from/grapevine.yaml" "$etc/grapevine.yaml.new" # where that user can read it
    check "$etc/grapevine.yaml.new" || { rm "$etc/grapevine.yaml.new"; exit 1; }
    put grapevine.yaml 644
    restart=yes
fi

systemctl enable -q grapevine
if ! systemctl is-active -q grapevine; then
    say "starting"
    systemctl start grapevine
elif [ -n "$restart" ]; then
    say "restarting after open answers have ended"
    systemctl restart grapevine
elif [ -z "$changed" ]; then
    say "nothing to do"
fi

# By these settings gvctl knows where the admin port is, its certificate, and the token. A new token is in force when
# the router has read it, within two seconds: the second call needs it.
export GRAPEVINE_CONFIG=$etc/grapevine.yaml
until gvctl ready >"$from/ready" 2>&1 && gvctl sources >"$from/ready" 2>&1; do
    if [ "$seconds" -le 0 ]; then
        say "not ready in time: $(cat "$from/ready")" >&2
        exit 1
    fi
    seconds=$((seconds - 1))
    sleep 1
done
say "ready"
