"""Limits of time: what an error says of them, and what the kernel watches."""

import ctypes
import json
import os
import socket
import unittest

from lib import SSE_HEAD, Case, chunk, request

CHAT = "/v1/chat/completions"
TOKEN = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'


def chat(**more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": "hi"}]},
                           **more)).encode()


TCP_USER_TIMEOUT = 18


def sockets_of(pid):
    """Duplicates of the connected sockets of a child (pidfd_getfd)."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(pid)
    try:
        for number in os.listdir("/proc/%d/fd" % pid):
            try:
                if not os.readlink("/proc/%d/fd/%s" % (pid, number)).startswith("socket:"):
                    continue
            except OSError:
                continue  # closed meanwhile
            fd = libc.syscall(438, pidfd, int(number), 0)
            if fd < 0:
                continue
            s = socket.socket(fileno=fd)
            try:
                s.getpeername()[1]
            except (OSError, IndexError):
                s.close()
                continue
            yield s
    finally:
        os.close(pidfd)


class Time(Case):
    def test_errors_name_the_time_limit_that_passed(self):
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        for setting, reason, body in (("upstream-first-token-timeout", "first_token",
                                       chat(stream=True)),
                                      ("upstream-whole-answer-timeout", "whole_answer", chat()),
                                      ("request-timeout", "request_timeout", chat())):
            r = self.router([e], "--" + setting, "200ms")
            got = self.client(r).ask("POST", CHAT, body)
            self.assertEqual(got.status, 504, got)
            self.assertEqual(got.get("x-grapevine-reason"), reason)
            self.assertEqual(got.get("x-grapevine-limit"), setting)
            self.assertEqual(r.metric('requests_refused_total{reason="%s"}' % reason), 1)
            logged = r.wait_logged(CHAT)
            self.assertEqual((logged["reason"], logged["limit"]), (reason, setting))
            r.quiet()

    def test_the_log_names_the_time_limit_that_cut_a_stream(self):
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.send(SSE_HEAD + chunk(TOKEN)),
                                   asked.wait_gone())
        r = self.router([e], "--upstream-idle-timeout", "200ms")
        c = self.client(r)
        c.send(request("POST", CHAT, chat(stream=True)))
        self.assertEqual(c.head().status, 200)
        logged = r.wait_logged(CHAT)
        self.assertEqual((logged["status"], logged["end"], logged["reason"], logged["limit"]),
                         (200, "engine_failed", "idle", "upstream-idle-timeout"))
        r.quiet()

    def test_the_kernel_gives_up_peers_that_vanished(self):
        """On both sides; but a client may read nothing for as long as client-write-timeout says."""
        e = self.engine()
        for limit, ms in (("60s", 60000), ("5s", 30000), ("0", 0)):
            e.clear()
            e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
            r = self.router([e], "--client-write-timeout", limit)
            c = self.client(r)
            c.send(request("POST", CHAT, chat()))
            e.wait_request()
            peers = (c.sock.getsockname()[1], e.port)
            sockets = list(sockets_of(r.pid))
            found = {s.getpeername()[1]: s for s in sockets}
            for peer, wanted in zip(peers, (ms, 30000)):
                s = found[peer]
                self.assertEqual(s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE), 1)
                self.assertEqual(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), 15)
                self.assertEqual(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL), 5)
                self.assertEqual(s.getsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT), wanted)
            for s in sockets:
                s.close()
            c.close()


if __name__ == "__main__":
    unittest.main()
