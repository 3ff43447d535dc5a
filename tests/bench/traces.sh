#!/usr/bin/env bash
# Unpacks the shared request traces into a build folder, once.
#   tests/bench/traces.sh [coding|conversation|miniswe|azure ...]     (all by default)
# They are looked for in $GRAPEVINE_SHARED/traces, else ../shared/traces.
set -euo pipefail
from=${GRAPEVINE_SHARED:-../shared}/traces
to=${BUILD:-build}/traces
mkdir -p "$to"
[ $# -gt 0 ] || set -- coding conversation miniswe azure

# unpacked NAME COMMAND...: runs it in a new folder and renames that when all went well.
unpacked() {
    local name=$1 part=$to/.$1.part
    shift
    [ -e "$to/$name" ] && return 0
    [ -d "$from" ] || { echo "no traces at $from; set GRAPEVINE_SHARED" >&2; exit 1; }
    printf 'unpacking %s ...' "$name" >&2
    rm -rf "$part"
    mkdir "$part"
    "$@" "$part"
    mv "$part" "$to/$name"
    printf ' %s\n' "$(du -sh "$to/$name" | cut -f1)" >&2
}
untar() { tar -xJf "$2" --strip-components="$1" -C "$3"; }
unxz() { xz -dc "$1" >"$3/$2"; }

for name in "$@"; do
    case $name in
    coding) unpacked coding untar 0 "$from/coding_sessions_dev.tar.xz" ;;
    miniswe) unpacked miniswe untar 1 "$from/miniswe_text.tar.xz" ;;
    conversation) unpacked conversation unxz "$from/mooncake_conversation.jsonl.xz" conversation.jsonl ;;
    azure) unpacked azure unxz "$from/azure_conv_arrivals.csv.xz" azure.csv ;;
    *) echo "unknown trace $name: coding, conversation, miniswe or azure" >&2; exit 1 ;;
    esac
done
