#!/usr/bin/env bash
# Every lint, one line each; what a failing one has to say stands below its line.
# The last line is `N passed, M failed`.
#
#   tests/lint/run.sh [BUILD_DIR]
set -uo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build}
cache=$build/lint
mkdir -p "$cache"
passed=0 failed=0

lint() { # lint NAME COMMAND...
    local name=$1 start=$SECONDS log
    shift
    if log=$("$@" 2>&1); then
        passed=$((passed + 1))
        printf 'ok   lint %-12s %3d s\n' "$name" $((SECONDS - start))
    else
        failed=$((failed + 1))
        printf 'FAIL lint %-12s %3d s\n' "$name" $((SECONDS - start))
        sed 's/^/    | /' <<<"$log" | head -n 100
    fi
}

tracked() { # all files of ours that are there: one may be deleted and not committed
    { git ls-files -co --exclude-standard 2>/dev/null ||
        find . -path ./build -prune -o -type f -print | sed 's|^\./||'; } | grep -v '^tests/vectors/[^/]*/' |
        xargs -r -d '\n' ls -d 2>/dev/null
}

objects() {
    make -s --no-print-directory -j2 "BUILD_release=$build" "$build/grapevine" "$build/gvctl"
}

purity() {
    objects && tests/lint/purity.py "$build/obj"
}

names() {
    objects && tests/lint/names.py . "$build/obj"
}

circles() {
    objects && tests/lint/circles.py . "$build/obj"
}

format() {
    make -s --no-print-directory print-sources print-headers |
        xargs -r clang-format-14 --dry-run -Werror 2>&1 |
        sed -nE 's/^([^ :]+):[0-9]+:.*error: .*/\1: make format/p' | sort -u | tee "$cache/format.log"
    [ ! -s "$cache/format.log" ]
}

tidy() {
    make -s --no-print-directory print-sources | xargs -r -n16 -P2 tests/lint/tidy.sh "$cache"
}

python_syntax() { # a script that nothing runs in the tests may still be somebody's first command
    tracked | grep '\.py$' | xargs -r -d '\n' python3 -c '
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path).read(), path)'
}

text() {
    tracked | xargs -r -d '\n' tests/lint/text.py
}

sentences() { # of pages and comments
    tracked | xargs -r -d '\n' tests/lint/sentences.py
}

sizes() {
    tracked | grep -E '\.(c|h|py|sh)$' | xargs -r -d '\n' tests/lint/sizes.py
}

places() { # names of files and functions in comments and pages
    tracked | xargs -r -d '\n' tests/lint/places.py
}

options_page() {
    make -s --no-print-directory -j2 "BUILD_release=$build" "$build/grapevine" || return 1
    "$build/grapevine" --print-options-markdown | diff docs/options.md - ||
        { echo "docs/options.md is stale: make docs"; return 1; }
    make -s --no-print-directory -j2 "BUILD_release=$build" "$build/gvctl" || return 1
    "$build/gvctl" convert --print-page | diff docs/from-other-routers.md - ||
        { echo "docs/from-other-routers.md is stale: make docs"; return 1; }
}

lint self-test tests/lint/self_test.sh
lint includes tests/lint/includes.py .
lint purity purity
lint circles circles
lint names names
lint results tests/lint/results.py .
lint ownership tests/lint/ownership.py .
lint text text
lint sentences sentences
lint places places
lint sizes sizes
lint python python_syntax
lint format format
lint options options_page
lint limits tests/lint/limits.py
lint tidy tidy

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
