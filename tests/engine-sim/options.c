#include "tests/engine-sim/options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/slice.h"
#include "tests/engine-sim/http.h"
#include "tests/engine-sim/kv_publisher.h"
#include "tests/engine-sim/ranks.h"

enum kind { WHOLE, REAL, TEXT, FLAG, LISTEN, PORT, MODEL, ENGINE, ON_OFF, TERM, CHOICE, WORDS };

struct option {
    const char *name;
    enum kind kind;
    size_t offset;
    double least;
    const char *value; /* the value's name in --help */
    const char *help;
};

#define AT(field) offsetof(struct sim_options, field)

static const struct option table[] = {
    {"listen", LISTEN, 0, 0, "HOST:PORT",
     "where to listen; port 0: the kernel picks (127.0.0.1:0)"},
    {"model", MODEL, 0, 0, "NAME", "a model that it serves; may be repeated (sim)"},
    {"engine", ENGINE, AT(sglang), 0, "vllm|sglang", "whose surface it has (vllm)"},
    {"data-parallel", WHOLE, AT(data_parallel), 1, "N",
     "ranks behind its address, each with its own queue, cache and limits (1)"},
    {"data-parallel-start", WHOLE, AT(data_parallel_start), 0, "R",
     "the metrics call them R, R + 1, ...: a node of a hybrid vLLM (0)"},
    {"cache-tokens", WHOLE, AT(cache_tokens), 1, "N", "size of the KV cache (400000)"},
    {"block-tokens", WHOLE, AT(block_tokens), 1, "N", "tokens per block of it (64)"},
    {"tier-tokens", WHOLE, AT(tier_tokens), 0, "N",
     "a second, slower cache (memory of the host, a disk) of so many tokens (0: none)"},
    {"tier-rate", REAL, AT(tier_rate), 1, "N", "tokens per second brought back from it (200000)"},
    {"max-loras", WHOLE, AT(max_loras), 0, "N",
     "LoRA adapters that it holds at a time (0: it takes none)"},
    {"adapters", TEXT, AT(adapters), 0, "NAME,...", "those that /v1/models lists"},
    {"adapters-on-demand", FLAG, AT(adapters_any), 0, NULL,
     "any other name is an adapter too, as with a resolver of vLLM"},
    {"lora-load-seconds", REAL, AT(lora_load_s), 0, "SECONDS",
     "what loading one takes before the prompt (0.3)"},
    {"max-model-len", WHOLE, AT(model_len_max), 2, "N", "longest context (131072, or the cache)"},
    {"prefill-rate", REAL, AT(prefill_rate), 1e-3, "N",
     "uncached prompt tokens per second (10000)"},
    {"decode-base-ms", REAL, AT(decode_base_ms), 0, "MS", "a decode step without context (15)"},
    {"decode-ns-per-context-token", REAL, AT(decode_ns_per_context_token), 0, "NS",
     "what each token of the running contexts adds to it (30); 0: nothing"},
    {"prefill-chunk", WHOLE, AT(prefill_chunk), 0, "N",
     "tokens of a prefill that a step carries with it (2048); 0: prefill does not slow decoding"},
    {"max-running", WHOLE, AT(running_max), 1, "N", "requests computed at the same time (256)"},
    {"max-queued", WHOLE, AT(queued_max), 0, "N",
     "requests inside, waiting or running; one more gets 503 (0: no limit)"},
    {"output-tokens", WHOLE, AT(output_tokens), 1, "N",
     "mean length of an answer that nothing else bounds (200)"},
    {"prompt-tokens-details", ON_OFF, AT(details), 0, "on|off",
     "whether usage tells cached_tokens (on)"},
    {"speed-up", REAL, AT(speed_up), 1e-3, "X", "all times of the model are divided by it (1)"},
    {"start-delay", REAL, AT(start_delay_s), 0, "SECONDS", "refuse connections that long (0)"},
    {"seed", WHOLE, AT(seed), 0, "N", "another seed gives other answers (0)"},
    {"api-key", TEXT, AT(api_key), 0, "KEY",
     "wanted as bearer token: by vLLM under /v1, by SGLang on all but /health and /metrics"},
    {"journal", TEXT, AT(journal), 0, "FILE",
     "append what becomes of each request, as JSON lines (jepsen-lite/README.md)"},
    {"metrics", ON_OFF, AT(metrics), 0, "on|off", "serve /metrics, as SGLang does if told to (on)"},
    {"poison", TEXT, AT(poison), 0, "TEXT",
     "a request with this in its body kills it, as a token id beyond the vocabulary kills SGLang"},
    {"on-term", TERM, AT(on_term), 0, "exit|hang|drain",
     "SIGTERM: exit at once; keep requests hanging like vLLM; or finish them first (exit)"},
    {"control", FLAG, AT(control), 0, NULL,
     "serve POST /sim/fail, POST /sim/restart, GET /sim/stats, GET /sim/last; and POST /sim/deed, "
     "which takes its time and does nothing"},
    {"deed-ms", REAL, AT(deed_ms), 0, "MS", "what a deed takes (300)"},
    {"silence", REAL, AT(silence_s), 0, "SECONDS",
     "a stream sends its head, then no text for so long, then all of it in one piece, as when the "
     "engine's parser holds back a tool call or reasoning: tokens are computed meanwhile, and "
     "/metrics counts them, so it is no failure (0: streams send each token)"},
    {"silence-after", WHOLE, AT(silence_after), 0, "N",
     "pieces that pass before (0: the role alone)"},
    {"silence-share", REAL, AT(silence_share), 0, "X", "of all streams (1)"},
    {"tokenizer-ms", REAL, AT(tokenizer_ms), 0, "MS",
     "a request reaches the scheduler late, by chance by up to so long; no gauge shows it (0),"},
    {"tokenizer-slow-ms", REAL, AT(tokenizer_slow_ms), 0, "MS",
     "and one of twenty by so long instead (0: none)"},
    {"ping", REAL, AT(ping_s), 0, "SECONDS", "a stream that was silent so long gets a comment (0)"},
    {"metrics-digits", WHOLE, AT(metrics_digits), 0, "N",
     "digits that the share of the cache in use is rounded to; SGLang's has 2 (17: all)"},
    {"usage-cached", CHOICE, AT(usage_cached), 0, "truly|zero|all|rounded",
     "what usage says of cached tokens: rounded up to hundreds (truly)"},
    {"metrics-steps", WHOLE, AT(metrics_steps), 1, "N",
     "metrics are renewed each N steps, after a prefill and when idle, like SGLang's each 40 (1)"},
    {"metrics-at-end", CHOICE, AT(metrics_at_end), 0, "none|requests|all",
     "counters that rise when an answer ends: of requests' tokens, as SGLang's; all (none)"},
    {"metrics-missing", TEXT, AT(metrics_missing), 0, "NAME,...", "metrics that are not served"},
    {"metrics-reset", REAL, AT(metrics_reset_s), 0, "SECONDS",
     "each SECONDS its counters begin again at 0 (0: never)"},
    {"pause-every", REAL, AT(pause_every_s), 0, "SECONDS", "it pauses that often (0: never),"},
    {"pause", REAL, AT(pause_s), 0, "SECONDS", "for so long (5):"},
    {"pause-of", CHOICE, AT(pause_of), 0, "process|steps",
     "all of it as by SIGSTOP, or the steps alone, while HTTP answers (process)"},
    {"reject", CHOICE, AT(reject), 0, "none|401|403|404|422|no_template|no_tool_parser",
     "a replica set up otherwise than its peers: requests for output get that at once (none); see "
     "--api-key, --max-model-len too"},
    {"prompt-drop", TEXT, AT(prompt_drop), 0, "TEXT",
     "a leading block of system text that begins so is no part of the prompt"},
    {"prompt-lead", TEXT, AT(prompt_lead), 0, "TEXT", "stands ahead of each chat's prompt"},
    {"prompt-changes", WORDS, AT(prompt_changes), 0, "system-first|sort-tools|trim-reasoning",
     "(a list) system messages move to the head; tools are put in order; earlier reasoning of the "
     "assistant is left out"},
    {"framing", WORDS, AT(framing), 0,
     "comments|crlf|no-space|giant|bytes|gzip|gzip-always|identity",
     "(a list) of answers: comments between events, CRLF, no space after data:, all text in one "
     "event, a byte at a time, Content-Encoding (gzip: if accepted)"},
    {"host-name", TEXT, AT(host_name), 0, "NAME",
     "requests and probes with another Host get 404, as from an ingress"},
    {"idle-close-ms", WHOLE, AT(idle_close_ms), 1, "MS",
     "an idle connection ends that long after its last answer (5000),"},
    {"idle-ends", CHOICE, AT(idle_end), 0, "close|reset|408",
     "in order, by a reset, or by a 408 that nobody asked for (close)"},
    {"interim", WHOLE, AT(interim), 0, "N", "1xx heads ahead of each answer (0)"},
    {"kv-events", TEXT, AT(kv_events), 0, "FORM",
     "publish what the cache stores and removes, as that release does: vllm-0.9, -0.10, -0.14, "
     "-0.17, -0.20, -0.22, -0.24, -0.25, sglang-0.5, -0.5.15 (none)"},
    {"kv-events-port", PORT, AT(kv_port), 0, "PORT",
     "where; each rank adds its number. 0: the kernel picks (0)"},
    {"kv-events-connect", TEXT, AT(kv_connect), 0, "tcp://HOST:PORT",
     "connect there instead, as where vLLM's endpoint names a host; each rank adds its number"},
    {"kv-replay-port", PORT, AT(kv_replay), 0, "PORT|none",
     "where messages can be asked for again, the same (none)"},
    {"kv-kept", WHOLE, AT(kv_kept), 1, "N", "so many of each rank (10000)"},
    {"kv-topic", TEXT, AT(kv_topic), 0, "TEXT", "the first part of each message (empty)"},
    {"kv-bytes", FLAG, AT(kv_bytes), 0, NULL,
     "hashes are bytes, as of a vLLM that is told so, instead of numbers"},
};

