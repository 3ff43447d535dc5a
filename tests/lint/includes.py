#!/usr/bin/env python3
"""Fails on an include outside the dependency table of CONTRIBUTING.md, and on a private header that
is not called *_internal.h or is included from another room.

usage: includes.py ROOT    (checks every .c and .h below ROOT's source folders)
"""
import os
import re
import sys

# Folder -> folders that it may include besides itself. The same table as in CONTRIBUTING.md.
TOP = ["base", "crdt", "gossip", "http"]
MAY = {
    "base": [],
    "crdt": ["base"],
    "gossip": ["base"],
    "http": ["base"],
}
# The rooms of node/, each may include those above it in this list, and TOP.
ROOMS = ["access", "kv", "cluster", "replica", "discover", "route", "settings", "admission", "trace", "proxy", "admin"]
SHELL = ["io"]
ENDS = ["daemon", "gvctl"]
# node/proxy has rooms of its own. All but limit rest on its floor: the parts of struct proxy, and
# the counters. The files left in node/proxy itself are above them.
FLOOR = "node/proxy/floor"
FLOOR_FILES = {f"node/proxy/{f}" for f in [
    "net.h", "proxy.h", "proxy_internal.h", "stats.c", "stats.h", "timing.c", "timing.h",
    "client/clients.h", "engine/engines.h", "exchange/exchanges.h"]}
PROXY = {
    "node/proxy/limit": [],
    FLOOR: ["limit"],
    "node/proxy/client": ["floor", "limit"],
    "node/proxy/engine": ["floor", "limit"],
    "node/proxy/exchange": ["floor", "limit", "client", "engine"],
    "node/proxy/own": ["floor", "limit", "client", "engine", "exchange"],
    "node/proxy/guard": ["floor", "limit", "client", "engine", "exchange"],
}
below = list(TOP)
for room in ROOMS:
    inner = PROXY if room == "proxy" else {}
    MAY.update({r: below + [f"node/proxy/{s}" for s in named] for r, named in inner.items()})
    MAY[f"node/{room}"] = below + list(inner)
    below += [*inner, f"node/{room}"]
# Files of node/ itself are above all pure rooms.
MAY["node"] = below
for n, room in enumerate(SHELL):
    MAY[f"node/{room}"] = MAY["node"] + ["node"] + [f"node/{r}" for r in SHELL[:n]]
ALL = list(MAY)
for end in ENDS:
    MAY[f"node/{end}"] = ALL
MAY["tests"] = list(MAY)
PURE = below + ["node"]

# A third-party header -> its allowed place (a folder with "/", or a file; "" as all of tests/).
THIRD_PARTY = {
    "uv.h": ["node/io/", "node/daemon/", "node/gvctl/"],
    "openssl/core_names.h": ["node/io/tls_tickets.c"],
    "openssl/err.h": ["node/io/tls.c", "node/io/tls_context.c", "node/io/tls_failures.c", "node/io/tls_pem.c",
                      "node/io/tls_seal.c", "node/io/tls_stream.c", "node/io/tls_tickets.c", "node/gvctl/secure.c"],
    "openssl/evp.h": ["node/io/tls_tickets.c"],
    "openssl/pem.h": ["node/io/tls_pem.c", "node/gvctl/secure.c"],
    "openssl/rand.h": ["node/io/tls_tickets.c"],
    "openssl/ssl.h": ["node/io/tls_internal.h", "node/gvctl/secure.c"],
    "openssl/x509v3.h": ["node/io/tls_context.c", "node/io/tls_host.c"],
    "yaml.h": ["node/io/yaml_line.h", "node/io/config_yaml.c", "node/io/replica_map.h", "node/io/replica_yaml.c", "node/gvctl/convert/read.c"],
    "ares.h": ["node/io/dns.c"],
    "curl/curl.h": ["node/io/curl_loop.h", "node/io/kubernetes_secret.c"],
    "sodium.h": ["gossip/", "node/access/digest.c", "node/io/random.c", "node/proxy/exchange/request.c"],
    "xxhash.h": ["base/"],
    "zlib.h": ["http/coding_gzip.c"],
    "zstd.h": ["http/coding_zstd.c"],
    "zstd_errors.h": ["http/coding_zstd.c"],
    "msgpack/unpack.h": ["node/kv/batch.c"],
    "msgpack/unpack_define.h": ["node/kv/batch.c"],
    "msgpack/unpack_template.h": ["node/kv/batch.c"],
    "msgpack.h": [],
    "zmq.h": ["node/io/kv_feed.c"],
    "jansson.h": ["node/gvctl/"],
    "cmocka.h": [],
}

