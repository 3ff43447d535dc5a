/* replay: turns a trace, or bodies of equal size, into requests, and reports the answers. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/bench/replay/run.h"

static const char HELP[] =
    "replay: sends chat requests and measures cached share, time to first token, and more.\n"
    "\n"
    "  --target URL           http://HOST:PORT; repeatable, requests are spread at random\n"
    "  --trace TRACE          demo | coding:DIR | conversation:FILE | miniswe:DIR | azure:FILE\n"
    "  --fixed BYTES          instead of a trace: bodies of this size, as fast as answers come\n"
    "  --sessions N           concurrent sessions of a closed loop (32)\n"
    "  --connections C        concurrent requests with --fixed (8)\n"
    "  --requests-max N       stop after so many requests (--requests is the same)\n"
    "  --duration-max-s S     stop starting requests after so many seconds of the trace\n"
    "  --speed-up X           time runs X times as fast; engines need the same factor (1)\n"
    "  --spread MS            move timed arrivals by a random part of this (0)\n"
    "  --think-max-s S        cut longer pauses of sessions (60)\n"
    "  --prompt-max TOKENS    coding sessions: leave out requests of more (128000)\n"
    "  --ramp-s S             the first sessions start within this time (10)\n"
    "  --seed N               order of sessions, text, jitter (1)\n"
    "  --model NAME           (sim)\n"
    "  --stream on|off        (on; off with --fixed)\n"
    "  --session-header on|off  send x-session-id (on)\n"
    "  --timeout-s S          of one request, by the wall clock (600)\n"
    "  --pid PID              a router process to watch: CPU and memory; repeatable\n"
    "  --json FILE            write the results there too\n"
    "  --label TEXT           headline of the report\n"
    "  --quiet                no progress\n";

enum flag {
    OPTION_TARGET = 256,
    OPTION_TRACE,
    OPTION_FIXED,
    OPTION_SESSIONS,
    OPTION_CONNECTIONS,
    OPTION_REQUESTS_MAX,
    OPTION_DURATION_MAX_S,
    OPTION_SPEED_UP,
    OPTION_SPREAD,
    OPTION_THINK_MAX_S,
    OPTION_PROMPT_MAX,
    OPTION_RAMP_S,
    OPTION_SEED,
    OPTION_MODEL,
    OPTION_STREAM,
    OPTION_SESSION_HEADER,
    OPTION_TIMEOUT_S,
    OPTION_PID,
    OPTION_JSON,
    OPTION_LABEL,
    OPTION_QUIET,
    OPTION_HELP,
};

static const struct option OPTIONS[] = {
    {"target", required_argument, NULL, OPTION_TARGET},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"fixed", required_argument, NULL, OPTION_FIXED},
    {"sessions", required_argument, NULL, OPTION_SESSIONS},
    {"connections", required_argument, NULL, OPTION_CONNECTIONS},
    {"requests-max", required_argument, NULL, OPTION_REQUESTS_MAX},
    {"requests", required_argument, NULL, OPTION_REQUESTS_MAX},
    {"duration-max-s", required_argument, NULL, OPTION_DURATION_MAX_S},
    {"speed-up", required_argument, NULL, OPTION_SPEED_UP},
    {"spread", required_argument, NULL, OPTION_SPREAD},
    {"think-max-s", required_argument, NULL, OPTION_THINK_MAX_S},
    {"prompt-max", required_argument, NULL, OPTION_PROMPT_MAX},
    {"ramp-s", required_argument, NULL, OPTION_RAMP_S},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"model", required_argument, NULL, OPTION_MODEL},
    {"stream", required_argument, NULL, OPTION_STREAM},
    {"session-header", required_argument, NULL, OPTION_SESSION_HEADER},
    {"timeout-s", required_argument, NULL, OPTION_TIMEOUT_S},
    {"pid", required_argument, NULL, OPTION_PID},
    {"json", required_argument, NULL, OPTION_JSON},
    {"label", required_argument, NULL, OPTION_LABEL},
    {"quiet", no_argument, NULL, OPTION_QUIET},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static _Noreturn void refuse(const char *name, const char *value, const char *right)
{
    (void)fprintf(stderr, "replay: --%s \"%s\" should be %s\n", name, value, right);
    exit(2);
}

static double number(const char *name, const char *text, double min)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > 1e9) {
        char right[48];
        (void)snprintf(right, sizeof right, "a number from %g to 1e9", min);
        refuse(name, text, right);
    }
    return value;
}

static bool on_off(const char *name, const char *text)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        refuse(name, text, "on or off");
    return strcmp(text, "on") == 0;
}

static void text_options(struct settings *s, int option, const char *value)
{
    switch (option) {
    case OPTION_TARGET:
        if (s->target_count == CLIENT_TARGETS)
            refuse("target", value, "given at most 64 times");
        s->targets[s->target_count++] = value;
        break;
    case OPTION_PID:
        if (s->pid_count == RUN_PIDS)
            refuse("pid", value, "given at most 32 times");
        s->pids[s->pid_count++] = (int)number("pid", value, 1);
        break;
    case OPTION_TRACE:
        s->trace = value;
        break;
    case OPTION_MODEL:
        s->model = value;
        break;
    case OPTION_JSON:
        s->json = value;
        break;
    case OPTION_LABEL:
        s->label = value;
        break;
    case OPTION_QUIET:
        s->quiet = true;
        break;
    case OPTION_HELP:
        (void)fputs(HELP, stdout);
        exit(0);
    default:
        (void)fputs("replay: try --help\n", stderr);
        exit(2);
    }
}

static void settings_read(struct settings *s, int argc, char **argv)
{
    int stream = -1, option, index = 0;
    while ((option = getopt_long(argc, argv, "", OPTIONS, &index)) != -1) {
        const char *name = OPTIONS[index].name;
        switch (option) {
        case OPTION_FIXED:
            s->fixed_bytes = (size_t)number(name, optarg, 512);
            break;
        case OPTION_SESSIONS:
            s->sessions = (size_t)number(name, optarg, 1);
            break;
        case OPTION_CONNECTIONS:
            s->connections = (size_t)number(name, optarg, 1);
            break;
        case OPTION_REQUESTS_MAX:
            s->requests_max = (size_t)number(name, optarg, 0);
            break;
        case OPTION_DURATION_MAX_S:
            s->duration_max_s = number(name, optarg, 0);
            break;
        case OPTION_SPEED_UP:
            s->speed_up = number(name, optarg, 1e-3);
            break;
        case OPTION_SPREAD:
            s->trace_options.spread_ms = number(name, optarg, 0);
            break;
        case OPTION_THINK_MAX_S:
            s->trace_options.think_max_s = number(name, optarg, 0);
            break;
        case OPTION_PROMPT_MAX:
            s->trace_options.prompt_max = (uint32_t)number(name, optarg, 1);
            break;
        case OPTION_RAMP_S:
            s->ramp_s = number(name, optarg, 0);
            break;
        case OPTION_SEED:
            s->trace_options.seed = (uint64_t)number(name, optarg, 0);
            break;
        case OPTION_TIMEOUT_S:
            s->timeout_s = number(name, optarg, 1e-3);
            break;
        case OPTION_STREAM:
            stream = on_off(name, optarg);
            break;
        case OPTION_SESSION_HEADER:
            s->session_header = on_off(name, optarg);
            break;
        default:
            text_options(s, option, optarg);
        }
    }
    if (optind < argc)
        refuse("target", argv[optind], "named by a flag; see --help");
    s->stream = stream >= 0 ? stream == 1 : s->fixed_bytes == 0;
}

static bool interrupted;

static void on_signal(uv_signal_t *signal, int number_of_signal)
{
    (void)number_of_signal;
    interrupted = true;
    run_stop(signal->data, "stopped by a signal");
    (void)uv_signal_stop(signal); /* the second signal kills */
}

