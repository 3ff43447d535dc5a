#!/usr/bin/env bash
# `make test-page`: the page of the admin port in a real browser, with three routers under load.
#
# Needs Debian's chromium, chromium-driver and python3-selenium (apt-get install them); no part of the
# ordinary run. axe-core, which looks for what keeps people out, comes from npm, once; without it that
# one test is skipped. SHOTS=1 makes the pictures of docs/img anew.
set -euo pipefail
cd "$(dirname "$0")/../.."
export BUILD=${BUILD:-build}
python=
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import selenium' 2>/dev/null && python=$candidate && break
done
missing=()
command -v chromium >/dev/null || missing+=(chromium)
command -v chromedriver >/dev/null || missing+=(chromium-driver)
[ -n "$python" ] || missing+=(python3-selenium)
if [ ${#missing[@]} -gt 0 ]; then
    echo "skipped: not installed: ${missing[*]} (apt-get install ${missing[*]})"
    exit 0
fi
if [ ! -f "$BUILD/page/node_modules/axe-core/axe.min.js" ]; then
    mkdir -p "$BUILD/page"
    (cd "$BUILD/page" && npm install --silent --no-fund --no-audit axe-core >npm.log 2>&1) ||
        echo "axe-core cannot be fetched (npm): its test is skipped"
fi
AXE=$(realpath -m "$BUILD/page/node_modules/axe-core/axe.min.js") PYTHONPATH=tests/e2e:tests/page \
    exec "$python" -W ignore -m unittest -v ${TEST:-browser_test trouble_test}
