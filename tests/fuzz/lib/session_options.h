/* The settings of the fuzz target of whole sessions: short time limits for all, others chosen by
 * the input, at the start and while the router runs. Functions are static. */
#ifndef TESTS_FUZZ_LIB_SESSION_OPTIONS_H
#define TESTS_FUZZ_LIB_SESSION_OPTIONS_H

#include "tests/fuzz/lib/session.h"
#include "tests/lib/proxy_hosts.h"

static const char *const usual[] = {
    SHORT_LIMITS,
    SHORT_ANSWERS,
    "upstream-keepalive",
    "400ms",
    "stream-hold",
    "100ms",
    "queue-timeout",
    "400ms",
    "health-interval",
    "500ms",
    "health-timeout",
    "200ms",
    "scrape-interval",
    "300ms",
    "access-log",
    "off",
    "other-paths",
    "pass",
    "replicas-max",
    "16",
    "ttl",
    "64s",
    "kv-ask",
    "100",
};

/* For runs without engines' answers to probes. */
static const char *const seldom[] = {"health-interval", "1h", "health-timeout", "10m",
                                     "scrape-interval", "1h"};

static const struct {
    const char *name, *values[8];
    bool live;
} drawn[] = {
    {"policy",
     {"cache_aware", "chunk_aware", "prefix_hash", "session", "least_request", "least_tokens",
      "power_of_two", "random"},
     true},
    {"session-header", {"auto", "x-session-id", "cookie,user-agent"}, true},
    {"other-paths", {"refuse", "pass"}, true},
    {"engine-control-paths", {"all", "pass", "refuse"}, true},
    {"engine-fields", {"pass", "refuse"}, true},
    {"client-half-close", {"answer", "gone"}, true},
    {"ask-usage", {"off", "on"}, true},
    {"replica-header", {"off", "on"}, true},
    {"forwarded-headers", {"replace", "trust"}, true},
    {"cors-allow-origin", {"http://page.example", "*"}, true},
    {"host-header", {"client", "replica"}, true},
    {"head-bytes-max", {"1KiB", "4KiB"}, false},
    {"headers-max", {"8", "20"}, true},
    {"body-bytes-max", {"1KiB", "40KiB", "1MiB"}, true},
    {"buffered-bytes-max", {"64KiB", "200KiB"}, true},
    {"connections-max", {"2", "4", "8"}, false},
    {"connections-per-client-max", {"1", "2"}, true},
    {"proxy-protocol", {"on", "off"}, false},
    {"client-body-rate-min", {"1MiB", "0"}, true},
    {"client-body-total-timeout", {"500ms", "2s"}, true},
    {"upstream-connections-max", {"1", "2", "3"}, true},
    {"replica-requests-max", {"1", "0", "2"}, true},
    {"requests-max", {"1", "2", "4"}, true},
    {"queue-max", {"0", "1", "2", "3"}, true},
    {"request-timeout", {"900ms", "300ms"}, true},
    {"upstream-keepalive", {"0", "2s"}, true},
    {"retries-max", {"0", "1", "3"}, true},
    {"retry-budget", {"0", "1"}, true},
    {"stream-hold", {"0", "1s"}, true},
    {"poison-retry", {"off", "on"}, true},
    {"health-failures", {"1", "2"}, true},
    {"health-statuses", {"200..299,429", "200"}, true},
    {"when-all-down", {"refuse", "try"}, true},
    {"watchdog", {"0", "100ms"}, true},
    {"stall-cut", {"200ms", "0"}, true},
    {"policy", {"round_robin", "session"}, true},
    {"displaced-weight", {"0", "100"}, true},
    {"cache-tokens", {"1", "1000"}, true},
};

static unsigned value_count(unsigned row)
{
    unsigned n = 0;
    while (n < ARRAY_LEN(drawn[row].values) && drawn[row].values[n] != NULL)
        n++;
    return n;
}

/* Chooses a row and a value of the row. */
static unsigned draw(struct session *s, const char **value)
{
    unsigned row = byte(s) % ARRAY_LEN(drawn);
    *value = drawn[row].values[byte(s) % value_count(row)];
    return row;
}

static void draw_options(struct session *s)
{
    const char **at = s->settings;
    memcpy(at, usual, sizeof usual);
    at += ARRAY_LEN(usual);
    for (unsigned i = 0; i < ARRAY_LEN(seldom) && !s->probes; i++)
        *at++ = seldom[i];
    for (unsigned n = byte(s) % 8; n > 0; n--) {
        const char *value;
        *at++ = drawn[draw(s, &value)].name;
        *at++ = value;
    }
    CHECK(at < s->settings + ARRAY_LEN(s->settings));
    *at = NULL;
}

/* Changes the file of settings. Returns the changed row. */
static unsigned change_option(struct session *s, struct proxy_world *w)
{
    struct node_options_error error;
    const char *value;
    unsigned row = draw(s, &value);
    if (!drawn[row].live)
        return row;
    CHECK(node_options_set(&w->options, slice_of_cstr(drawn[row].name), slice_of_cstr(value),
                           (struct node_option_origin){.source = NODE_SOURCE_FLAG}, &error) == 0);
    node_renew(w->node, &w->options, w->now_ms);
    proxy_world_settle(w);
    return row;
}

/* Keys: alice has limits and two models, bob neither. */
static const char *client_keys(void)
{
    static char text[1024];
    if (text[0] != '\0')
        return text;
    struct access_line alice = {.name = SLICE("alice"),
                                .digest = access_digest_of(SLICE("gv-alice")),
                                .models = SLICE("m,m:*"),
                                .limits = {.requests = 4, .tokens = 90, .in_flight = 2}};
    struct access_line bob = {
        .name = SLICE("bob"), .digest = access_digest_of(SLICE("gv-bob")), .control = true};
    struct buf lines = {0};
    CHECK(access_line_write(&lines, &alice) == 0 && access_line_write(&lines, &bob) == 0);
    CHECK(slice_to_cstr(buf_slice(&lines), text, sizeof text));
    buf_free(&lines);
    return text;
}

#endif
