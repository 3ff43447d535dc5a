#!/usr/bin/env bash
# Puts what `make` built where a system looks for it, or takes it away again.
#
#   BUILD=build DESTDIR= PREFIX=/usr/local deploy/install.sh install|uninstall
#
# UNITDIR, ETCDIR and COMPLETION_* may be given too. Settings that are there already are left alone.
set -euo pipefail
cd "$(dirname "$0")/.."
action=${1:?install or uninstall}
BUILD=${BUILD:-build} DESTDIR=${DESTDIR:-} PREFIX=${PREFIX:-/usr/local}
bin=$PREFIX/bin man=$PREFIX/share/man doc=$PREFIX/share/doc/grapevine
unit=${UNITDIR:-$PREFIX/lib/systemd/system} users=$PREFIX/lib/sysusers.d etc=${ETCDIR:-/etc}/grapevine
bash=${COMPLETION_BASH:-$PREFIX/share/bash-completion/completions}
zsh=${COMPLETION_ZSH:-$PREFIX/share/zsh/site-functions}
fish=${COMPLETION_FISH:-$PREFIX/share/fish/vendor_completions.d}

put() { # put MODE FROM TO
    if [ "$action" = install ]; then
        install -D -m "$1" "$2" "$DESTDIR$3"
    else
        rm -f "$DESTDIR$3"
    fi
}

filled() { # filled FROM: a copy of a template, with the folders in it
    local copy
    copy=$scratch/$(basename "$1")
    sed -e "s|@BINDIR@|$bin|g" -e "s|@DOCDIR@|$doc|g" "$1" >"$copy"
    echo "$copy"
}

completion() { # completion SHELL PROGRAM TO: nothing, where gvctl has none
    local script=$scratch/$2.$1
    if [ "$action" = uninstall ] || "$BUILD/gvctl" completion "$1" --for "$2" >"$script" 2>/dev/null; then
        put 644 "$script" "$3"
    fi
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

put 755 "$BUILD/grapevine" "$bin/grapevine"
put 755 "$BUILD/gvctl" "$bin/gvctl"
put 644 "$BUILD/man/grapevine.8" "$man/man8/grapevine.8"
put 644 "$BUILD/man/gvctl.1" "$man/man1/gvctl.1"
put 644 "$(filled deploy/systemd/grapevine.service)" "$unit/grapevine.service"
put 644 deploy/systemd/sysusers.conf "$users/grapevine.conf"
for program in grapevine gvctl; do
    completion bash $program "$bash/$program"
    completion zsh $program "$zsh/_$program"
    completion fish $program "$fish/$program.fish"
done

put 644 LICENSE "$doc/LICENSE"
put 644 README.md "$doc/README.md"
put 644 CHANGELOG.md "$doc/CHANGELOG.md"
while read -r page; do
    put 644 "$page" "$doc/$page"
done < <(find docs -name '*.md' -o -name '*.svg' -o -name '*.png' | sort)
for file in grapevine.yaml replicas; do
    put 644 "deploy/etc/$file" "$doc/examples/$file"
    [ "$action" = uninstall ] || [ -e "$DESTDIR$etc/$file" ] || put 644 "deploy/etc/$file" "$etc/$file"
done

if [ "$action" = uninstall ]; then
    find "$DESTDIR$doc" -depth -type d -empty -delete 2>/dev/null || true
    [ ! -d "$DESTDIR$etc" ] || echo "Kept the settings in $DESTDIR$etc"
fi