# Symbols of libc and the compiler allowed in pure code: computing, formatting, memory.
PURE_LIBC = {
    "assert.h", "ctype.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdalign.h",
    "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h",
    "stdnoreturn.h", "string.h", "time.h", "emmintrin.h", "arm_neon.h",
}

# A private header is <noun>_internal.h: only its own folder, those in it and test programs include it, and
# the parts of the simulator, of the bench and of tests/lib that break the protocol on purpose or judge it.
PRIVATE = "_internal.h"
TEST_PROGRAM = re.compile(r"^tests/(.*_(test|fuzz|bench)|sim/(nonsense|oracle|service/use)|bench/quality/belief|lib/kv_held)\.c$")
OTHER_SUFFIX = re.compile(r"(_(inner|inside|intern|lookup|parts?|priv|private|impl|state)|/(inner|inside|internal|private))\.h$")
# Headers with another suffix, to be renamed. It only shrinks.
KNOWN_SUFFIX = set()

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A header that is named by a macro, on a line that goes on, after a comment, or by another word.
HIDDEN = re.compile(r"^\s*(/\*.*\*/\s*)*(#|%:|\?\?=)\s*(/\*.*\*/\s*)*(include|import|embed|\\$)")


def folder_of(path):
    """The folder of the table that a path belongs to, None if none."""
    if os.path.dirname(path) == "node":
        return "node"
    if path in FLOOR_FILES:
        return FLOOR
    fits = [f for f in MAY if f != "node" and path.startswith(f + "/")]
    return max(fits, key=len) if fits else None


def wrong(root, path, folder, quote, header):
    """Says what is wrong with one include, or None."""
    if quote == '"':
        target = folder_of(header)
        if target is None or not os.path.isfile(os.path.join(root, header)):
            return "no such header from the root of the tree"
        home = os.path.dirname(header)
        if header.endswith(PRIVATE) and not path.startswith(home + "/") and not TEST_PROGRAM.match(path):
            return f"{header} is for {home} only"
        if target != folder and target not in MAY[folder]:
            return f"{folder} may not include {target}"
        return None
    if header in THIRD_PARTY:
        places = THIRD_PARTY[header]
        if folder == "tests":
            return None
        if any(path.startswith(p) if p.endswith("/") else path == p for p in places):
            return None
        return f"<{header}> belongs in {', '.join(places) or 'tests/'} only"
    if folder in PURE and header not in PURE_LIBC:
        return f"{folder} is pure: <{header}> is not for it"
    return None


def main():
    root = sys.argv[1]
    failures = 0
    files = 0
    known = set(KNOWN_SUFFIX)
    for top in sorted({f.split("/")[0] for f in MAY}):
        for where, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(n for n in names if n.endswith((".c", ".h"))):
                full = os.path.join(where, name)
                path = os.path.relpath(full, root)
                folder = folder_of(path)
                if folder is None:
                    print(f"{path}: stands in no folder of the table")
                    failures += 1
                    continue
                files += 1
                if folder != "tests" and OTHER_SUFFIX.search(path):
                    if path in KNOWN_SUFFIX:
                        known.discard(path)
                    else:
                        print(f"{path}: a private header is called <noun>{PRIVATE}")
                        failures += 1
                with open(full, encoding="utf-8") as f:
                    for number, line in enumerate(f, 1):
                        match = INCLUDE.match(line)
                        if match:
                            problem = wrong(root, path, folder, *match.groups())
                        else:
                            problem = HIDDEN.match(line) and "an include says #include and the header's name"
                        if problem:
                            print(f"{path}:{number}: {problem}")
                            failures += 1
    whole = os.path.isfile(os.path.join(root, "Makefile"))
    for path in sorted(known if whole else ()):
        print(f"{path} is there no more: take it out of KNOWN_SUFFIX")
        failures += 1
    for path in sorted(FLOOR_FILES if whole else ()):
        if not os.path.isfile(os.path.join(root, path)):
            print(f"{path} is there no more: take it out of FLOOR_FILES")
            failures += 1
    if files == 0:
        print("no source files found")
    sys.exit(1 if failures or files == 0 else 0)


main()
