#include "tests/lib/proxy_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

static void escape(struct buf *out, struct slice bytes, size_t max)
{
    size_t n = bytes.len < max ? bytes.len : max;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes.at[i];
        int err = c == '\r'                         ? buf_append_cstr(out, "\\r")
                  : c == '\n'                       ? buf_append_cstr(out, "\\n")
                  : c == '"'                        ? buf_append_cstr(out, "\\\"")
                  : c < ' ' || c > '~' || c == '\\' ? buf_printf(out, "\\x%02x", c)
                                                    : buf_append_char(out, (char)c);
        CHECK(err == 0);
    }
    if (n < bytes.len)
        CHECK(buf_printf(out, "... %zu bytes", bytes.len) == 0);
}

/* The router's ids are in every message and say nothing, so they are left out. */
static bool is_own_id(struct slice field)
{
    struct slice name = slice_cut(&field, ':');
    return slice_equal_nocase(name, SLICE("x-request-id")) && slice_trim(field).len >= 32;
}

void proxy_trace_message(struct buf *out, struct slice bytes)
{
    static const char *const shown[] = {
        "content-length", "transfer-encoding", "connection",       "retry-after",
        "allow",          "authorization",     "x-request-id",     "x-data-parallel-rank",
        "x-api-key",      "api-key",           "www-authenticate", "upgrade",
        "x-should-retry", "x-grapevine-limit"};
    struct slice line = slice_of(bytes.at, slice_find(bytes, '\r'));
    const char *end = memmem(bytes.at, bytes.len, "\r\n\r\n", 4);
    bool head = end != NULL && (slice_starts_with(line, SLICE("HTTP/1.1 ")) ||
                                slice_ends_with(line, SLICE(" HTTP/1.1")));
    if (head) {
        struct slice lines = slice_of(bytes.at, (size_t)(end - bytes.at));
        CHECK(buf_printf(out, " %.*s", SLICE_ARG(line)) == 0);
        while (lines.len > 0) {
            struct slice field = slice_trim(slice_cut(&lines, '\n'));
            struct slice name = slice_of(field.at, slice_find(field, ':'));
            for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
                if (slice_equal_nocase(name, slice_of_cstr(shown[i])) && !is_own_id(field))
                    CHECK(buf_printf(out, "; %.*s", (int)slice_find(field, '\r'), field.at) == 0);
            }
        }
        bytes = slice_skip(bytes, (size_t)(end - bytes.at) + 4);
    }
    if (bytes.len == 0)
        return;
    CHECK(buf_printf(out, " \"") == 0);
    escape(out, bytes, bytes.len > 300 ? 24 : 300);
    CHECK(buf_printf(out, "\"") == 0);
}

/* Empty: missing. */
static struct slice logged(struct slice line, const char *key)
{
    const char *at = memmem(line.at, line.len, key, strlen(key));
    if (at == NULL)
        return slice_of("", 0);
    struct slice value = slice_skip(line, (size_t)(at - line.at) + strlen(key));
    value = slice_cut(&value, '\n');
    return slice_cut(&value, ' ');
}

/* For a request with a bad end: result, reason and limiting setting. For others nothing. */
static void write_end(char out[128], struct slice line)
{
    struct slice end = logged(line, " end="), reason = logged(line, " reason="),
                 limit = logged(line, " limit=");
    out[0] = '\0';
    if (slice_equal(end, SLICE("whole")) && !slice_equal(reason, SLICE("error_event")) &&
        !slice_equal(reason, SLICE("aborted")))
        return;
    bool has_reason = !slice_equal(reason, SLICE("\"\""));
    bool has_limit = !slice_equal(limit, SLICE("\"\""));
    (void)snprintf(out, 128, " end=%.*s%s%.*s%s%.*s", SLICE_ARG(end), has_reason ? " reason=" : "",
                   has_reason ? (int)reason.len : 0, reason.at, has_limit ? " limit=" : "",
                   has_limit ? (int)limit.len : 0, limit.at);
}

void proxy_trace_log_end(char out[128], struct slice event, struct slice line)
{
    struct slice replicas = logged(line, " replicas=");
    out[0] = '\0';
    if (slice_equal(event, SLICE("request")))
        write_end(out, line);
    else if (replicas.len > 0)
        (void)snprintf(out, 128, " replicas=%.*s", SLICE_ARG(replicas));
}

static uint64_t retries(const struct proxy_stats *t)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < RETRY_REASONS; i++)
        sum += t->retries[i];
    return sum;
}

struct shown {
    const char *name;
    uint64_t value;
};