static void help(void)
{
    printf("engine-sim: answers like an LLM engine with a prefix cache, without a GPU.\n\n"
           "Usage: engine-sim [--NAME VALUE]...\n\n");
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "--%s %s", table[i].name,
                       table[i].value == NULL ? "" : table[i].value);
        printf("  %-36s %s\n", left, table[i].help);
    }
    printf(
        "\nThe header X-data-parallel-rank: 0 to N - 1 pins a request to a rank; SGLang takes "
        "routed_dp_rank of\nthe body too. Who does not pin gets the rank with the fewest requests "
        "(vLLM), or the next one\n(SGLang). GET /sim/stats tells each one's, GET /sim/last the "
        "rank of the last request.\n");
    printf("\nPOST /reset_prefix_cache and /sleep?level=1, /wake_up, GET /is_sleeping (vLLM), POST "
           "/flush_cache\n(SGLang) do as the engines' own: a reset empties the prefix cache unless "
           "requests run; asleep it\nanswers none and has lost its cache (level 1 and 2).\n");
    printf(
        "\nPOST /sim/fail {\"mode\":M, \"after_chunks\":N, \"count\":N, \"for_ms\":N, "
        "\"health\":H}\n"
        "  of requests: hang reset_mid_stream end garbage error (they let after_chunks pieces "
        "pass),\n"
        "    status_429 status_500 status_503 draining full, slow (delay_ms);\n"
        "    count bounds how many fail\n"
        "    early: status (503) as soon as the head is there, then the connection closes;\n"
        "    interim: a 1xx head each delay_ms, and never an answer\n"
        "  of the engine: none; refuse (needs for_ms); stuck, sleep: nothing is computed\n"
        "    (stuck: by one rank, if it says rank);\n"
        "    crawl: slower by factor (10); die: its inner process is killed;\n"
        "    abort: what is under way ends with the finish reason abort;\n"
        "    poison: a request with text in its body kills it\n"
        "    pause (needs for_ms): all of it is silent, as by SIGSTOP; forget: counters begin at "
        "0\n"
        "  of a replica set up otherwise: status_401 status_403 status_404 status_422 no_template\n"
        "    no_tool_parser, context (tokens: its context length)\n"
        "  silent: streams hold back their text for delay_ms, after after_chunks pieces\n"
        "  health: true: probes fail too; \"ok\", \"503\", \"hang\", \"slow\" (health_delay_ms)\n"
        "\nPOST /sim/kv {\"rank\":R, \"drop\":N, \"lose\":N, \"number\":N, \"forget\":true, "
        "\"replay\":false, \"cut\":true}\n"
        "  of KV events, of that rank or all: the next N messages are not sent (drop), nor kept "
        "(lose); the\n"
        "  next one has that number; the cache is emptied and no event says so; who asks for "
        "messages again\n"
        "  gets no answer; all connections end\n"
        "\nPOST /sim/set {\"models\":[NAME...], \"adapters\":[NAME...], \"api_key\":KEY, "
        "\"max_model_len\":N}\n  what is named is so from now on; a list replaces the one "
        "before\n");
}

