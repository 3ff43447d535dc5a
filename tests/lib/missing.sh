#!/usr/bin/env bash
# missing.sh COMPILER HEADER=PACKAGE...: names the Debian packages without which nothing compiles.
# It asks the compiler, not the package manager: a library that was installed by hand will do.
set -euo pipefail
compiler=$1
shift
missing=()
if ! command -v "$compiler" >/dev/null; then
    case $compiler in
    clang*) missing=("$compiler") ;;
    *) missing=(build-essential) ;;
    esac
else
    for pair in "$@"; do
        "$compiler" -E -x c -o /dev/null - <<<"#include <${pair%%=*}>" 2>/dev/null || missing+=("${pair#*=}")
    done
fi
[ ${#missing[@]} -eq 0 ] && exit 0
echo "These Debian packages are missing: ${missing[*]}" >&2
echo "Install them with: make ${DEPS:-deps} (as root, or with sudo)" >&2
exit 1
