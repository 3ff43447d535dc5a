/* The engine simulator's engine on virtual streams, and the corruption of answers when the engine
 * is ill. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/sim/service/engine_internal.h"

enum { BLOB_BYTES = 420000, POISON_US = 30000 };

static struct service *service_of(const struct service_engine *e)
{
    return life_of(e)->service;
}

/* --- after each thing that happened ---------------------------------------------------------- */

void service_attempt_end(struct service *s, struct service_attempt *a, bool whole)
{
    a->ended_us = s->world.now_us;
    a->whole = whole;
    if (whole && a->ill != SERVICE_500)
        s->routers[a->ask->client->router].errs[a->engine] = false;
    *a->open_link = a->open_next;
    if (a->open_next)
        a->open_next->open_link = a->open_link;
    a->open_link = NULL;
}

static void on_due(void *context, struct world_event *event);

void service_engine_settle(struct service_engine *e)
{
    struct life *l = life_of(e);
    if (!l)
        return;
    for (struct carried *k = l->carried; k; k = k->next) {
        if (k->attempt && k->conn && !k->conn->serving) {
            service_attempt_end(l->service, k->attempt, !k->tampered);
            k->attempt = NULL;
        }
    }
    uint64_t due_ns = sim_engine_due_ns(&l->sim);
    uint64_t due = due_ns == UINT64_MAX ? UINT64_MAX : due_ns / 1000 + 1;
    if (due == UINT64_MAX || due == e->due_us)
        return;
    struct world *w = &l->service->world;
    e->due_us = due;
    world_queue_put(&w->queue, &(struct world_event){.at_us = due < w->now_us ? w->now_us : due,
                                                     .happen = on_due,
                                                     .node = e->number,
                                                     .a = e->life,
                                                     .b = ++e->due_tag});
}

static void on_due(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_engine *e = &s->engines[event->node];
    if (s->world.closing || !e->up || e->life != event->a || e->due_tag != event->b)
        return;
    e->due_us = UINT64_MAX;
    if (e->stopped)
        return;
    sim_engine_run(&life_of(e)->sim);
    service_engine_settle(e);
}

/* --- the carrier ----------------------------------------------------------------------------- */

void service_pending_go(struct carried *k)
{
    size_t n = service_end_write(k->end, buf_slice(&k->pending));
    buf_consume(&k->pending, n);
}

void service_carried_later(struct carried *k, uint64_t us,
                           void (*happen)(void *, struct world_event *))
{
    service_later(service_of(k->engine), us, happen, 0, k->serial, k);
}

struct carried *service_carried_of(struct service *s, const struct world_event *event)
{
    struct carried *k = event->object;
    bool there = !s->world.closing && k->conn && !k->conn->closing && k->serial == event->a;
    return there ? k : NULL;
}

static void cut_stream(void *context, struct world_event *event)
{
    struct carried *k = service_carried_of(context, event);
    if (!k)
        return;
    struct service_engine *e = k->engine;
    if (k->conn->job)
        sim_job_abort(k->conn->job);
    if (e->ill == SERVICE_UNFINISHED && k->conn->chunks) {
        CHECK(buf_append_slice(&k->pending, SLICE(HTTP_CHUNK_LAST)) == 0);
        CHECK(buf_append_slice(&k->spoilt->sent, SLICE(HTTP_CHUNK_LAST)) == 0);
    }
    service_pending_go(k);
    if (k->pending.len > 0) /* equal to bytes that the kernel sends after the process closed */
        service_pending_go(k);
    sim_conn_close(k->conn);
    service_engine_settle(e);
}

/* True if the answer is corrupted from here on; sets the bytes to send. */
static bool tamper(struct carried *k, struct slice *bytes)
{
    struct service_engine *e = k->engine;
    if (!k->attempt || k->tampered)
        return k->tampered;
    unsigned write = k->attempt->writes;
    bool streams = k->conn->streaming;
    switch (e->ill) {
    case SERVICE_UNFINISHED:
        if (!streams || write < 1 + e->ill_after)
            return false;
        bytes->len = 0;
        break;
    case SERVICE_SHORT:
        if (streams)
            return false;
        bytes->len = bytes->len > 10 ? bytes->len - 5 : 0;
        break;
    case SERVICE_GARBAGE:
        if (write < e->ill_after)
            return false;
        *bytes = SLICE("\x01\x02garbage\r\n\r\nHTTP/9.9 no\r\n\r\n");
        break;
    default:
        return false;
    }
    k->tampered = true;
    k->spoilt = k->attempt;
    service_carried_later(k, 0, cut_stream);
    return false;
}

