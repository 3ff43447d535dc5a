#!/usr/bin/env bash
# Runs every fuzz target for a while with libFuzzer.
#
#   tests/fuzz/run.sh BUILD_DIR SECONDS
#
#   FILTER=http      only targets whose name has this in it
#   JOBS=2           so many targets at a time (default 1)
#
# What a target finds on its way stays in BUILD_DIR/corpus/NAME, so that the next run goes on from
# there; a new one begins with the seeds of tests/fuzz/corpus/NAME, and tests/vectors. One line a target; under a
# failing one what it said, the input that does it, and how to replay that. The last line is
# `N passed, M failed`; the exit status is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${1:?usage: tests/fuzz/run.sh BUILD_DIR SECONDS}
limit=${2:?usage: tests/fuzz/run.sh BUILD_DIR SECONDS}
jobs=${JOBS:-1}
[[ $limit =~ ^[1-9][0-9]*$ && $jobs =~ ^[1-9][0-9]*$ ]] || { echo "SECONDS and JOBS must be whole numbers above 0" >&2; exit 2; }
filter=${FILTER:-}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
logs=$build/fuzz-logs
mkdir -p "$logs"

passed=0 failed=0
declare -A name_of=() began_at=() # of the targets that run, by pid
trap 'kill "${!name_of[@]}" 2>/dev/null; echo "interrupted"; exit 130' INT TERM

fuzz() { # fuzz NAME: starts it
    local name=$1 corpus=$build/corpus/$1 crashes=$build/crashes/$1 vectors=()
    case $name in # as tests/run.sh replays them
    http_skim | http_json) vectors=(tests/vectors/json) ;;
    http_request | http_response | http_chunked) vectors=(tests/vectors/llhttp) ;;
    esac
    mkdir -p "$corpus" "$crashes"
    "$build/tests/fuzz/${name}_fuzz" -max_total_time="$limit" -timeout=20 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$crashes/" "$corpus" "tests/fuzz/corpus/$name" "${vectors[@]}" \
        >"$logs/$name" 2>&1 </dev/null &
    name_of[$!]=$name
    began_at[$!]=$(now)
}

now() { date +%s; }

# last LOG PATTERN: the number that the group of the pattern matched last, 0 without one
last() { sed -nE "s/$2/\\1/p" "$1" | tail -n 1 | grep . || echo 0; }

executions() { last "$1" '^#([0-9]+)[[:space:]].*'; }
coverage() { last "$1" '^#.* cov: ([0-9]+) .*'; }

report() { # report PID STATUS: a target has ended
    local pid=$1 status=$2 name=${name_of[$1]} verdict=ok input
    local log=$logs/$name took=$(($(now) - began_at[$1]))
    unset "name_of[$pid]" "began_at[$pid]"
    if [ "$status" -ne 0 ] || [ "$(executions "$log")" -eq 0 ]; then
        verdict=CRASH
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
    erase_progress
    printf '%-5s fuzz %-24s %5d s %12d executions, coverage %d\n' "$verdict" "$name" "$took" \
        "$(executions "$log")" "$(coverage "$log")"
    [ "$verdict" = CRASH ] || return 0
    grep -avE '^(#[0-9]|INFO: |stat::|NEW_FUNC|[[:space:]]*NEW_FUNC)' "$log" | sed 's/^/    | /' | head -n 60
    input=$(sed -nE 's/.*Test unit written to (.*)$/\1/p' "$log" | tail -n 1)
    if [ -n "$input" ]; then
        printf '    input:  %s\n    replay: %s %s\n' "$input" "$build/tests/fuzz/${name}_fuzz" "$input"
    else
        printf '    it ended with status %d and left no input; all it said: %s\n' "$status" "$log"
    fi
}

progress() { # on a terminal: what runs now
    [ -t 1 ] || return 0
    local pid line=''
    for pid in "${!name_of[@]}"; do
        line+="  ${name_of[$pid]} $(($(now) - began_at[$pid]))/$limit s, $(executions "$logs/${name_of[$pid]}")"
    done
    printf '\r\e[K%s' "${line:0:100}"
}
erase_progress() { [ ! -t 1 ] || printf '\r\e[K'; }

reap() { # waits until fewer than $1 run
    local pid
    while [ ${#name_of[@]} -ge "$1" ]; do
        for pid in "${!name_of[@]}"; do
            kill -0 "$pid" 2>/dev/null && continue
            wait "$pid"
            report "$pid" $?
        done
        [ ${#name_of[@]} -lt "$1" ] && break
        progress
        sleep 0.5
    done
}

names=()
for source in tests/fuzz/*_fuzz.c; do
    name=$(basename "$source" _fuzz.c)
    [[ $name == *"$filter"* ]] && names+=("$name")
done
[ ${#names[@]} -gt 0 ] || { echo "no fuzz target has \"$filter\" in its name"; exit 1; }
echo "${#names[@]} fuzz targets, $limit s each, $jobs at a time"
for name in "${names[@]}"; do
    reap "$jobs"
    fuzz "$name"
done
reap 1
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
