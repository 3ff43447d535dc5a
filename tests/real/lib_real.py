"""Real engines as processes, and clients that note what each of them saw."""
import http.client
import json
import os
import signal
import subprocess
import threading
import time

from lib import HOST, Case, closed_port, wait_for

HOME = os.environ["HOME_DIR"]
START_LIMIT = 240
PATIENCE = 30  # seconds that a client waits for the next byte


class Engine:
    """One engine: its server and the processes that it starts. Its log is HOME/engine-PORT.log."""

    module = args = env = ()

    def __init__(self, *args, key=None):
        self.port, self.more, self.key = closed_port(), args, key
        self.url = "http://%s:%d" % (HOST, self.port)
        self.name = "%s:%d" % (HOST, self.port)
        self.process = None

    def start(self):
        with open(os.path.join(HOME, "engine-%d.log" % self.port), "ab") as log:
            self.process = subprocess.Popen(
                [os.path.join(HOME, "engine/bin/python"), "-m", self.module,
                 "--host", HOST, "--port", str(self.port)] + list(self.args) + list(self.more)
                + (["--api-key", self.key] if self.key else []),
                env=dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", OMP_NUM_THREADS="1",
                         **dict(self.env)),
                stdout=log, stderr=log, start_new_session=True)
        return self

    def wait(self):
        def healthy():
            if self.process.poll() is not None:
                raise AssertionError("%s ended; see its log in %s" % (self.name, HOME))
            return self.ask("GET", "/health")[0] == 200
        wait_for(healthy, "health of " + self.name, START_LIMIT, 0.2)
        # A first prompt of fewer than 32 tokens has been seen to kill vLLM's worker.
        status, _ = self.ask("POST", "/v1/completions", {"model": "tiny", "max_tokens": 2, "prompt": "warm up " * 40})
        assert status == 200, status

    def ask(self, method, path, body=None, limit=20):
        connection = http.client.HTTPConnection(HOST, self.port, timeout=limit)
        headers = {"content-type": "application/json"} if body is not None else {}
        if self.key:
            headers["authorization"] = "Bearer " + self.key
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 0, b""
        finally:
            connection.close()

    def processes(self):
        """{pid: title} of the server and all below it."""
        out = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as stat, open("/proc/%s/cmdline" % pid, "rb") as line:
                    if int(stat.read().rsplit(")", 1)[1].split()[3]) == self.process.pid:  # its session
                        out[int(pid)] = line.read().replace(b"\0", b" ").decode(errors="replace")
            except (OSError, IndexError):
                continue
        return out

    def child(self, title):
        return next(pid for pid, line in self.processes().items() if title in line)

    def signal_all(self, number):
        for pid in self.processes():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def stop(self):
        if self.process is not None:
            self.signal_all(signal.SIGKILL)
            self.process.wait()
            self.process = None


class VLLM(Engine):
    module = "vllm.entrypoints.openai.api_server"
    args = ("--model", HOME + "/model", "--served-model-name", "tiny", "--load-format", "dummy",
            "--enforce-eager", "--max-model-len", "8192", "--enable-prefix-caching",
            "--enable-prompt-tokens-details")
    env = (("VLLM_NO_USAGE_STATS", "1"), ("VLLM_HOST_IP", "127.0.0.1"), ("VLLM_CPU_KVCACHE_SPACE", "1"),
           ("VLLM_SERVER_DEV_MODE", "1"))


class SGLang(Engine):
    module = "sglang.launch_server"
    args = ("--model-path", HOME + "/model", "--served-model-name", "tiny", "--load-format", "dummy",
            "--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch",
            "--disable-overlap-schedule", "--sleep-on-idle", "--context-length", "8192", "--page-size", "16",
            "--max-total-tokens", "65536", "--max-running-requests", "64", "--enable-metrics",
            "--enable-cache-report")
    env = (("SGLANG_USE_CPU_ENGINE", "1"),)

    def __init__(self, *args, key=None):
        super().__init__(*args, key=key)
        if "--dp-size" in args and args[args.index("--dp-size") + 1] == "2":
            self.env += (("SGLANG_CPU_OMP_THREADS_BIND", "0|1"),)  # else a rank for each NUMA node


class Asked:
    """One request, as seen by its client."""

    def __init__(self, path, body):
        self.path, self.body = path, body
        self.status, self.replica, self.reason = 0, "", ""
        self.first_s = None  # until the first content, or all of an answer that is not streamed
        self.waited_s = 0    # the longest time without content, from the start
        self.events, self.tokens, self.whole, self.error_event = 0, 0, False, False
        self.text, self.why = b"", ""

    @property
    def avoidable(self):
        """It got nothing, and no engine would have refused it."""
        return self.tokens == 0 and not self.whole

    def __repr__(self):
        return "<%s %s %s%s first=%s waited=%.1f tokens=%d whole=%s error_event=%s %s %s>" % (
            self.path, "stream" if self.body.get("stream") else "whole", self.status,
            " " + self.replica, self.first_s and round(self.first_s, 2), self.waited_s, self.tokens, self.whole,
            self.error_event, self.why, self.text[-120:])


