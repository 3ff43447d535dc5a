#!/usr/bin/env bash
# Installs, changes or upgrades a cluster of routers on bare hosts, one host after the other: the next one only when
# the last is ready. Nothing is left behind on them but the router. Run it again after any change: what is as it should
# be is left alone. It stops at the first host where something is wrong, and the others serve on.
#
#   deploy/hosts/rollout.sh [--deb FILE] [--key FILE] [--replicas FILE] [--config FILE] [--files FOLDER]
#                           [--wait SECONDS] HOST...
#
#   HOST               as ssh takes it: name, or user@name. Routers find each other by the same names
#   --deb FILE         the Debian package (make deb); without it grapevine has to be there already
#   --key FILE         the cluster key: gvctl keygen --out FILE
#   --replicas FILE    the engines, one a line
#   --config FILE      settings (default: grapevine.yaml beside this script). @JOIN@ in it becomes the list of hosts
#   --files FOLDER     certificates, tokens, keys that the settings name: its files go to /etc/grapevine of every host,
#                      those of FOLDER/HOST to that host's
#   --wait SECONDS     how long a router may take to be ready (120)
#
#   SSH="ssh -i key"   how a host is reached. As a user who is not root: SUDO=sudo
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
SSH=${SSH:-ssh} SUDO=${SUDO:-}
deb='' key='' replicas='' files='' config=$here/grapevine.yaml wait=120 hosts=()
usage() {
    sed -n '/^#   deploy/,/^set/{/^set/d;s/^# \{0,1\}//p;}' "$0" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    case $1 in
    --deb | --key | --replicas | --config | --files | --wait)
        [ $# -gt 1 ] || usage
        printf -v "${1#--}" %s "$2"
        shift 2
        ;;
    -*) usage ;;
    *)
        hosts+=("$1")
        shift
        ;;
    esac
done
[ ${#hosts[@]} -gt 0 ] || usage

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
take() { # take FILE NAME: a file that every host gets
    [ -z "$1" ] && return
    [ -r "$1" ] || { echo "rollout: cannot read $1" >&2; exit 1; }
    cp "$1" "$folder/$2"
}
take "$deb" grapevine.deb
take "$key" cluster.key
take "$replicas" replicas
take "$config" grapevine.yaml
take "$here/host.sh" host.sh
names=$(printf ', %s' "${hosts[@]#*@}")
sed -i "s|@JOIN@|${names#, }|" "$folder/grapevine.yaml"
[ -z "$files" ] || [ -d "$files" ] || { echo "rollout: $files is not a folder" >&2; exit 1; }
take_files() { # take_files HOST: its own go before those of all
    local from file
    rm -rf "$folder/files"
    mkdir "$folder/files"
    for from in "$files" "$files/$1"; do
        for file in "$from"/*; do
            if [ -f "$file" ]; then
                take "$file" "files/${file##*/}"
            fi
        done
    done
}

on() { # on HOST COMMAND...
    local host=$1
    shift
    $SSH "$host" "$@"
}
for host in "${hosts[@]}"; do # before anything is changed
    on "$host" true </dev/null || { echo "rollout: cannot reach $host; no host was changed" >&2; exit 1; }
done
for host in "${hosts[@]}"; do
    [ -z "$files" ] || take_files "${host#*@}"
    there=$(on "$host" 'mktemp -d' </dev/null)
    status=0
    tar -C "$folder" -cf - . |
        on "$host" "tar -C $there -xf - && $SUDO sh $there/host.sh $there $wait" || status=$?
    on "$host" "$SUDO rm -rf $there" </dev/null
    [ "$status" -eq 0 ] || { echo "rollout: failed at $host; the hosts after it are unchanged" >&2; exit 1; }
done
if [ ${#hosts[@]} -gt 1 ]; then
    on "${hosts[0]}" "$SUDO env GRAPEVINE_CONFIG=/etc/grapevine/grapevine.yaml gvctl convergence --wait --timeout $wait --members ${#hosts[@]}" </dev/null
fi
