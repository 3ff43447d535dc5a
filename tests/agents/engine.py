"""A scripted engine for agents: it calls their shell tool, reads the result, calls it again, and ends with a text. The
engine speaks OpenAI's chat and responses and Anthropic's messages, keeps a prefix cache, and fails on demand."""

import http.server
import json
import socket
import struct
import threading
import time
import uuid

BLOCK = 64  # characters of a prompt that are cached together
CHARS_PER_TOKEN = 4
TOOLS = ("Bash", "bash", "shell", "exec_command", "run_shell_command", "shell_command", "run_commands", "execute_command", "local_shell")
CALLS = 2  # tool calls before the final text
ANSWER_S = 0.1  # work before an answer: routers share their knowledge meanwhile
CACHE_BLOCKS = 100000  # far more than a run has


class Script:
    """Shared by all engines of a run: the order of requests does not matter, only the conversation."""

    def __init__(self):
        self.lock = threading.Lock()
        self.results = []  # the tool's output, in the order of the final requests
        self.prompt_tokens = self.cached_tokens = 0
        self.faults = []  # (kind, after how many turns of the main conversation)
        self.faults_done = []
        self.delay_s = 0.0  # between pieces of a text; endless if it is not 0
        self.probes = []  # requests that are no completion
        self.requests = 0

    def fault(self, turn):
        with self.lock:
            if self.faults and turn >= self.faults[0][1]:
                kind = self.faults.pop(0)[0]
                self.faults_done.append(kind)
                return kind
        return None


def text_of(content):
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text_of(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "output", "content"):
            if key in content:
                return text_of(content[key])
    return ""


def tool_results(body):
    """In any of the three APIs."""
    for item in body.get("messages") or body.get("input") or []:
        if not isinstance(item, dict):
            continue
        if item.get("role") == "tool" or item.get("type") in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            yield text_of(item.get("content", item.get("output")))
        elif isinstance(item.get("content"), list):
            for part in item["content"]:
                if isinstance(part, dict) and part.get("type") == "tool_result":
                    yield text_of(part.get("content"))


def pick_tool(body, command):
    """The shell tool of this agent, and arguments that its schema takes."""
    offered = {}
    for tool in body.get("tools") or []:
        for one in tool.get("tools") or [tool]:
            function = one.get("function", one)
            if isinstance(function, dict) and "name" in function:
                offered[function["name"]] = function.get("parameters") or function.get("input_schema") or {}
    for name in TOOLS:
        if name not in offered:
            continue
        arguments = {}
        properties = offered[name].get("properties", {})
        for key, how in properties.items():
            if key in ("command", "cmd"):
                arguments[key] = ["bash", "-lc", command] if how.get("type") == "array" else command
            elif key == "commands":
                arguments[key] = [command]
            elif key in offered[name].get("required", []):
                kind = how.get("type")
                arguments[key] = False if kind == "boolean" else 5000 if kind in ("number", "integer") else "run it"
        return name, arguments
    return None