/* Notes that bytes of an answer are on the way, if nothing holds them up. */
static void note_sent(const struct carried *k)
{
    const struct service *s = service_of(k->engine);
    const struct service_link *link = &s->links[k->end->peer->router][k->engine->number];
    if (link->hole_until_us <= s->world.now_us)
        k->attempt->sent_us = s->world.now_us;
}

static void do_write(struct sim_conn *c, const struct slice *pieces, unsigned count)
{
    struct carried *k = c->stream;
    struct buf all = {0};
    for (unsigned i = 0; i < count; i++)
        CHECK(buf_append_slice(&all, pieces[i]) == 0);
    struct slice bytes = buf_slice(&all);
    if (!tamper(k, &bytes)) {
        if (k->attempt) {
            k->attempt->writes++;
            note_sent(k);
            CHECK(buf_append_slice(&k->attempt->sent, bytes) == 0);
        }
        bool waited = k->pending.len > 0;
        CHECK(buf_append_slice(&k->pending, bytes) == 0);
        if (!waited)
            service_pending_go(k);
        if (k->pending.len > 0 && c->writes == 0)
            c->writes = 1;
    }
    buf_free(&all);
}

static void on_free(void *context, struct world_event *event)
{
    const struct service *s = context;
    struct carried *k = event->object;
    if (s->world.closing || !k->conn)
        return;
    sim_conn_free(k->conn);
    k->conn = NULL;
}

static void do_close(struct sim_conn *c, bool reset)
{
    struct carried *k = c->stream;
    struct service *s = service_of(k->engine);
    if (k->attempt)
        service_attempt_end(s, k->attempt, !c->serving && !k->tampered);
    k->attempt = NULL;
    if (k->pending.len > 0)
        reset = true;
    else if (!reset)
        service_odd_closing(k, c);
    service_end_close(k->end, reset);
    service_later(s, 0, on_free, 0, 0, k);
}

static void do_listen(struct sim_server *server, bool on)
{
    (void)server;
    (void)on;
}

static uint64_t do_now_ns(struct sim_server *server)
{
    const struct life *l = server->carrier_context;
    return l->service->world.now_us * 1000;
}

static double do_unix_s(struct sim_server *server)
{
    const struct life *l = server->carrier_context;
    const struct world *w = &l->service->world;
    return (double)(w->wall_ms + world_ms(w)) / 1000;
}

static const struct sim_carrier carrier = {.write = do_write,
                                           .close = do_close,
                                           .listen = do_listen,
                                           .now_ns = do_now_ns,
                                           .unix_s = do_unix_s};

/* --- what comes from a router ---------------------------------------------------------------- */

static void on_connected(void *owner, int err)
{
    (void)owner;
    (void)err;
}

static void on_readable(void *owner)
{
    struct carried *k = owner;
    struct slice room = sim_conn_room(k->conn);
    size_t n = service_end_take(k->end, (char *)room.at, room.len);
    sim_conn_received(k->conn, n);
    service_odd_received(k);
    service_engine_settle(k->engine);
}

static void on_ended(void *owner, bool reset)
{
    struct carried *k = owner;
    (void)reset;
    sim_conn_lost(k->conn);
    service_engine_settle(k->engine);
}

static void on_writable(void *owner)
{
    struct carried *k = owner;
    if (service_end_fails(k->end)) {
        buf_clear(&k->pending);
        if (k->conn->writes > 0)
            sim_conn_written(k->conn, false);
    } else {
        service_pending_go(k);
        if (k->pending.len == 0 && k->conn->writes > 0)
            sim_conn_written(k->conn, true);
    }
    service_engine_settle(k->engine);
}

static const struct service_owner owner = {
    .connected = on_connected, .readable = on_readable, .ended = on_ended, .writable = on_writable};

bool service_engine_accepts(const struct service_engine *e)
{
    return e->up;
}

void service_engine_accept(struct service_engine *e, struct service_end *end)
{
    struct life *l = life_of(e);
    struct carried *k = calloc(1, sizeof *k);
    CHECK(k != NULL);
    k->engine = e;
    k->end = end;
    k->next = l->carried;
    l->carried = k;
    buf_init(&k->pending, 0);
    k->conn = sim_conn_open(&l->sim.server, k);
    end->is = &owner;
    end->owner = k;
    service_end_read(end, true);
}

/* --- requests -------------------------------------------------------------------------------- */