int main(int argc, char **argv)
{
    static struct settings s = {
        .model = "sim",
        .label = "replay",
        .sessions = 32,
        .connections = 8,
        .speed_up = 1,
        .timeout_s = 600,
        .ramp_s = 10,
        .session_header = true,
        .trace_options = {.seed = 1, .think_max_s = 60, .prompt_max = 128000}};
    static struct run r;
    settings_read(&s, argc, argv);
    if (s.target_count == 0)
        refuse("target", "", "given at least once, as http://HOST:PORT");
    if ((s.trace == NULL) == (s.fixed_bytes == 0))
        refuse("trace", s.trace == NULL ? "" : s.trace, "given, or --fixed, and not both");
    if (s.fixed_bytes > 0 && s.requests_max == 0 && s.duration_max_s == 0)
        refuse("requests-max", "0", "given with --fixed, or --duration-max-s");
    s.trace_options.requests_max = s.requests_max;
    s.trace_options.sessions = s.sessions;
    (void)signal(SIGPIPE, SIG_IGN);
    if (run_init(&r, &s) != 0)
        return 2;
    uv_signal_t interrupt;
    CHECK(uv_signal_init(&r.loop, &interrupt) == 0);
    interrupt.data = &r;
    CHECK(uv_signal_start(&interrupt, on_signal, SIGINT) == 0);
    uv_unref((uv_handle_t *)&interrupt);
    int err = s.fixed_bytes > 0 ? fixed_run(&r) : load_run(&r);
    if (err != 0)
        return 2;
    stats_print(&r.stats, stdout);
    if (r.why[0] != '\0')
        (void)fprintf(stderr, "replay: %s\n", r.why);
    if (s.json != NULL && stats_write_json(&r.stats, s.json) != 0)
        refuse("json", s.json, "a file that can be written");
    int status = interrupted ? 130 : r.stats.ok > 0 ? 0 : 1;
    uv_close((uv_handle_t *)&interrupt, NULL);
    (void)uv_run(&r.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&r.loop);
    stats_free(&r.stats);
    return status;
}
