#!/usr/bin/env bash
# clang-tidy on some files, started once for all of them. A file is skipped if it, its headers and
# the rules are as they were when it was last clean, with all that were checked beside it.
#
#   tests/lint/tidy.sh CACHE_DIR FILE...
set -uo pipefail
cache=$1
shift
# With CHECK_SLOW, whose arguments would look like work for nothing.
flags=(-std=c17 -I. -D_GNU_SOURCE -D__SANITIZE_ADDRESS__=1)
# The path search of the analyzer in full takes a minute on some files, shallow a second.
analyzer=(-Xclang -analyzer-config -Xclang mode=shallow)
changed=() keys=()
for file in "$@"; do
    deps=$(gcc "${flags[@]}" -MM -MT x "$file" 2>/dev/null | sed -e 's/^x://' -e 's/\\$//' | tr -s ' \n' ' ') ||
        { echo "$file: does not compile"; exit 1; }
    # shellcheck disable=SC2086
    key=$cache/$(cat .clang-tidy "$0" $deps | sha256sum | cut -c1-32)
    [ -e "$key" ] || { changed+=("$file") keys+=("$key"); }
done
[ ${#changed[@]} -gt 0 ] || exit 0
if ! log=$(clang-tidy-14 --quiet "${changed[@]}" -- "${flags[@]}" "${analyzer[@]}" 2>/dev/null); then
    echo "$log"
    exit 1
fi
touch "${keys[@]}"
