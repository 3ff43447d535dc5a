"""The processes of a service: routers, engines, and the balancer before the routers."""

import http.client
import json
import os
import shutil

from . import habits
from .process import Process

CLIENT_PORT, ADMIN_PORT, GOSSIP_PORT, ENGINE_PORT, BALANCER_PORT = 8080, 9090, 7490, 8000, 80


def loopback(host, port, method, path, body=None, timeout=5):
    """(status, JSON or text) of a call on the machine itself: no fault of the network touches it."""
    with host.inside():
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
            c.request(method, path, text, {} if body is None else {"content-type": "application/json"})
            r = c.getresponse()
            answer = r.read().decode("utf-8", "replace")
        except http.client.HTTPException as e:
            raise OSError("%s %s of %s: %r" % (method, path, host.name, e)) from e
        finally:
            c.close()
    try:
        return r.status, json.loads(answer)
    except ValueError:
        return r.status, answer


class Router(Process):
    port, admin_port, gossip_port = CLIENT_PORT, ADMIN_PORT, GOSSIP_PORT

    def command(self, build):
        s = self.service
        out = [os.path.join(build, "grapevine"), "--node-name", self.name, "--listen", "0.0.0.0:%d" % CLIENT_PORT,
               "--admin-listen", "0.0.0.0:%d" % ADMIN_PORT, "--gossip-listen", "0.0.0.0:%d" % GOSSIP_PORT,
               "--cluster-key-file", s.key_file, "--log-format", "json"]
        for r in s.routers:
            out += ["--join", "%s:%d" % (r.address, GOSSIP_PORT)]
        for e in s.engines:
            out += ["--replica", "http://%s:%d" % (e.address, ENGINE_PORT)]
        return out + s.options.router_args

    def about(self):
        return dict(super().about(), build=self.build, bug=self.service.options.bug)

    def start(self):
        if self.service.options.bug:
            self.env.setdefault("BUG", self.service.options.bug)
            self.build = os.path.join(self.service.build, "lab")
        super().start()

    def holds(self):
        """Its number of open descriptors, and its machine's number of TCP sockets; {}: not running."""
        sockets = 0
        try:
            descriptors = len(os.listdir("/proc/%d/fd" % self.pid))
            for table in ("tcp", "tcp6"):
                with open("/proc/%d/net/%s" % (self.pid, table)) as f:
                    sockets += sum(line.split()[9] != "0" for line in f.readlines()[1:])
        except OSError:
            return {}
        return {"descriptors": descriptors, "sockets": sockets}

    def admin(self, method, path, body=None, timeout=5):
        return loopback(self.host, ADMIN_PORT, method, path, body, timeout)


class Engine(Process):
    port = ENGINE_PORT

    def __init__(self, service, host):
        super().__init__(service, host)
        self.journal = os.path.join(service.folder, "journals", self.name + ".jsonl")
        self.habits = service.options.habits.get(self.name, {})

    def command(self, build):
        return [os.path.join(build, "tests/engine-sim"), "--listen", "0.0.0.0:%d" % ENGINE_PORT, "--control",
                "--journal", self.journal] + habits.as_args(self.habits, self.address) + self.service.options.engine_args

    def control(self, path, body=None, timeout=5):
        """(status, JSON) of a call of /sim/..."""
        return loopback(self.host, ENGINE_PORT, "GET" if body is None else "POST", path, body, timeout)


HAPROXY = """
global
    maxconn 4000
defaults
    mode tcp
    retries 0
    timeout connect 2s
    timeout client 120s
    timeout server 120s
listen routers
    bind 0.0.0.0:%d
    balance roundrobin
%s
"""


class Balancer(Process):
    """HAProxy in TCP mode: it only knows what /readyz says."""

    port = BALANCER_PORT

    def command(self, build):
        path = os.path.join(self.service.folder, "haproxy.cfg")
        servers = ["    server %s %s:%d check port %d inter 500ms fall 2 rise 1" %
                   (r.name, r.address, r.port, r.admin_port) for r in self.service.routers]
        if not self.service.options.command:
            servers.insert(0, "    option httpchk GET /readyz")
        with open(path, "w") as f:
            f.write(HAPROXY % (BALANCER_PORT, "\n".join(servers)))
        return [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", path]
