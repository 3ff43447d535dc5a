#!/usr/bin/env bash
# Runs every test of a build folder: unit tests, fuzz corpus replays, end-to-end tests, those of jepsen-lite itself.
#
#   tests/run.sh BUILD_DIR
#
#   FILTER=http      only programs whose name has this in it
#   FILTER=test_cluster.Members, test_cluster.Members.test_x, http/json_test.vectors
#                    one class or method of an end-to-end test, one test of a unit test
#   ONLY="unit fuzz" only tests of these kinds: unit, fuzz, e2e, jepsen
#   JOBS=2           unit tests and replays at once (default: as many as there are cores)
#   LANES=4          end-to-end tests at once (default: three times that: they mostly wait)
#   CI=true          a test that skips and is not in tests/skips.txt fails
#   VERBOSE=1        show the output of passing tests too
#   SLOW=3           a machine on which all takes so many times longer than on an idle one: limits grow
#                    (default: 1, of a build with sanitizers or coverage 2)
#   TEST_SECONDS=N   time limit of one test program (default 300, times SLOW; three times that for what computes)
#
# One line a program when it has ended, with the names of its tests that failed; what those said
# stands below it. All that failed is named again at the end. The last line is
# `N passed, M failed[, K skipped]`; the exit status is 1 if anything failed, or if FILTER fits none.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tests/run.sh BUILD_DIR}
case $build in *asan | *cov) slowed=2 ;; esac
export SLOW=${SLOW:-${slowed:-1}}
limit=${TEST_SECONDS:-$((300 * ${SLOW%.*}))}
jobs=${JOBS:-$(nproc)}
lanes=${LANES:-$((3 * $(nproc)))}
filter=${FILTER:-}
one_test= # of the one program that FILTER names
case $filter in
test_*.* | */*.*) one_test=${filter#*.} ;;
esac
export BUILD="$PWD/${build#"$PWD"/}"
[ "${build#/}" = "$build" ] || BUILD=$build
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export PYTHONDONTWRITEBYTECODE=1

# End-to-end tests mostly wait, and several run at once. Those that take longest begin first, so that
# none of them is left over at the end. Unit tests compute, and have the processor while these wait;
# but those of io/ see real time, and come first.
# These compute as well, for longest, and see no real time:
computing=" test_simulation_bugs test_simulation "
# These take a core or two for themselves, alone, after the rest:
alone=" test_maelstrom test_readme test_replay "
# What these try is charts, rules, pages, packages and scripts: sanitizers would find nothing there. By FILTER they run.
without=
case $build in
*asan)
    without=" test_demo test_deploy_hosts test_deploy_kubernetes test_deploy_lab test_deploy_prometheus"
    without+=" test_package test_readme test_runner "
    # Of jepsen-lite one file runs programs of the build; the rest is Python.
    harness=test_lab
    ;;
esac
long="test_state test_cluster_faults test_api_keys test_rejections test_poison test_versions test_lab test_discovery
      test_kv_events test_cluster_netns test_cluster_keys test_names test_ranks test_deploy_kubernetes
      test_cluster_told test_cluster test_daemon test_stall_cut test_replica_kubernetes test_demo"

# --- one program -------------------------------------------------------------------------------

# sum_of PATTERN FILE: the sum of the first numbers of the lines that match
sum_of() {
    grep -aE "$1" "$2" | sed -E 's/^[^0-9]*([0-9]+).*/\1/' | awk '{n += $1} END {print n + 0}'
}

count_unit() { # cmocka: totals of each group
    p=$(sum_of '^\[  PASSED  \] [0-9]+ test' "$1")
    f=$(sum_of '^\[  FAILED  \] [0-9]+ test' "$1")
    s=$(sum_of '^\[  SKIPPED \] [0-9]+ test' "$1")
}

count_fuzz() {
    p=0
    grep -aqE '^[1-9][0-9]* inputs replayed' "$1" && p=1
}

count_jepsen() {
    count_e2e "$1"
}

count_e2e() { # "Ran 5 tests", "FAILED (failures=1, errors=1, skipped=1)"; lines if it was stopped
    local ran whole # classes that were skipped: none of their tests counts as run
    whole=$(grep -acE '^setUp(Class|Module) .*\.\.\. skipped' "$1")
    ran=$(sed -nE 's/^Ran ([0-9]+) tests?.*/\1/p' "$1" | tail -n 1)
    f=$(grep -acE '^(FAIL|ERROR): ' "$1")
    s=$(sed -nE 's/^(OK|FAILED) \(.*skipped=([0-9]+).*/\2/p' "$1" | tail -n 1)
    s=${s:-0}
    p=$(grep -acE '\.\.\. (.* )?ok$|^ok$' "$1")
    [ -z "$ran" ] || p=$((ran + whole > f + s ? ran + whole - f - s : 0))
}