def has_content(event):
    choice = (event.get("choices") or [{}])[0]
    return bool((choice.get("delta") or {}).get("content") or choice.get("text") or event.get("text"))


def run(port, asked, key=None):
    """Sends the request and follows its answer to the end, patiently."""
    started = last = time.monotonic()
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = "Bearer " + key
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)

    def content():
        nonlocal last
        now = time.monotonic()
        asked.first_s = asked.first_s or now - started
        asked.waited_s = max(asked.waited_s, now - last)
        last = now
        asked.tokens += 1
    try:
        connection.request("POST", asked.path, json.dumps(asked.body), headers)
        answer = connection.getresponse()
        asked.status, asked.replica = answer.status, answer.getheader("x-grapevine-replica", "")
        asked.reason = answer.getheader("x-grapevine-reason", "")
        if answer.status != 200 or not asked.body.get("stream"):
            asked.text = answer.read()
            content()
            asked.tokens = 0
            asked.whole = answer.status == 200
            return
        for line in answer:
            if line.startswith(b"data: [DONE]"):
                asked.whole = not asked.error_event
            elif line.startswith(b"data: "):
                asked.text = line
                event = json.loads(line[6:])
                asked.events += 1
                asked.error_event |= "error" in event
                if has_content(event):
                    content()
    except (OSError, http.client.HTTPException, ValueError) as error:
        asked.why = repr(error)
    finally:
        asked.waited_s = max(asked.waited_s, time.monotonic() - last)
        connection.close()


class Load:
    """Clients that ask one after another, streamed and not, until stop()."""

    def __init__(self, port, clients=6, key=None, tokens=40):
        self.done, self.stopping, self.key = [], threading.Event(), key
        self.threads = [threading.Thread(target=self._client, args=(port, n, tokens), daemon=True)
                        for n in range(clients)]
        for thread in self.threads:
            thread.start()

    def _client(self, port, n, tokens):
        round_ = 0
        while not self.stopping.is_set():
            round_ += 1
            text = "client %d round %d. " % (n, round_) + "The vine grows along the wall. " * 20
            asked = Asked("/v1/chat/completions", {
                "model": "tiny", "stream": n % 3 != 0, "max_tokens": tokens, "ignore_eos": True,
                "messages": [{"role": "user", "content": text}]})
            run(port, asked, self.key)
            self.done.append(asked)

    def wait_for(self, count):
        wanted = len(self.done) + count
        wait_for(lambda: len(self.done) >= wanted, "%d answers" % count, 60)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE + 10)
        return self.done


class RealCase(Case):
    """Two engines, kept from test to test; one that a test has ended is started again."""
    kind = Engine
    engines = []

    @classmethod
    def tearDownClass(cls):
        for engine in cls.engines:
            engine.stop()
        cls.engines = []
        super().tearDownClass()

    def pair(self):
        cls = type(self)
        if not cls.engines:
            cls.engines = [self.kind(), self.kind()]
        fresh = [e for e in cls.engines if e.process is None or e.process.poll() is not None
                 or e.ask("GET", "/health")[0] != 200]
        for engine in fresh:
            engine.stop()
            engine.start()
        for engine in fresh:
            engine.wait()
        return cls.engines

    def front(self, engines, *args):
        """A router as a user starts it."""
        router = self.router([e.url for e in engines], "--listen", HOST + ":0", "--admin-listen", HOST + ":0",
                             "--access-log", "all", *args, defaults=False, wait_up=False)
        wait_for(lambda: len({e["replica"] for e in router.events("replica_up")}) >= len(engines), "replicas up", 30)
        return router

    def report(self, router, done):
        print("%d requests, %d streams broken, the longest wait %.1f s" % (
            len(done), sum(not a.whole for a in done), max(a.waited_s for a in done)), flush=True)
        with open(os.path.join(HOME, self.id() + ".log"), "w") as log:  # to see why
            log.write("%r\n" % [x for x in done if not x.whole])
            log.write(router.admin("GET", "/metrics").body.decode())
            log.write("".join(line + "\n" for line in router.lines
                              if '"event":"request"' not in line or json.loads(line)["ms"] > 2000))
            log.write("".join("%r\n" % a for a in sorted(done, key=lambda a: -a.waited_s)[:20]))

    def trouble(self, router, do, seconds=12, **how):
        """Load, then `do`, then more load. No client waits over 10 s, nothing avoidable fails, and a
        stream that had to break says so."""
        load = Load(router.port, **how)
        try:
            load.wait_for(20)
            do()
            time.sleep(seconds)
        finally:
            done = load.stop()
        self.report(router, done)
        self.assertEqual([a for a in done if a.avoidable], [])
        self.assertEqual([a for a in done if a.waited_s > 10], [])
        self.assertEqual([a for a in done if not a.whole and not a.error_event], [])
        self.assertGreater(len(done), 40)
        return done
