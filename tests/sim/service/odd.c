/* Answers that a well engine would not give, and unsolicited answers. */
#include "base/check.h"
#include "base/err.h"
#include "tests/sim/service/engine_internal.h"

/* A hundredth of all come so fast that the limit on bytes applies, not the limit on time. */
enum { HEAD_MOST_US = 50000 };

static struct service *service_of(const struct carried *k)
{
    return life_of(k->engine)->service;
}

/* Sends bytes that are no part of an attempt's answer. */
static void say(struct carried *k, struct slice text)
{
    CHECK(buf_append_slice(&k->pending, text) == 0);
    service_pending_go(k);
    if (k->pending.len > 0 && k->conn->writes == 0)
        k->conn->writes = 1;
}

/* --- in the place of an answer ---------------------------------------------------------------- */

static void answer_health(void *context, struct world_event *event)
{
    struct carried *k = service_carried_of(context, event);
    if (k && k->conn->serving && !k->engine->stopped) {
        sim_http_answer(k->conn, 200, "", SLICE(""), NULL);
        service_engine_settle(k->engine);
    }
}

static void close_later(void *context, struct world_event *event)
{
    struct carried *k = service_carried_of(context, event);
    if (k && !k->conn->serving && k->end->in.len == 0) {
        sim_conn_close(k->conn);
        service_engine_settle(k->engine);
    }
}

static void say_interim(struct carried *k)
{
    static const struct slice heads[] = {
        SLICE("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"),
        SLICE("HTTP/1.1 102 Processing\r\n\r\n"), SLICE("HTTP/1.1 100 Continue\r\n\r\n")};
    say(k, heads[service_below(service_of(k), ARRAY_LEN(heads))]);
}

/* Goes on until the router leaves, or the engine is well again and forgets the request. */
static void more_heads(void *context, struct world_event *event)
{
    struct service *s = context;
    struct carried *k = service_carried_of(s, event);
    if (!k || k->engine->stopped)
        return;
    if (k->engine->ill != SERVICE_ENDLESS) {
        sim_conn_reset(k->conn);
        service_engine_settle(k->engine);
        return;
    }
    if (k->pending.len == 0)
        say_interim(k);
    service_carried_later(k, 1 + service_below(s, HEAD_MOST_US), more_heads);
}

/* True if the request is answered, or left open, in another way than by a well engine. */
static bool ill_answer(struct carried *k, struct slice path)
{
    struct service_engine *e = k->engine;
    struct life *l = life_of(e);
    struct sim_conn *c = k->conn;
    bool health = slice_equal(path, SLICE("/health"));
    bool bad = e->ill_health || e->ill == SERVICE_DRAINS_503;
    if (health && (e->ill == SERVICE_HEALTH_SLOW || (e->ill == SERVICE_HANGS && e->ill_health))) {
        if (e->ill == SERVICE_HEALTH_SLOW)
            service_carried_later(k, service_between(l->service, 300, 1500) * SERVICE_MS,
                                  answer_health);
        return true;
    }
    if (health && bad && e->ill != SERVICE_SLOW) {
        sim_http_answer(c, 503, "", SLICE(""), NULL);
        return true;
    }
    if (!k->attempt)
        return false;
    switch (e->ill) {
    case SERVICE_500:
    case SERVICE_503:
    case SERVICE_429:
        sim_answer_error(&l->sim, c,
                         e->ill == SERVICE_500   ? 500
                         : e->ill == SERVICE_503 ? 503
                                                 : 429,
                         NULL, NULL, "Injected failure");
        return true;
    case SERVICE_ERROR_EVENT:
        sim_http_stream_begin(c, SIM_SSE);
        sim_http_stream_write(c, SLICE("data: {\"error\":{\"object\":\"error\",\"message\":\"The "
                                       "request queue is full.\",\"type\":\"ServiceUnavailable\","
                                       "\"param\":null,\"code\":503}}\n\n"));
        sim_http_stream_write(c, SLICE("data: [DONE]\n\n"));
        sim_http_stream_end(c);
        return true;
    case SERVICE_ENDLESS:
        service_carried_later(k, 0, more_heads);
        return true;
    case SERVICE_CLOSES:
        service_carried_later(k, service_between(l->service, 1, 200) * SERVICE_MS, close_later);
        return false;
    case SERVICE_REJECTS:
    case SERVICE_LOST_MODEL:
        k->attempt->rejected = true;
        return false;
    default:
        return false;
    }
}