vectors_for() { # the folder of test vectors that a fuzz target understands
    case $1 in
    http_skim* | http_json*) echo tests/vectors/json ;;
    http_request* | http_response* | http_chunked*) echo tests/vectors/llhttp ;;
    esac
}

command_of() { # command_of KIND NAME: sets `command` and `title`
    title=$2
    case $1 in
    unit)
        command=("$BUILD/tests/unit/$2")
        [ -z "$one_test" ] || command=(env "UNIT_TEST=$one_test" "${command[@]}")
        ;;
    fuzz)
        title="fuzz corpus $2"
        command=("$BUILD/tests/fuzz/$2" tests/fuzz/corpus/"${2%_fuzz}")
        local vectors
        vectors=$(vectors_for "$2")
        [ -z "$vectors" ] || mapfile -t -O 2 command < <(find "$vectors" -type d)
        ;;
    e2e)
        title="e2e $2"
        command=(env PYTHONPATH=tests/e2e python3 -m unittest -v "$2${one_test:+.$one_test}")
        ;;
    jepsen)
        title="jepsen $2"
        command=(env PYTHONPATH=jepsen-lite:jepsen-lite/tests python3 -m unittest -v "$2${one_test:+.$one_test}")
        ;;
    esac
}

# failed_in KIND LOG: the names of its tests that failed, or were under way when it ended
failed_in() {
    if [[ $1 =~ e2e|jepsen ]]; then
        sed -nE 's/^(FAIL|ERROR): [^ ]+ \(([^ ]*\.)?([^ .]+\.[^ .]+)\).*/\3/p' "$2"
        sed -nE '$ s/.* \(([^ ]*\.)?([^ .]+\.[^ .]+)\) \.\.\. *$/\2/p' "$2"
    else
        sed -nE 's/^\[  FAILED  \] ([^ ]+)$/\1/p' "$2"
        grep -aE '^\[ +(RUN|OK|FAILED|SKIPPED) +\] [^ ]+$' "$2" | sed -nE '$ s/^\[ RUN      \] //p'
    fi | awk '!seen[$0]++' | head -n 20 | paste -sd ' '
}

# skipped_in KIND NAME LOG: the names of its tests that were skipped, one a line
skipped_in() {
    if [[ $1 =~ e2e|jepsen ]]; then # the name stands on the line of the verdict, or with a docstring above it
        awk 'match($0, / \(test_[^)]*\)/) { name = substr($0, RSTART + 2, RLENGTH - 3) }
             / \.\.\. skipped / { print name }' "$3"
    else
        sed -nE "s|^\[  SKIPPED \] ([^ ]+)\$|$2.\1|p" "$3" # then a summary names them again
    fi | awk '!seen[$0]++'
}

listed() { # listed TEST: may it be skipped, itself or its class?
    awk -v name="$1." -v build="${BUILD##*/}" '
        index(name, $1 ".") == 1 && ($2 == "any" || $2 == build) { listed = 1 }
        END { exit !listed }' tests/skips.txt
}

# What a failing test said: without the tests that passed.
said() { # said KIND LOG
    if [[ $1 =~ e2e|jepsen ]] && grep -aqE '^={70}$' "$2"; then
        sed -nE '/^={70}$/,$p' "$2"
    else
        grep -avE '^\[ +(RUN|OK) +\]|\.\.\. ok$' "$2" | tail -n 150
    fi | cut -c1-2000 | head -n 150
}

report() { # report KIND LOG: on standard output, from the variables of one()
    local verdict="ok  " note=""
    [ "$s" -ne 0 ] && note=", $s skipped"
    [ "$f" -ne 0 ] && verdict=FAIL note="$note, $f failed (status $status)"
    printf '%s %-44s %4d passed%s  %d.%03d s%s\n' "$verdict" "$title" "$p" "$note" \
        $(((end - start) / 1000000000)) $(((end - start) / 1000000 % 1000)) "${failed:+: $failed}"
    if [ -n "${VERBOSE:-}" ]; then
        sed 's/^/    | /' "$2"
    elif [ "$f" -ne 0 ]; then
        said "$1" "$2" | sed 's/^/    | /'
    elif [ "$s" -ne 0 ]; then
        grep -aiE 'skip' "$2" | grep -avE '^\[|^(OK|Ran) |SKIPPED TEST' | sed 's/^/    | /' | head -n 5
    fi
}

