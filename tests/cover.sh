#!/usr/bin/env bash
# Which lines of a room its unit tests run.
#
#   tests/cover.sh BUILD_DIR ROOM        e.g. build/cov node/proxy (make cover ROOM=node/proxy)
#
# Runs the tests of tests/unit/<last part of ROOM>/ and prints one line a file: share, lines run of
# lines there are, and the numbers of those that were not run.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${1:?usage: tests/cover.sh BUILD_DIR ROOM}
room=${2:?usage: tests/cover.sh BUILD_DIR ROOM}
room=${room%/}

find "$build/obj" -name '*.gcda' -delete
for source in tests/unit/"${room##*/}"/*_test.c; do
    name=${source#tests/unit/}
    "$build/tests/unit/${name%.c}" >"$build/log" 2>&1 || { cat "$build/log"; echo "$name failed"; exit 1; }
done
for source in $(find "$room" -name '*.c' | sort); do
    gcov -t "$build/obj/${source%.c}.gcda" 2>/dev/null | awk -F: -v file="$source" '
        /^ *-: *0:Source:/ { here = ($0 ~ file "$") }
        here && $2 + 0 > 0 {
            run = $1; gsub(/ /, "", run)
            if (run == "-") next
            all++
            if (run ~ /^#+$|^=+$/) missing = missing " " $2 + 0
            else ran++
        }
        END { if (all) printf "%5.1f %% %5d of %5d  %s %s\n", 100 * ran / all, ran, all, file, missing }'
done | tee "$build/cover"
awk '{ ran += $3; all += $5 } END { printf "%5.1f %% %5d of %5d  all\n", 100 * ran / all, ran, all }' "$build/cover"