/* Writes the figures other than 0. */
static void write_shown(struct buf *out, const struct shown *shown, size_t count)
{
    const char *before = "";
    for (size_t i = 0; i < count; i++) {
        if (shown[i].value == 0)
            continue;
        CHECK(buf_printf(out, "%s%s %llu", before, shown[i].name,
                         (unsigned long long)shown[i].value) == 0);
        before = ", ";
    }
    CHECK(buf_append_cstr(out, before[0] == '\0' ? "none\n" : "\n") == 0);
}

void proxy_trace_counters(struct buf *out, const struct proxy_stats *t)
{
    const struct shown shown[] = {
        {"requests", t->requests},
        {"retries", retries(t)},
        {"1xx", t->responses[1]},
        {"2xx", t->responses[2]},
        {"3xx", t->responses[3]},
        {"4xx", t->responses[4]},
        {"5xx", t->responses[5]},
        {"invalid: malformed", t->requests_refused[REFUSED_MALFORMED]},
        {"invalid: path", t->requests_refused[REFUSED_PATH]},
        {"invalid: upgrade", t->requests_refused[REFUSED_UPGRADE]},
        {"refused control", t->requests_refused[REFUSED_CONTROL]},
        {"refused no replica", t->requests_refused[REFUSED_NO_REPLICA]},
        {"refused bad gateway", t->requests_refused[REFUSED_BAD_GATEWAY]},
        {"invalid: model", t->requests_refused[REFUSED_MODEL]},
        {"invalid: API key", t->requests_refused[REFUSED_API_KEY]},
        {"invalid: client key", t->requests_refused[REFUSED_CLIENT_KEY]},
        {"refused engine field", t->requests_refused[REFUSED_ENGINE_FIELD]},
        {"invalid: key's model", t->requests_refused[REFUSED_KEY_MODEL]},
        {"refused key's limit", t->requests_refused[REFUSED_KEY_LIMIT]},
        {"invalid: key's response", t->requests_refused[REFUSED_KEY_RESPONSE]},
        {"refused memory", t->requests_refused[REFUSED_MEMORY]},
        {"refused queue full", t->requests_refused[REFUSED_QUEUE_FULL]},
        {"refused queue time", t->requests_refused[REFUSED_QUEUE_TIMEOUT]},
        {"refused stopping", t->requests_refused[REFUSED_STOPPING]},
        {"refused connect time", t->requests_refused[REFUSED_CONNECT]},
        {"refused first token", t->requests_refused[REFUSED_FIRST_TOKEN]},
        {"refused idle", t->requests_refused[REFUSED_IDLE]},
        {"refused whole answer", t->requests_refused[REFUSED_WHOLE_ANSWER]},
        {"refused request time", t->requests_refused[REFUSED_REQUEST_TIMEOUT]},
        {"refused poison", t->requests_refused[REFUSED_POISON]},
        {"refused suspect", t->requests_refused[REFUSED_SUSPECT]},
        {"refused loop", t->requests_refused[REFUSED_LOOP]},
        {"refused retry budget", t->requests_refused[REFUSED_RETRY_BUDGET]},
        {"refused by an engine", t->requests_refused[REFUSED_BY_ENGINE]},
        {"refused slow upload", t->requests_refused[REFUSED_SLOW_UPLOAD]},
        {"connections refused", t->connections_refused},
        {"of one client", t->client_connections_refused},
        {"evicted", t->connections_evicted},
        {"PROXY headers refused", t->proxy_headers_refused},
        {"clients gone", t->client_gone},
        {"client time-outs", t->client_timeouts},
        {"cut: gone", t->answers_cut[CLIENT_END_GONE]},
        {"cut: slow", t->answers_cut[CLIENT_END_SLOW]},
        {"cut: engine", t->answers_cut[CLIENT_END_ENGINE]},
        {"cut: memory", t->answers_cut[CLIENT_END_NO_MEMORY]},
        {"cut: refused", t->answers_cut[CLIENT_END_REFUSED]},
        {"cut: stopped", t->answers_cut[CLIENT_END_STOPPED]},
        {"cut: late", t->answers_cut[CLIENT_END_LATE]},
        {"connect failures", t->upstream_connect_failures},
        {"upstream time-outs", t->upstream_timeouts},
        {"upstream broken", t->upstream_broken},
        {"upstream reused", t->upstream_reused},
        {"upstream stale", t->upstream_stale},
        {"upstream full", t->upstream_full},
        {"probes too large", t->probes_too_large},
        {"probes vetoed", t->probes_vetoed},
        {"moved by the watchdog", t->watchdog_moved},
        {"not understood", t->not_understood},
        {"backpressure", t->backpressure},
        {"decode waits", t->unpack_waits},
    };
    write_shown(out, shown, ARRAY_LEN(shown));
}
