#!/usr/bin/env python3
"""The cost of clients' keys per request of the whole router: two routers in front of the same backend, one with a file
of 10,000 keys with limits, in turns; CPU time of each process per request.

usage: tests/bench/keys.py [ROUNDS]    (after: make everything)
"""
import hashlib
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BUILD = os.environ.get("BUILD", "build")
KEYS, REQUESTS = 10000, 4000
BODY = b'{"model":"sim","messages":[{"role":"user","content":"%s"}]}' % (b"x" * 960)


def start(log, *command):
    return subprocess.Popen(command, stderr=log, stdout=log)


def said(path, pattern):
    """Waits for a line of the process's log."""
    for _ in range(400):
        with open(path) as f:
            found = re.search(pattern, f.read())
        if found:
            return found.group(1)
        time.sleep(0.05)
    sys.exit("no start: see %s" % path)


def router(folder, name, url, *args):
    log = os.path.join(folder, name)
    process = start(open(log, "w"), os.path.join(BUILD, "grapevine"), "--replica", url, "--log-format", "json", "--listen",
                    "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", *args)
    port = int(said(log, r'"port_of":"clients","host":"[^"]*","port":(\d+)'))
    said(log, '(replica_up)')
    return process, port


def cpu_ns(process):
    with open("/proc/%d/schedstat" % process.pid) as f:
        return int(f.read().split()[0])


def round_of(process, port, secrets):
    """CPU of one request, in ns: each with another key, one after the other on one connection."""
    s = socket.create_connection(("127.0.0.1", port))
    before = cpu_ns(process)
    for n in range(REQUESTS):
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s"
                  % (secrets[n * 7 % KEYS], len(BODY), BODY))
        got = b""
        while not re.search(rb"\r\n\r\n.*\}\s*$", got, re.S):
            piece = s.recv(65536)
            assert piece, got
            got += piece
        assert got.startswith(b"HTTP/1.1 200"), got
    s.close()
    return (cpu_ns(process) - before) / REQUESTS


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    secrets = [b"gv-%043d" % n for n in range(KEYS)]
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        with open(keys, "w") as f:
            for n, secret in enumerate(secrets):
                f.write("client-%d blake2b:%s requests-per-minute=1000000 tokens-per-minute=1000000000 in-flight=100\n" %
                        (n, hashlib.blake2b(secret, digest_size=32).hexdigest()))
        log = os.path.join(folder, "backend")
        backend = start(open(log, "w"), os.path.join(BUILD, "tests/bench/backend"), "--listen", "127.0.0.1:0")
        url = said(log, r"listening on (http:[^ \n]+)")
        plain = router(folder, "plain", url)
        keyed = router(folder, "keyed", url, "--client-keys-file", keys)
        try:
            for each in (plain, keyed):
                round_of(*each, secrets)  # warm
            found = []
            for n in range(rounds):
                order = (plain, keyed) if n % 2 else (keyed, plain)
                ns = {each[1]: round_of(*each, secrets) for each in order}
                found.append((ns[plain[1]], ns[keyed[1]]))
        finally:
            for process in (plain[0], keyed[0], backend):
                process.kill()
    differences = sorted(b - a for a, b in found)
    least = [min(pair[i] for pair in found) for i in (0, 1)]
    print("1 KB, CPU a request, the least of %d rounds: without keys %.1f us, with %d keys %.1f us: %.2f us more"
          % (rounds, least[0] / 1000, KEYS, least[1] / 1000, (least[1] - least[0]) / 1000))
    print("median of the differences of pairs: %.2f us (%.2f .. %.2f)"
          % tuple(d / 1000 for d in (statistics.median(differences), differences[0], differences[-1])))


if __name__ == "__main__":
    main()