# one OUT KIND NAME: runs it under the time limit, reports, and adds its counts to OUT/counts
one() {
    local out=$1 kind=$2 start end status p=0 f=0 s=0 title command log running failed=
    log=$(mktemp "$out/log.XXXXXX")
    command_of "$kind" "$3"
    # What computes at a low priority waits for all others.
    local most=$limit
    if [[ $kind =~ unit|fuzz && $3 != io/* || $computing == *" $3 "* ]]; then
        command=(nice -n 15 "${command[@]}")
        most=$((3 * limit))
    fi
    start=$(date +%s%N)
    timeout -k 5 "$most" "${command[@]}" >"$log" 2>&1 </dev/null &
    running=$!
    trap 'kill "$running"; exit 130' TERM
    wait "$running"
    status=$?
    trap - TERM
    end=$(date +%s%N)
    "count_$kind" "$log"
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ $((p + f + s)) -eq 0 ] && { f=1; echo "(no test ran)" >>"$log"; }
    if [ "$s" -ne 0 ] && [ "${CI:-}" = true ]; then
        local name names
        mapfile -t names < <(skipped_in "$kind" "$3" "$log" | grep . || echo "a test without a name")
        for name in "${names[@]}"; do
            listed "$name" && continue
            s=$((s - 1)) f=$((f + 1))
            echo "$name was skipped, and tests/skips.txt does not have it" >>"$log"
        done
    fi
    [ "$f" -ne 0 ] && failed=$(failed_in "$kind" "$log")
    [ "$status" -eq 124 ] && echo "(stopped after $most s)" >>"$log"
    {
        flock 9
        report "$kind" "$log"
        echo "$p $f $s" >>"$out/counts"
        [ "$f" -eq 0 ] || {
            echo "$title${failed:+: $failed}"
            said "$kind" "$log" | grep -aE '^[A-Za-z_.]*(Error|Exception|Cut)\b|^\[ +(ERROR|LINE) |^SUMMARY|stopped after' |
                head -n 5 | cut -c1-300 | sed 's/^/    /'
        } | sed 's/^/failed: /' >>"$out/failed"
    } 9>"$out/lock"
}

# --- all of them -------------------------------------------------------------------------------

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; echo "interrupted"; exit 130' INT TERM

wanted() { # wanted KIND TITLE
    [[ " ${ONLY:-unit fuzz e2e jepsen} " == *" $1 "* ]] || return 1
    [[ $1 != jepsen || -n $filter || ${2#* } == "${harness:-${2#* }}" ]] || return 1
    if [ -n "$one_test" ]; then
        [ "${2#* }" = "${filter%%.*}" ]
    else
        [[ $2 == *"$filter"* && (-n $filter || ${without:-} != *" ${2#* } "*) ]]
    fi
}

list() { # list KIND FILE...: the names of those that are wanted, each with its kind in front
    local kind=$1 file name title command
    shift
    for file in "$@"; do
        [ -e "$file" ] || continue
        name=${file#tests/*/}
        name=${name#jepsen-lite/tests/}
        name=${name%.*}
        command_of "$kind" "$name"
        wanted "$kind" "$title" && echo "$kind $name"
    done
}

lane() { # lane JOBS FILE: runs what the file lists, so many at a time
    local running=0 kind name
    trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' TERM
    while read -r kind name; do
        [ "$running" -lt "$1" ] || wait -n
        [ "$running" -eq "$1" ] || running=$((running + 1))
        (one "$out" "$kind" "$name") &
    done <"$2"
    wait
}

touch "$out/counts" "$out/failed" "$out/first" "$out/next" "$out/heavy" "$out/last"
{
    list unit tests/unit/*/*_test.c
    list fuzz tests/fuzz/*_fuzz.c
} >"$out/computing"
grep '^unit io/' "$out/computing" >"$out/timed"
sed -i '\,^unit io/,d' "$out/computing"

{
    list e2e tests/e2e/test_*.py
    list jepsen jepsen-lite/tests/test_*.py
} >"$out/e2e"
for name in $long; do
    grep -xE "(e2e|jepsen) $name" "$out/e2e" >>"$out/first"
done
while read -r test; do
    if [[ $computing == *" ${test#* } "* ]]; then
        echo "$test" >>"$out/heavy"
    elif [[ $alone == *" ${test#* } "* ]]; then
        echo "$test" >>"$out/last"
    else
        grep -qx "$test" "$out/first" || echo "$test" >>"$out/next"
    fi
done <"$out/e2e"
cat "$out/next" >>"$out/first"
cat "$out/computing" >>"$out/heavy"
lane "$jobs" "$out/timed" &
wait
lane "$jobs" "$out/heavy" &
lane "$lanes" "$out/first" &
wait
lane 1 "$out/last" &
wait

cat "$out/failed"
[ -s "$out/counts" ] || {
    echo "no test matches FILTER=$filter"
    echo "0 1 0" >"$out/counts"
}
awk '{ p += $1; f += $2; s += $3 }
     END { printf "%d passed, %d failed", p, f; if (s) printf ", %d skipped", s; print ""; exit f > 0 }' "$out/counts"
