#!/usr/bin/env bash
# Fills the slots of nftables.conf with the routers that are ready: asks each of them once a second. Run it as a service
# beside nftables.
#
#   deploy/l4/slots.sh ADDRESS...       CHECK=http://@:8080/health, SLOTS=12, INTERVAL=1 (seconds), FAILS=2
#
# CHECK: what is asked, with @ for the router's address; answered with 200 it is ready. Of routers whose client port
# speaks TLS ask the probe port: CHECK=http://@:9091/readyz.
#
# All are asked at once. A router goes when it answers that it is not ready (one that drains serves on for drain-delay), or
# at its second failure in a row, and is back at its first success. If none is ready the slots stay as they were: the one
# that comes back first is then reached at once.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
CHECK=${CHECK:-http://@:${PORT:-8080}/health} SLOTS=${SLOTS:-12} INTERVAL=${INTERVAL:-1} FAILS=${FAILS:-2}
declare -A failed
for router in "$@"; do
    failed[$router]=0
done
last=
while :; do
    ready=() asked=()
    for router in "$@"; do
        curl -sf -o /dev/null --max-time 1 "${CHECK//@/"$router"}" &
        asked+=($!)
    done
    for router in "$@"; do
        status=0
        wait "${asked[0]}" || status=$?
        asked=("${asked[@]:1}")
        case $status in
        0) failed[$router]=0 ;;
        22) failed[$router]=$FAILS ;; # an answer: not ready
        *) failed[$router]=$((failed[$router] + 1)) ;;
        esac
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
        echo "$(date +%T) slots: $last"
    fi
    sleep "$INTERVAL"
done
