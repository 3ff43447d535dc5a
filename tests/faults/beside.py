#!/usr/bin/env python3
"""`make bench SECTION=beside`: the load, alone and beside a crowd that only takes up room.

    tests/faults/beside.py [--idle 5000] [--readers 500] [--uploads 50] [--rate 100] [--seconds 15] [--json FILE]

The crowd, in a process of its own: `idle` connections, every other one used once; `readers` of a long stream that
take 1 KB twice a second; `uploads` of a body of 1 MiB at 2 KB a second. What the router closes is opened again. The
load is measured alone, beside the crowd, and alone again, in one run. Fails if a request of the load fails, or if
its p99 to the first token beside the crowd is over 1.5 times that of the worse half alone.
"""

import argparse
import asyncio
import json
import os
import resource
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fleet as f  # noqa: E402
import load as l  # noqa: E402

RATIO_MAX = 1.5
BIG = "big"  # the model of the slow readers

# --- the crowd: a process of its own ---------------------------------------------------------------


async def big_engine(reader, writer):
    """An engine whose every answer is a stream without an end, as fast as it is read."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ")[1]
            length = [int(h.split(b":")[1]) for h in head.lower().split(b"\r\n") if h.startswith(b"content-length:")]
            if length:
                await reader.readexactly(length[0])
            if path != l.CHAT.encode():
                body = json.dumps({"object": "list", "data": [{"id": BIG, "object": "model", "owned_by": "vllm"}]}
                                  if path == b"/v1/models" else {}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" %
                             (len(body), body))
                continue
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            event = b'data: {"id":"b","choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % (b"x" * 4000)
            while True:
                writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


class Crowd:
    def __init__(self, address, o):
        self.address, self.o = address, o
        self.opened = 0

    async def connect(self, receive_buffer=None):
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.address)
        self.opened += 1
        return sock

    async def always(self, number, what):
        """Repeats the fault again and again, whatever the router does about it."""
        await asyncio.sleep(number % 100 / 50)
        while True:
            sock = None
            try:
                sock = await what(number)
            except OSError:
                pass
            finally:
                if sock is not None:
                    sock.close()
            await asyncio.sleep(0.5)

    async def idle(self, number):
        loop = asyncio.get_running_loop()
        sock = await self.connect()
        if number % 2:
            await loop.sock_sendall(sock, b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
        while await loop.sock_recv(sock, 4096):
            pass
        return sock

    async def read_slowly(self, _):
        loop = asyncio.get_running_loop()
        sock = await self.connect(receive_buffer=4096)
        body = json.dumps({"model": BIG, "stream": True, "messages": [{"role": "user", "content": "much"}]}).encode()
        await loop.sock_sendall(sock, l.posted(l.CHAT, body))
        while await loop.sock_recv(sock, 1024):
            await asyncio.sleep(0.5)
        return sock

    async def upload_slowly(self, _):
        loop = asyncio.get_running_loop()
        sock = await self.connect()
        body = b'{"model":"sim","messages":[{"role":"user","content":"' + b"word " * 200000
        await loop.sock_sendall(sock, l.posted(l.CHAT, body)[:2000])
        for at in range(2000, len(body), 1000):
            await asyncio.sleep(0.5)
            await loop.sock_sendall(sock, body[at:at + 1000])
        return sock

    async def run(self):
        tasks = []
        for what, count in ((self.idle, self.o.idle), (self.read_slowly, self.o.readers),
                            (self.upload_slowly, self.o.uploads)):
            tasks += [asyncio.ensure_future(self.always(i, what)) for i in range(count)]
        await asyncio.gather(*tasks)


async def crowd(o):
    engine = await asyncio.start_server(big_engine, f.HOST, 0, backlog=1024)
    print(engine.sockets[0].getsockname()[1], flush=True)
    line = await asyncio.to_thread(sys.stdin.readline)  # the router's port: now
    await Crowd((f.HOST, int(line)), o).run()


# --- the load --------------------------------------------------------------------------------------


async def phase(the_load, seconds, router):
    the_load.results.clear()
    cpu, sent = router.metric("process_cpu_seconds_total"), router.metric("response_bytes_total")
    await the_load.run(seconds)
    await the_load.finish()
    ttft = [r.ttft for r in the_load.results if r.stream and r.ttft is not None]
    return {"requests": len(the_load.results), "failed": len([r for r in the_load.results if not r.good]),
            "cpu_percent": 100 * (router.metric("process_cpu_seconds_total") - cpu) / seconds,
            "sent_kb_per_s": (router.metric("response_bytes_total") - sent) / 1000 / seconds,
            "p50_ms": l.percentile(ttft, 0.5) * 1000, "p99_ms": l.percentile(ttft, 0.99) * 1000,
            "failures": sorted({r.failure for r in the_load.results if not r.good})}


async def measure(o):
    flags = ["--idle", str(o.idle), "--readers", str(o.readers), "--uploads", str(o.uploads)]
    others = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--crowd"] + flags, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              preexec_fn=lambda: os.nice(10))  # other machines, in the world
    fleet = None
    try:
        big = "http://%s:%s" % (f.HOST, others.stdout.readline().strip())
        fleet = await asyncio.to_thread(f.Fleet, 8, 1, ("--replica", big))
        router = fleet.routers[0]
        the_load = l.Load(fleet.addresses, o.rate)
        await phase(the_load, 3, router)
        out = {"alone": await phase(the_load, o.seconds, router)}
        others.stdin.write("%d\n" % router.port)
        others.stdin.flush()
        wanted = o.idle + o.readers + o.uploads
        limit = time.monotonic() + 60
        while router.metric("connections_open") < wanted * 0.98 and time.monotonic() < limit:
            await asyncio.sleep(0.5)
        await asyncio.sleep(3)  # until all buffers are full
        out["connections"] = router.metric("connections_open")
        out["beside"] = await phase(the_load, o.seconds, router)
        out["connections_after"] = router.metric("connections_open")
        out["rss_mib"] = router.rss() / 1048576
        others.kill()
        await asyncio.sleep(2)
        out["alone_again"] = await phase(the_load, o.seconds, router)
        return out
    finally:
        others.kill()
        others.wait()
        if fleet is not None:
            await asyncio.to_thread(fleet.stop)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--idle", type=int, default=5000)
    p.add_argument("--readers", type=int, default=500)
    p.add_argument("--uploads", type=int, default=50)
    p.add_argument("--rate", type=float, default=100)
    p.add_argument("--seconds", type=float, default=15)
    p.add_argument("--json", default="")
    p.add_argument("--crowd", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if o.crowd:
        asyncio.run(crowd(o))
        return 0
    out = asyncio.run(measure(o))
    print("  %-12s %9s %7s %8s %8s %14s %8s" % ("", "requests", "failed", "p50 ms", "p99 ms", "router's CPU %", "KB/s"))
    for name in ("alone", "beside", "alone_again"):
        m = out[name]
        print("  %-12s %9d %7d %8.1f %8.1f %14.1f %8.0f  %s" % (name.replace("_", " "), m["requests"], m["failed"],
                                                               m["p50_ms"], m["p99_ms"], m["cpu_percent"], m["sent_kb_per_s"],
                                                          ", ".join(m["failures"])))
    out["ratio"] = out["beside"]["p99_ms"] / max(out["alone"]["p99_ms"], out["alone_again"]["p99_ms"])
    failed = sum(out[name]["failed"] for name in ("alone", "beside", "alone_again"))
    print("  beside %d connections (%d at the end), router %.0f MiB: p99 %.2f times" %
          (out["connections"], out["connections_after"], out["rss_mib"], out["ratio"]))
    if o.json:
        with open(o.json, "w") as file:
            json.dump(out, file, indent=1)
    return 1 if failed or out["ratio"] > RATIO_MAX else 0


if __name__ == "__main__":
    f.ends_well()
    sys.exit(main())