static void poisoned(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_engine *e = &s->engines[event->node];
    if (s->world.closing || !e->up || e->life != event->a || !service_ill_computes(e))
        return;
    service_say(s, "engine %u: poison", e->number);
    service_judge_poison(event->object);
    service_engine_ill(s, e->number, SERVICE_DOWN, service_between(s, 500, 4000) * SERVICE_MS);
}

void service_attempt_begin(struct life *l, struct carried *k)
{
    struct service *s = l->service;
    struct slice id = http_head_find(&k->conn->head, SLICE("x-request-id"));
    uint64_t number;
    if (!slice_starts_with(id, SLICE("svc-")) || slice_to_u64(slice_skip(id, 4), &number) != 0)
        return;
    struct service_ask *ask = service_ask_find(s, number);
    CHECK(ask != NULL);
    struct service_attempt *a = calloc(1, sizeof *a);
    CHECK(a != NULL);
    *a = (struct service_attempt){.next = ask->attempts,
                                  .ask = ask,
                                  .end = k->end,
                                  .engine = l->engine->number,
                                  .life = l->engine->life,
                                  .ill = l->engine->ill,
                                  .ills = UINT64_C(1) << l->engine->ill,
                                  .sent_us = s->world.now_us,
                                  .known = s->routers[ask->client->router].errs[l->engine->number],
                                  .begun_us = s->world.now_us};
    buf_init(&a->sent, 0);
    ask->attempts = a;
    ask->ran++;
    if (service_kind_computes(ask->kind))
        service_share_attempt(s, l->engine->number);
    a->open_next = l->engine->open;
    a->open_link = &l->engine->open;
    if (a->open_next)
        a->open_next->open_link = &a->open_next;
    l->engine->open = a;
    k->attempt = a;
    service_say(s, "engine %u: request %llu, attempt %u", l->engine->number,
                (unsigned long long)number, ask->ran);
    if (ask->ran > 1 && ask->kind == SERVICE_DEED && !ask->crossed)
        service_broken(s, "twice", "request %llu does something, and ran %u times",
                       (unsigned long long)number, ask->ran);
}

/* True if the engine computes the request that kills it. False if the client left before the start,
 * or if the request only asks which engine has a response. */
static bool takes_poison(const struct life *l, const struct carried *k)
{
    return k->attempt && k->attempt->ask->poison && k->end->peer->open &&
           l->engine->ill != SERVICE_DRAINS && service_ill_computes(l->engine) &&
           !k->attempt->rejected && k->conn->head.method == HTTP_METHOD_POST;
}

/* The first step kills the engine: no token comes before. */
static void take_poison(struct life *l, struct carried *k, struct slice body)
{
    struct service *s = l->service;
    struct sim_fail fail = l->sim.fail;
    service_later(s, service_below(s, POISON_US), poisoned, l->engine->number, l->engine->life,
                  k->attempt);
    l->sim.fail =
        (struct sim_fail){.mode = SIM_FAIL_SLOW, .count = 1, .delay_ms = POISON_US / SERVICE_MS};
    sim_route(&l->sim, k->conn, body);
    l->sim.fail = fail;
}

static void answer_deed(void *context, struct world_event *event)
{
    struct carried *k = service_carried_of(context, event);
    if (!k || !k->conn->serving || k->engine->stopped)
        return;
    char body[64];
    (void)snprintf(body, sizeof body, "{\"done\":%u,\"life\":%llu}", k->serial,
                   (unsigned long long)k->engine->life);
    sim_http_answer(k->conn, 200, SIM_JSON, slice_of_cstr(body), NULL);
    service_engine_settle(k->engine);
}

static void answer_blob(struct carried *k)
{
    char *blob = malloc(BLOB_BYTES);
    CHECK(blob != NULL);
    for (size_t i = 0; i < BLOB_BYTES; i++)
        blob[i] = (char)('a' + (i / 61 + k->serial) % 26);
    sim_http_answer(k->conn, 200, SIM_TEXT, slice_of(blob, BLOB_BYTES), NULL);
    free(blob);
}

static void on_request(void *context, struct sim_conn *conn, struct slice body)
{
    struct service_engine *e = context;
    struct life *l = life_of(e);
    struct carried *k = conn->stream;
    struct slice path = conn->head.path;
    if (k->attempt)
        service_attempt_end(l->service, k->attempt, !k->tampered);
    k->attempt = NULL;
    if (k->end->peer->crossed) { /* met an unsolicited answer */
        sim_conn_reset(conn);
        return;
    }
    k->tampered = false;
    k->serial++;
    service_attempt_begin(l, k);
    if (service_odd_answer(k, path))
        return;
    if (takes_poison(l, k))
        take_poison(l, k, body);
    else if (slice_equal(path, SLICE("/svc/deed")))
        service_carried_later(k, service_below(l->service, 60 * SERVICE_MS), answer_deed);
    else if (slice_equal(path, SLICE("/svc/blob")))
        answer_blob(k);
    else if (slice_equal(path, SLICE("/v1/audio/transcriptions")))
        sim_http_answer(conn, 200, SIM_JSON, SLICE("{\"text\":\"What was said.\"}"), NULL);
    else
        sim_route(&l->sim, conn, body);
}

