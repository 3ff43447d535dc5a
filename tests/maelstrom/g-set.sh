#!/bin/sh
# The binary that Maelstrom starts for its workload of this name (docs/simulation.md).
exec "$(dirname "$0")/../../build/tests/maelstrom" g-set
