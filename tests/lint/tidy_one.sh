#!/usr/bin/env bash
# clang-tidy on one file, skipped if the file, its headers and the rules are as they were when it
# was last clean.
#
#   tests/lint/tidy_one.sh CACHE_DIR FILE
set -uo pipefail
cache=$1 file=$2
# With CHECK_SLOW, whose arguments would look like work for nothing.
flags=(-std=c17 -I. -D_GNU_SOURCE -D__SANITIZE_ADDRESS__=1)
# The path search of the analyzer in full takes a minute on some files, shallow a second.
analyzer=(-Xclang -analyzer-config -Xclang mode=shallow)
deps=$(gcc "${flags[@]}" -MM -MT x "$file" 2>/dev/null | sed -e 's/^x://' -e 's/\\$//' | tr -s ' \n' ' ') ||
    { echo "$file: does not compile"; exit 1; }
# shellcheck disable=SC2086
key=$(cat .clang-tidy "$0" $deps | sha256sum | cut -c1-32)
[ -e "$cache/$key" ] && exit 0
if ! log=$(clang-tidy-14 --quiet "$file" -- "${flags[@]}" "${analyzer[@]}" 2>/dev/null); then
    echo "$log"
    exit 1
fi
touch "$cache/$key"
