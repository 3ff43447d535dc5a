#!/usr/bin/env bash
# What gossip costs and how fast it is: real processes on loopback (tests/bench/gossip/), each with
# the daemon's own shell, and no engines.
#   tests/bench/gossip.sh [--rounds N] [spread] [bytes] [idle] [killed] [forged] [reconcile] [join]
# QUICK=1 makes it short. Result: build/bench/gossip.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build}
mkdir -p "$BUILD/bench"
"$BUILD/tests/bench/gossip-bench" ${QUICK:+--quick} "$@" | tee "$BUILD/bench/gossip.txt"
