#!/usr/bin/env bash
# Installs the Debian packages named as arguments that are missing; says so, and only then needs root.
set -euo pipefail
missing=()
for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
sudo=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "These Debian packages are missing: ${missing[*]}" >&2
        echo "Install them as root: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    sudo=(sudo)
fi
echo "Installing missing Debian packages${sudo:+ with sudo}: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A package that brings a server must not start it here.
if ! { "${sudo[@]}" apt-get update -qq &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "Could not install: ${missing[*]}" >&2
    exit 1
fi