static void on_gone(void *context, struct sim_conn *conn)
{
    (void)context;
    if (conn->job)
        sim_job_abort(conn->job);
}

/* --- life ------------------------------------------------------------------------------------ */

void service_engine_start(struct service *s, unsigned engine)
{
    struct service_engine *e = &s->engines[engine];
    bool sglang = service_is_sglang(engine);
    char decode[16];
    (void)snprintf(decode, sizeof decode, "%u", 4 + engine * 3);
    const char *words[] = {"engine-sim",
                           "--model",
                           "m",
                           "--cache-tokens",
                           "16384",
                           "--block-tokens",
                           "16",
                           "--prefill-rate",
                           "20000",
                           "--output-tokens",
                           "12",
                           "--decode-base-ms",
                           decode,
                           "--on-term",
                           "drain",
                           "--engine",
                           sglang ? "sglang" : "vllm"};
    struct life *l = calloc(1, sizeof *l);
    CHECK(l != NULL && sim_options_parse(&l->sim.options, ARRAY_LEN(words), (char **)words) == 0);
    service_habits_apply(e, &l->sim.options);
    l->service = s;
    l->engine = e;
    l->sim.server.carrier = &carrier;
    l->sim.server.carrier_context = l;
    sim_engine_init(&l->sim, hash_mix(s->settings.seed + e->life * 64 + engine));
    l->model_len = l->sim.options.model_len_max;
    l->sim.server.context = e;
    l->sim.server.on_request = on_request;
    l->sim.server.on_head = NULL; /* odd.c makes early answers */
    l->sim.server.on_gone = on_gone;
    service_odd_life(l);
    e->engine = l;
    e->life++;
    e->up = true;
    e->stopped = false;
    e->due_us = UINT64_MAX;
    service_say(s, "engine %u starts", engine);
}

static void on_bury(void *context, struct world_event *event)
{
    (void)context;
    struct life *l = event->object;
    while (l->carried) {
        struct carried *k = l->carried;
        l->carried = k->next;
        if (k->conn)
            sim_conn_free(k->conn);
        buf_free(&k->pending);
        k->end->owner = NULL;
        free(k);
    }
    free(l);
}

void service_engine_kill(struct service *s, unsigned engine)
{
    struct service_engine *e = &s->engines[engine];
    if (!e->up)
        return;
    service_say(s, "engine %u is gone", engine);
    struct life *l = life_of(e);
    bool reset = service_chance(s, 0.5);
    for (struct service_attempt *t = e->open; t; t = t->open_next)
        t->died = true;
    for (struct carried *k = l->carried; k; k = k->next) {
        if (reset && k->conn && !k->conn->closing)
            sim_conn_reset(k->conn);
    }
    sim_engine_free(&l->sim);
    e->up = false;
    e->gone_us = s->world.now_us;
    e->engine = NULL;
    CHECK(e->open == NULL);
    /* Later events still refer to the life's connections. */
    if (s->world.closing)
        on_bury(s, &(struct world_event){.object = l});
    else
        service_later(s, 600 * SERVICE_S, on_bury, 0, 0, l);
}

unsigned service_engine_jobs(const struct service_engine *e)
{
    unsigned n = 0;
    for (const struct sim_job *job = e->up ? life_of(e)->sim.jobs : NULL; job; job = job->next)
        n++;
    return n;
}

void service_engines_open(struct service *s)
{
    for (unsigned i = 0; i < s->engine_count; i++) {
        struct service_engine *e = &s->engines[i];
        e->number = i;
        const char *net = s->field.names ? "e" : "10.0.1";
        (void)snprintf(e->host, sizeof e->host, "%s.%u", net, i + 1);
        (void)snprintf(e->name, sizeof e->name, "%s.%u:8000", net, i + 1);
        service_habits_draw(s, &e->habits);
        service_habits_say(s, e);
        service_engine_start(s, i);
    }
}

void service_engines_free(struct service *s)
{
    for (unsigned i = 0; i < s->engine_count; i++)
        service_engine_kill(s, i);
}