static bool number_of(const char *text, double *out)
{
    char *end;
    errno = 0;
    *out = strtod(text, &end);
    return errno == 0 && end != text && *end == '\0' && isfinite(*out);
}

/* The index of the word in the list; -1: none. */
static int word_of(const char *text, const char *words)
{
    struct slice rest = slice_of_cstr(words);
    for (int i = 0; rest.len > 0; i++)
        if (slice_equal(slice_cut(&rest, '|'), slice_of_cstr(text)))
            return i;
    return -1;
}

static bool listen_set(struct sim_options *o, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL || slice_to_u64(slice_of_cstr(colon + 1), &o->port) != 0 || o->port > 65535)
        return false;
    struct slice host = slice_of(text, (size_t)(colon - text));
    if (slice_equal(host, SLICE("localhost")))
        host = SLICE("127.0.0.1");
    return slice_to_cstr(host, o->host, sizeof o->host);
}

static bool port_set(uint64_t *port, const char *text)
{
    *port = SIM_NO_PORT;
    return strcmp(text, "none") == 0 ||
           (slice_to_u64(slice_of_cstr(text), port) == 0 && *port < SIM_NO_PORT);
}

/* Reads a list of the words, separated by commas: a bit each. */
static bool words_set(unsigned *bits, struct slice list, const char *words)
{
    char word[32];
    *bits = 0;
    while (list.len > 0) {
        int i = slice_to_cstr(slice_cut(&list, ','), word, sizeof word) ? word_of(word, words) : -1;
        if (i < 0)
            return false;
        *bits |= 1u << i;
    }
    return true;
}

