#!/usr/bin/env bash
# Runs every test of a build folder: unit tests, fuzz corpus replays, end-to-end tests.
#
#   tests/run.sh BUILD_DIR
#
#   FILTER=http      only tests whose name has this in it
#   VERBOSE=1        show the output of passing tests too
#   TEST_SECONDS=N   time limit of one test program (default 300)
#
# One line a program while it goes; the output of one that fails. The last line is
# `N passed, M failed[, K skipped]`; the exit status is 1 if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tests/run.sh BUILD_DIR}
limit=${TEST_SECONDS:-300}
shared=${GRAPEVINE_SHARED:-../shared}
export BUILD="$PWD/${build#"$PWD"/}"
[ "${build#/}" = "$build" ] || BUILD=$build
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export PYTHONDONTWRITEBYTECODE=1

passed=0 failed=0 skipped=0
broken=()
out=$(mktemp -d)
running=
trap 'rm -rf "$out"' EXIT
trap '[ -z "$running" ] || kill "$running"; echo "interrupted"; exit 130' INT TERM

# sum_of PATTERN FILE: the sum of the first numbers of the lines that match
sum_of() {
    grep -aE "$1" "$2" | sed -E 's/^[^0-9]*([0-9]+).*/\1/' | awk '{n += $1} END {print n + 0}'
}

# run NAME COUNTER COMMAND...: runs under the time limit; COUNTER sets p f s from the output
run() {
    local name=$1 counter=$2 start end status p=0 f=0 s=0
    shift 2
    [[ $name == *"${FILTER:-}"* ]] || return 0
    start=$(date +%s%N)
    timeout -k 5 "$limit" "$@" >"$out/log" 2>&1 </dev/null &
    running=$!
    wait "$running"
    status=$?
    running=
    end=$(date +%s%N)
    $counter "$out/log"
    [ "$status" -ne 0 ] && [ "$f" -eq 0 ] && f=1
    [ $((p + f + s)) -eq 0 ] && { f=1; echo "(no test ran)" >>"$out/log"; }
    [ "$status" -eq 124 ] && echo "(stopped after $limit s)" >>"$out/log"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    local verdict="ok  " note=""
    [ "$s" -ne 0 ] && note=", $s skipped"
    if [ "$f" -ne 0 ]; then
        verdict=FAIL
        broken+=("$name")
        note="$note, $f failed (status $status)"
    fi
    printf '%s %-44s %4d passed%s  %d.%03d s\n' "$verdict" "$name" "$p" "$note" \
        $(((end - start) / 1000000000)) $(((end - start) / 1000000 % 1000))
    if [ "$f" -ne 0 ] || [ -n "${VERBOSE:-}" ]; then
        sed 's/^/    | /' "$out/log" | tail -n 200
    elif [ "$s" -ne 0 ]; then
        grep -aiE 'skip' "$out/log" | grep -avE '^\[|^(OK|Ran) |SKIPPED TEST' | sed 's/^/    | /' | head -n 5
    fi
}

count_cmocka() { # totals of each group
    p=$(sum_of '^\[  PASSED  \] [0-9]+ test' "$1")
    f=$(sum_of '^\[  FAILED  \] [0-9]+ test' "$1")
    s=$(sum_of '^\[  SKIPPED \] [0-9]+ test' "$1")
}

count_replay() {
    p=0
    grep -aqE '^[1-9][0-9]* inputs replayed' "$1" && p=1
}

count_unittest() { # "Ran 5 tests", "FAILED (failures=1, errors=1, skipped=1)"; lines if it was stopped
    local ran
    ran=$(sed -nE 's/^Ran ([0-9]+) tests?.*/\1/p' "$1" | tail -n 1)
    f=$(grep -acE '^(FAIL|ERROR): ' "$1")
    s=$(sed -nE 's/^(OK|FAILED) \(.*skipped=([0-9]+).*/\2/p' "$1" | tail -n 1)
    s=${s:-0}
    p=$(grep -acE '\.\.\. (.* )?ok$|^ok$' "$1")
    [ -z "$ran" ] || p=$((ran > f + s ? ran - f - s : 0))
}

vectors_for() { # folders of the shared vectors that a fuzz target understands
    case $1 in
    *skim* | *json*) echo "$shared/vectors/json" ;;
    *head* | *chunk* | *request* | *response*) echo "$shared/vectors/llhttp" ;;
    *msgpack*) echo "$shared/vectors/msgpack" ;;
    *) return 0 ;;
    esac
}

for source in tests/unit/*/*_test.c; do
    [ -e "$source" ] || continue
    name=${source#tests/unit/}
    run "${name%.c}" count_cmocka "$BUILD/tests/unit/${name%.c}"
done

for source in tests/fuzz/*_fuzz.c; do
    [ -e "$source" ] || continue
    name=$(basename "$source" .c)
    folders=(tests/fuzz/corpus/"${name%_fuzz}")
    vectors=$(vectors_for "$name")
    [ -n "$vectors" ] && [ -d "$vectors" ] && mapfile -t -O 1 folders < <(find "$vectors" -type d)
    run "fuzz corpus $name" count_replay "$BUILD/tests/fuzz/$name" "${folders[@]}"
done

for file in tests/e2e/test_*.py; do
    [ -e "$file" ] || continue
    name=$(basename "$file" .py)
    run "e2e $name" count_unittest env PYTHONPATH=tests/e2e python3 -m unittest -v "$name"
done

[ ${#broken[@]} -eq 0 ] || printf 'failed: %s\n' "${broken[@]}"
summary="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
[ "$failed" -eq 0 ]