/* An unsolicited answer, on a waiting connection. A request that meets this answer under way gets
 * no other: a second answer behind it would pass for the answer to the next request. */
static void say_nobody(void *context, struct world_event *event)
{
    struct service *s = context;
    struct carried *k = service_carried_of(s, event);
    if (!k || k->conn->serving || k->end->unasked || k->conn->in.len > 0 ||
        k->engine->ill != SERVICE_WELL)
        return;
    service_field_unasked(k->end);
    say(k, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Request-Id: svc-0\r\n\r\nnobody"));
}

bool service_odd_answer(struct carried *k, struct slice path)
{
    for (unsigned i = 0; i < k->engine->habits.interim && k->conn->head.minor > 0; i++)
        say_interim(k);
    k->of_client = k->attempt != NULL;
    if (k->engine->habits.unasked == SERVICE_SAYS_200 && k->of_client)
        service_carried_later(k, service_between(service_of(k), 20, 300) * SERVICE_MS, say_nobody);
    return ill_answer(k, path);
}

/* --- early ------------------------------------------------------------------------------------ */

static const struct slice early[] = {
    SLICE("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 48\r\n"
          "Connection: close\r\n\r\n{\"error\":{\"message\":\"No such field\",\"code\":400}}"),
    SLICE("HTTP/1.1 413 Content Too Large\r\nContent-Type: application/json\r\n"
          "Content-Length: 44\r\nConnection: close\r\n\r\n"
          "{\"error\":{\"message\":\"Too large\",\"code\":413}}"),
    SLICE("HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n"
          "Content-Length: 44\r\nConnection: close\r\n\r\n"
          "{\"error\":{\"message\":\"Too many!\",\"code\":429}}"),
};

void service_odd_received(struct carried *k)
{
    static const struct http_limits limits = {
        .head_bytes_max = 1 << 20, .target_bytes_max = 1 << 16, .fields_max = HTTP_FIELDS_MAX};
    struct sim_conn *c = k->conn;
    if (k->engine->ill != SERVICE_EARLY || c->closing || c->ends || !c->reading_body)
        return;
    struct service *s = service_of(k);
    CHECK(http_request_parse(&c->head, c->in.at, c->head.bytes, &limits) == 0);
    k->serial++;
    service_attempt_begin(life_of(k->engine), k);
    struct slice text = early[service_below(s, ARRAY_LEN(early))];
    if (k->attempt) {
        k->attempt->ask->ran--; /* the request had no effect */
        CHECK(buf_append_slice(&k->attempt->sent, text) == 0);
        service_attempt_end(s, k->attempt, true);
    }
    k->attempt = NULL;
    say(k, text);
    if (service_chance(s, 0.5))
        sim_conn_reset(c);
    else
        sim_conn_close(c);
}

/* --- unasked ---------------------------------------------------------------------------------- */

void service_odd_life(struct life *l)
{
    uint64_t idle_ms = l->engine->habits.idle_ms;
    if (idle_ms > 0)
        deadline_queue_limit(&l->sim.server.idle, idle_ms);
}

void service_odd_closing(struct carried *k, const struct sim_conn *c)
{
    static const struct slice texts[] = {
        [SERVICE_SAYS_408] = SLICE("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n"
                                   "Connection: close\r\n\r\n"),
        [SERVICE_SAYS_400] = SLICE("HTTP/1.1 400 Bad Request\r\nContent-Length: 6\r\n"
                                   "Connection: close\r\n\r\nnobody"),
    };
    struct service_engine *e = k->engine;
    bool waits = !c->ends && !c->serving && c->in.len == 0 && !k->end->in_end && k->serial > 0;
    if (!waits || e->ill != SERVICE_WELL || e->habits.unasked == SERVICE_SILENT ||
        e->habits.unasked == SERVICE_SAYS_200 ||
        (e->habits.unasked == SERVICE_SAYS_400 && !k->of_client))
        return;
    if (e->habits.unasked != SERVICE_SAYS_408)
        service_field_unasked(k->end);
    (void)service_end_write(k->end, texts[e->habits.unasked]);
}
