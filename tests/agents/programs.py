"""Real agents and SDKs: how each is installed, pointed at a server and run without a terminal. docs/agents.md says the same to people."""

import collections
import json
import os
import sys

PROMPT = "Use your shell tool to run `echo grape-1`, then `echo grape-2`, then tell me what you saw."
FOLDER = os.path.dirname(os.path.abspath(__file__))

# `packages`: of the registry `kind` ("npm" or "pip"). `run(home, base)` gives (command, environment); files may be written to `home`.
# `tools`: calls the shell tool. `interrupts`: ends at SIGINT.
Program = collections.namedtuple("Program", "name kind packages api tools run")


def npm(name, program):
    return os.path.join("npm", name, "node_modules", ".bin", program)


def write(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))


def claude(home, base):
    return (["{npm}/claude", "-p", PROMPT, "--model", "m", "--allowedTools", "Bash"],
            {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_SMALL_FAST_MODEL": "m", "DISABLE_AUTOUPDATER": "1",
             "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"})


def codex(home, base):
    os.makedirs(home + "/codex", exist_ok=True)
    provider = '{name="grapevine",base_url="%s/v1",env_key="KEY",wire_api="responses",supports_websockets=true}' % base
    return (["{npm}/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", "model_provider=grapevine",
             "-c", "model_providers.grapevine=" + provider, "-m", "m", PROMPT], {"KEY": "k", "CODEX_HOME": home + "/codex"})


def opencode(home, base):
    model = {"name": "m", "limit": {"context": 200000, "output": 8000}}
    config = {"provider": {"grapevine": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": base + "/v1", "apiKey": "k"},
                                         "models": {"m": model}}},
              "model": "grapevine/m", "small_model": "grapevine/m", "autoupdate": False, "share": "disabled", "permission": {"*": "allow"}}
    return (["{npm}/opencode", "run", "-m", "grapevine/m", PROMPT],
            {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"})


def qwen(home, base):
    return (["{npm}/qwen", "-y", "--auth-type", "openai", "-p", PROMPT],
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": base + "/v1", "OPENAI_MODEL": "m", "QWEN_TELEMETRY_ENABLED": "false"})


def pi(api):
    def run(home, base):
        url = base if api == "anthropic-messages" else base + "/v1"
        write(home + "/.pi/agent/models.json", {"providers": {"grapevine": {
            "baseUrl": url, "api": api, "apiKey": "k",
            "models": [{"id": "m", "contextWindow": 200000, "maxTokens": 8000}]}}})
        return ["{npm}/pi", "-p", PROMPT, "--provider", "grapevine", "--model", "m"], {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}
    return run


def cline(home, base):
    return (["sh", "-c", '"$0" auth openai --apikey k --modelid m --baseurl %s/v1 >&2 && exec "$0" -P openai -m m "$1"' % base, "{npm}/cline", PROMPT],
            {"CLINE_TELEMETRY_DISABLED": "1", "DO_NOT_TRACK": "1"})


def aider(home, base):
    return (["{pip}/aider", "--model", "openai/m", "--message", "Say what you see.", "--yes-always", "--no-git", "--no-check-update",
             "--no-show-model-warnings", "--no-analytics", "--no-pretty", "--map-tokens", "0"],
            {"OPENAI_API_BASE": base + "/v1", "OPENAI_API_KEY": "k"})


def sdk(which):
    def run(home, base):
        return ["{pip}/python", FOLDER + "/sdk.py", which], {"BASE": base, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    return run


def node_sdk(which):
    def run(home, base):
        return ["node", FOLDER + "/sdk.mjs", which, "{modules}"], {"BASE": base}
    return run


def autocannon(home, base):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello " * 100}]})
    return ["{npm}/autocannon", "-c", "8", "-a", "200", "-m", "POST", "-H", "content-type=application/json", "-b", body, "--json",
            base + "/v1/chat/completions"], {}


PROGRAMS = [
    Program("openai-python", "pip", ["openai==3.57.0"], "openai", False, sdk("openai")),
    Program("openai-node", "npm", ["openai@6.49.0"], "openai", False, node_sdk("openai")),
    Program("anthropic-python", "pip", ["anthropic==2.14.0"], "anthropic", False, sdk("anthropic")),
    Program("anthropic-node", "npm", ["@anthropic-ai/sdk@1.14.0"], "anthropic", False, node_sdk("anthropic")),
    Program("litellm", "pip", ["litellm==1.110.2"], "openai", False, sdk("litellm")),
    Program("aider", "pip", ["aider-chat==0.86.2"], "openai", False, aider),
    Program("claude", "npm", ["@anthropic-ai/claude-code@2.1.197"], "anthropic", True, claude),
    Program("codex", "npm", ["@openai/codex@0.171.0"], "responses", True, codex),
    Program("opencode", "npm", ["opencode-ai@1.18.33"], "openai", True, opencode),
    Program("qwen", "npm", ["@qwen-code/qwen-code@0.15.10"], "openai", True, qwen),
    Program("pi", "npm", ["@mariozechner/pi-coding-agent@0.73.1"], "openai", True, pi("openai-completions")),
    Program("pi-anthropic", "npm", ["@mariozechner/pi-coding-agent@0.73.1"], "anthropic", True, pi("anthropic-messages")),
    Program("cline", "npm", ["cline@3.0.65"], "openai", True, cline),
    Program("autocannon", "npm", ["autocannon@8.0.0"], "openai", False, autocannon),
]
LOAD_TOOLS = ("autocannon",)


if __name__ == "__main__":
    sys.stdout.write("".join("%s %s\n" % (p.name, " ".join(p.packages)) for p in PROGRAMS))