static bool option_set(struct sim_options *o, const struct option *option, const char *text)
{
    void *at = (char *)o + option->offset;
    double number = 0;
    int word = 0;
    switch (option->kind) {
    case FLAG:
        *(bool *)at = true;
        return true;
    case WHOLE:
        return slice_to_u64(slice_of_cstr(text), at) == 0 &&
               (double)*(uint64_t *)at >= option->least && *(uint64_t *)at < 1ull << 40;
    case REAL:
        if (!number_of(text, &number) || number < option->least)
            return false;
        *(double *)at = number;
        return true;
    case TEXT:
        *(const char **)at = text;
        return true;
    case LISTEN:
        return listen_set(o, text);
    case PORT:
        return port_set(at, text);
    case MODEL:
        if (o->model_count == SIM_MODELS_MAX)
            return false;
        o->models[o->model_count++] = text;
        return *text != '\0';
    case ENGINE:
        word = word_of(text, option->value);
        o->sglang = word == 1;
        return word >= 0;
    case CHOICE:
        word = word_of(text, option->value);
        *(unsigned *)at = word < 0 ? 0 : (unsigned)word;
        return word >= 0;
    case WORDS:
        return words_set(at, slice_of_cstr(text), option->value);
    case ON_OFF:
        word = word_of(text, option->value);
        *(bool *)at = word == 0;
        return word >= 0;
    default:
        word = word_of(text, option->value);
        o->on_term = word < 0 ? SIM_TERM_EXIT : (enum sim_term)word;
        return word >= 0;
    }
}

static const struct option *option_find(const char *name, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (slice_equal(slice_of(name, len), slice_of_cstr(table[i].name)))
            return &table[i];
    return NULL;
}