class Turn:
    """The engine's answer to one request."""

    def __init__(self, body):
        self.results = list(tool_results(body))
        tool = pick_tool(body, "echo grape-%d" % (len(self.results) + 1)) if len(self.results) < CALLS else None
        self.tool = tool
        self.call = "call_" + uuid.uuid4().hex[:20]
        said = " ".join(r.strip().replace("\n", " ") for r in self.results)
        seen = [word for word in ("grape-1", "grape-2") if word in said]
        self.text = "" if tool else "All is done: vine %s." % (" ".join(seen) or "alone")
        self.main = bool(body.get("tools")) or not self.results


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass

    def answer(self, status, body, content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self):
        path = self.path.split("?")[0]
        engine = self.server.engine
        if path == "/health":
            self.answer(200, b"")
        elif path == "/v1/models":
            self.answer(200, {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "vllm", "max_model_len": 200000}]})
        elif path == "/metrics":
            self.answer(200, ("vllm:num_requests_running %d\nvllm:num_requests_waiting 0\nvllm:generation_tokens_total %d\n"
                              % (engine.running, engine.generated)).encode(), "text/plain")
        else:
            engine.script.probes.append((self.command, path))
            self.answer(405 if path.startswith("/v1/") else 404, {"detail": "Not Found"})

    do_HEAD = do_GET

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        path = self.path.split("?")[0]
        try:
            body = json.loads(raw)
        except ValueError:
            body = {}
        if path == "/v1/messages/count_tokens":
            self.answer(200, {"input_tokens": len(raw) // CHARS_PER_TOKEN})
            return
        if path not in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
            self.server.engine.script.probes.append(("POST", path))
            self.answer(404, {"detail": "Not Found"})
            return
        engine = self.server.engine
        with engine.lock:
            engine.running += 1
        try:
            self.complete(path, body)
        finally:
            with engine.lock:
                engine.running -= 1

    # --- a completion ---

    def complete(self, path, body):
        engine = self.server.engine
        turn = Turn(body)
        prompt, cached = engine.prefill(body)
        with engine.script.lock:
            engine.script.requests += 1
            engine.script.prompt_tokens += prompt
            engine.script.cached_tokens += cached
            if turn.main and not turn.tool:
                engine.script.results.append(turn.results)
        fault = engine.script.fault(len(turn.results)) if turn.main else None
        time.sleep(ANSWER_S)
        if fault in (500, 503):
            kind = "api_error" if fault == 500 else "overloaded_error"
            error = {"type": kind, "message": "out of order", "code": fault}
            self.answer(fault, {"type": "error", "error": error} if path == "/v1/messages" else {"error": error})
            return
        if fault == "die":
            engine.die()
            self.kill()
            return
        self.fault = fault
        maker = {"/v1/chat/completions": chat, "/v1/responses": responses, "/v1/messages": messages}[path]
        stream = bool(body.get("stream"))
        events, whole = maker(turn, prompt, cached, body)
        if not stream:
            if fault == "cut":
                self.kill()
                return
            if fault == "pause":
                time.sleep(engine.pause_s)
            self.answer(200, whole)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.stream(events, engine)

    def stream(self, events, engine):
        half = max(2, len(events) // 2)
        for i, event in enumerate(events):
            if self.fault == "cut" and i == half:
                time.sleep(ANSWER_S)  # a reset takes with it what the peer has not read
                self.kill()
                return
            if self.fault == "pause" and i == half:
                time.sleep(engine.pause_s)
            text = event if isinstance(event, str) else json.dumps(event)
            kind = "event: %s\n" % event["type"] if isinstance(event, dict) and "type" in event else ""
            self.chunk("%sdata: %s\n\n" % (kind, text))
            engine.generated += 1
            if engine.script.delay_s and "grape" in text or engine.script.delay_s and "vine" in text:
                while engine.script.delay_s:  # until the client leaves
                    time.sleep(engine.script.delay_s)
                    self.chunk(": alive\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def kill(self):
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


# --- the three APIs -----------------------------------------------------------------------------

def words(text):
    return [w + " " for w in text.split(" ")[:-1]] + text.split(" ")[-1:]


def chat(turn, prompt, cached, body):
    usage = {"prompt_tokens": prompt, "completion_tokens": 8, "total_tokens": prompt + 8, "prompt_tokens_details": {"cached_tokens": cached}}
    base = {"id": "chatcmpl-" + turn.call, "created": 1, "model": "m"}

    def delta(part, finish=None):
        return dict(base, object="chat.completion.chunk", choices=[{"index": 0, "delta": part, "finish_reason": finish}])
    events = [delta({"role": "assistant", "content": ""})]
    if turn.tool:
        name, arguments = turn.tool
        arguments = json.dumps(arguments)
        call = {"index": 0, "id": turn.call, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(delta({"tool_calls": [call]}))
        events += [delta({"tool_calls": [{"index": 0, "function": {"arguments": p}}]}) for p in (arguments[:5], arguments[5:])]
        events.append(delta({}, "tool_calls"))
        message = {"role": "assistant", "content": None, "tool_calls": [
            {"id": turn.call, "type": "function", "function": {"name": name, "arguments": arguments}}]}
    else:
        events += [delta({"content": w}) for w in words(turn.text)]
        events.append(delta({}, "stop"))
        message = {"role": "assistant", "content": turn.text}
    if (body.get("stream_options") or {}).get("include_usage"):
        events.append(dict(base, object="chat.completion.chunk", choices=[], usage=usage))
    events.append("[DONE]")
    finish = "tool_calls" if turn.tool else "stop"
    return events, dict(base, object="chat.completion", choices=[{"index": 0, "message": message, "finish_reason": finish}], usage=usage)


def responses(turn, prompt, cached, body):
    usage = {"input_tokens": prompt, "input_tokens_details": {"cached_tokens": cached}, "output_tokens": 8,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": prompt + 8}
    base = {"id": "resp_" + turn.call, "object": "response", "created_at": 1, "model": "m", "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": []}
    if turn.tool:
        name, arguments = turn.tool
        item = {"type": "function_call", "id": "fc_" + turn.call, "call_id": turn.call, "name": name, "arguments": json.dumps(arguments),
                "status": "completed"}
        middle = [{"type": "response.output_item.added", "output_index": 0, "item": dict(item, arguments="", status="in_progress")},
                  {"type": "response.function_call_arguments.delta", "item_id": item["id"], "output_index": 0, "delta": item["arguments"]},
                  {"type": "response.function_call_arguments.done", "item_id": item["id"], "output_index": 0, "arguments": item["arguments"]}]
    else:
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        item = {"type": "message", "id": "msg_" + turn.call, "role": "assistant", "status": "completed", "content": [part]}
        at = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        middle = [{"type": "response.output_item.added", "output_index": 0, "item": dict(item, content=[], status="in_progress")},
                  dict(at, type="response.content_part.added", part=dict(part, text=""))]
        middle += [dict(at, type="response.output_text.delta", delta=w) for w in words(turn.text)]
        middle += [dict(at, type="response.output_text.done", text=turn.text), dict(at, type="response.content_part.done", part=part)]
    whole = dict(base, status="completed", output=[item], usage=usage)
    events = [{"type": "response.created", "response": dict(base, status="in_progress", output=[])}] + middle
    events += [{"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": whole}]
    return [dict(e, sequence_number=i) for i, e in enumerate(events)], whole


def messages(turn, prompt, cached, body):
    usage = {"input_tokens": prompt - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": 8}
    base = {"id": "msg_" + turn.call, "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    if turn.tool:
        name, arguments = turn.tool
        block = {"type": "tool_use", "id": "toolu_" + turn.call, "name": name, "input": arguments}
        middle = [{"type": "content_block_start", "index": 0, "content_block": dict(block, input={})},
                  {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": json.dumps(arguments)}}]
    else:
        block = {"type": "text", "text": turn.text}
        middle = [{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
        middle += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": w}} for w in words(turn.text)]
    stop = "tool_use" if turn.tool else "end_turn"
    events = [{"type": "message_start", "message": dict(base, content=[], stop_reason=None, usage=dict(usage, output_tokens=1))}]
    events += middle + [{"type": "content_block_stop", "index": 0},
                        {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 8}},
                        {"type": "message_stop"}]
    return events, dict(base, content=[block], stop_reason=stop, usage=usage)


# --- the engine ---------------------------------------------------------------------------------

class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass


def plain(value):
    """The part of a prompt that an engine renders: without marks of caching and ids of calls."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k not in ("cache_control", "id")}
    return [plain(v) for v in value] if isinstance(value, list) else value


class Engine:
    def __init__(self, script, pause_s=15.0, down_s=1.0):
        self.script, self.pause_s, self.down_s = script, pause_s, down_s
        self.lock = threading.Lock()
        self.running = self.generated = 0
        self.blocks = set()
        self.server = None
        self.port = 0
        self.start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.engine = self
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def die(self):
        """Ends the engine, which comes back with an empty cache."""
        def back():
            self.stop()
            time.sleep(self.down_s)
            self.blocks = set()
            self.start()
        threading.Thread(target=back, daemon=True).start()

    def prefill(self, body):
        text = json.dumps(plain([body.get("tools"), body.get("system"), body.get("instructions"), body.get("messages") or body.get("input")]))
        key, cached, seen = 0, 0, True
        with self.lock:
            for at in range(0, len(text) - BLOCK + 1, BLOCK):
                key = hash((key, text[at:at + BLOCK]))
                seen = seen and key in self.blocks
                cached += BLOCK if seen else 0
                if len(self.blocks) < CACHE_BLOCKS:
                    self.blocks.add(key)
        return max(1, len(text) // CHARS_PER_TOKEN), cached // CHARS_PER_TOKEN
