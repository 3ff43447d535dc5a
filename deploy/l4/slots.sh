#!/usr/bin/env bash
# Fills the slots of nftables.conf with the routers that are ready: asks each for GET /health once a second. Run it as
# a service beside nftables.
#
#   deploy/l4/slots.sh ADDRESS...       PORT=8080, SLOTS=12, INTERVAL=1 (seconds), FAILS=2
#
# A router goes at its second failure in a row and is back at its first success. If none is ready the slots stay as
# they were: the one that comes back first is then reached at once.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
PORT=${PORT:-8080} SLOTS=${SLOTS:-12} INTERVAL=${INTERVAL:-1} FAILS=${FAILS:-2}
declare -A failed
for router in "$@"; do
    failed[$router]=0
done
last=
while :; do
    ready=()
    for router in "$@"; do
        if curl -sf -o /dev/null --max-time 1 "http://$router:$PORT/health"; then
            failed[$router]=0
        else
            failed[$router]=$((failed[$router] + 1))
        fi
        [ "${failed[$router]}" -ge "$FAILS" ] || ready+=("$router")
    done
    if [ ${#ready[@]} -gt 0 ] && [ "${ready[*]}" != "$last" ]; then
        elements=
        for ((i = 0; i < SLOTS; i++)); do
            elements+="${elements:+, }$i : ${ready[i % ${#ready[@]}]}"
        done
        # One transaction: no connection finds an empty slot.
        nft -f - <<<"flush map ip grapevine slots
add element ip grapevine slots { $elements }"
        last=${ready[*]}
        echo "slots: $last"
    fi
    sleep "$INTERVAL"
done