/* Returns 0, or -1 after printing a line. */
static int kv_finish(const struct sim_options *o)
{
    enum sim_kv_of of = o->kv_events == NULL ? SIM_KV_NONE : sim_kv_form(o->kv_events);
    const char *what = NULL;
    if (o->kv_events == NULL)
        return 0;
    if (of != (o->sglang ? SIM_KV_SGLANG : SIM_KV_VLLM))
        what = "--kv-events: --engine has no such form";
    else if (o->kv_connect != NULL && strncmp(o->kv_connect, "tcp://", 6) != 0)
        what = "--kv-events-connect: want tcp://HOST:PORT";
    else if (o->kv_port == SIM_NO_PORT)
        what = "--kv-events needs a port";
    else if (o->kv_kept > SIM_KV_KEPT_MAX)
        what = "--kv-kept is too much";
    if (what != NULL)
        (void)fprintf(stderr, "engine-sim: %s\n", what);
    return what == NULL ? 0 : -1;
}

/* Checks options that depend on each other. */
static int options_finish(struct sim_options *o)
{
    if (o->model_count == 0)
        o->models[o->model_count++] = "sim";
    if (o->data_parallel > SIM_RANKS_MAX) {
        (void)fprintf(stderr, "engine-sim: --data-parallel is at most %d\n", SIM_RANKS_MAX);
        return -1;
    }
    if (o->data_parallel_start > 0 && o->sglang) {
        (void)fprintf(stderr, "engine-sim: --data-parallel-start needs --engine vllm\n");
        return -1;
    }
    uint64_t blocks = o->cache_tokens / o->block_tokens;
    if (blocks < 2 || blocks > 1u << 28) {
        (void)fprintf(stderr, "engine-sim: --cache-tokens must be at least 2 blocks\n");
        return -1;
    }
    if (o->tier_tokens / o->block_tokens > 1u << 28) {
        (void)fprintf(stderr, "engine-sim: --tier-tokens is too much\n");
        return -1;
    }
    if (o->max_loras > SIM_ADAPTERS_MAX) {
        (void)fprintf(stderr, "engine-sim: --max-loras is at most %d\n", SIM_ADAPTERS_MAX);
        return -1;
    }
    if (o->max_loras == 0 && (*o->adapters != '\0' || o->adapters_any)) {
        (void)fprintf(stderr, "engine-sim: adapters need --max-loras\n");
        return -1;
    }
    uint64_t most = blocks * o->block_tokens;
    if (o->model_len_max == 0)
        o->model_len_max = most < 131072 ? most : 131072;
    if (o->model_len_max > most) {
        (void)fprintf(stderr, "engine-sim: --max-model-len %llu does not fit the cache of %llu\n",
                      (unsigned long long)o->model_len_max, (unsigned long long)most);
        return -1;
    }
    return kv_finish(o);
}

int sim_options_parse(struct sim_options *o, int argc, char **argv)
{
    *o = (struct sim_options){
        .host = "127.0.0.1",
        .details = true,
        .metrics = true,
        .data_parallel = 1,
        .cache_tokens = 400000,
        .block_tokens = 64,
        .tier_rate = 200000,
        .adapters = "",
        .lora_load_s = 0.3,
        .prefill_chunk = 2048,
        .running_max = 256,
        .output_tokens = 200,
        .prefill_rate = 10000,
        .decode_base_ms = 15,
        .decode_ns_per_context_token = 30,
        .speed_up = 1,
        .deed_ms = 300,
        .silence_share = 1,
        .metrics_digits = 17,
        .metrics_steps = 1,
        .metrics_missing = "",
        .pause_s = 5,
        .idle_close_ms = SIM_IDLE_MS,
        .kv_topic = "",
        .kv_replay = SIM_NO_PORT,
        .kv_kept = 10000,
    };
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
            help();
            return 1;
        }
        const char *equals = strchr(name, '=');
        size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
        const struct option *option =
            len > 2 && strncmp(name, "--", 2) == 0 ? option_find(name + 2, len - 2) : NULL;
        if (option == NULL) {
            (void)fprintf(stderr, "engine-sim: %s is no option; see --help\n", name);
            return -1;
        }
        const char *value = equals != NULL ? equals + 1 : NULL;
        if (value == NULL && option->kind != FLAG && i + 1 < argc)
            value = argv[++i];
        if ((value == NULL) != (option->kind == FLAG) || !option_set(o, option, value)) {
            (void)fprintf(stderr, "engine-sim: --%s %s: not a valid %s\n", option->name,
                          value == NULL ? "" : value,
                          option->value == NULL ? "flag" : option->value);
            return -1;
        }
    }
    return options_finish(o);
}
