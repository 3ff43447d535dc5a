#!/usr/bin/env bash
# Prints what distinguishes this build from others of the same version, for the version of a package: the time and
# the hash of the last commit. apt and rollout.sh then see a newer build as newer. Nothing for a release, which is the
# tag vVERSION without changes, nor where there is no git.
#
#   deploy/debian/suffix.sh 0.1.0            +20261130.191402.gab12cd34ef56, with changes +....local20261130.191510
#   deploy/debian/suffix.sh --commit 0.1.0   +ab12cd34, which the programs say (--version, gvctl members)
set -euo pipefail
cd "$(dirname "$0")/../.."
commit=
if [ "$1" = --commit ]; then
    commit=yes
    shift
fi
repository() {
    git -c safe.directory="$PWD" "$@" # root packages what another user has checked out
}
[ "$(repository rev-parse --show-toplevel 2>/dev/null || true)" = "$(pwd -P)" ] || exit 0
repository rev-parse -q --verify HEAD >/dev/null || exit 0
changes=$(repository status --porcelain --untracked-files=no)
[ -n "$changes" ] || ! repository tag --points-at HEAD | grep -qx "v$1" || exit 0
if [ -n "$commit" ]; then
    echo "+$(repository rev-parse HEAD | cut -c1-8)"
    exit 0
fi
suffix=+$(TZ=UTC0 repository log -1 --format=%cd.g%h --abbrev=12 --date=format-local:%Y%m%d.%H%M%S)
[ -z "$changes" ] || suffix+=.local$(date -u -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}" +%Y%m%d.%H%M%S)
echo "$suffix"
