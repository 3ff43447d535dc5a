/* The rules. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/proxy/exchange/exchange.h"
#include "tests/sim/service/service.h"

enum { LOOK_EVERY = 16, CHECK_EVERY = 256, GRACE_S = 1, BLOB_ROOM = 1 << 20 };

/* --- an answer, compared with what engines sent ----------------------------------------------- */

static bool carries_tokens(struct slice body)
{
    static const char *const marks[] = {"\"content\":\"", "\"text\":\"", "\"delta\":\""};
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        const char *at = body.at, *end = at + body.len;
        size_t len = strlen(marks[i]);
        while (at && body.len > 0 && (at = memmem(at, (size_t)(end - at), marks[i], len))) {
            at += len;
            if (at < end && *at != '"')
                return true;
        }
    }
    return false;
}

static bool body_has(const struct service_ask *a, const char *text)
{
    return a->body.len > 0 && memmem(a->body.at, a->body.len, text, strlen(text)) != NULL;
}

bool service_has_content(const struct service_ask *a)
{
    if (!a->stream)
        return a->body.len > 0;
    return carries_tokens(buf_slice(&a->body));
}

static bool has_error_event(const struct service_ask *a)
{
    return a->stream && a->status == 200 &&
           (body_has(a, "\"error\":{") || body_has(a, "\"error\": {"));
}

/* True if a stream has the last event of the API. */
static bool is_terminated(const struct service_ask *a)
{
    switch (a->kind) {
    case SERVICE_MESSAGES:
        return body_has(a, "message_stop");
    case SERVICE_RESPONSES:
        return body_has(a, "response.completed") || body_has(a, "response.incomplete") ||
               body_has(a, "response.failed");
    default:
        return body_has(a, "data: [DONE]") || body_has(a, "data:[DONE]");
    }
}

/* True if the attempt's body is `given`; only the framing may be cut, behind the last event of the
 * API. */
static bool gave(const struct service_ask *a, const struct service_attempt *t, struct slice given)
{
    struct buf body = {0};
    unsigned status = 0;
    bool whole = service_sent(t, &status, &body) || (a->stream && is_terminated(a));
    bool same = whole && status == a->status && service_same(t, buf_slice(&body), given);
    buf_free(&body);
    return same;
}

/* After a sign of life of an engine another may have answered. Then the first engine's events
 * before any token come first, if any. The other engine's events follow, but not those before any
 * token. */
static bool went_on(const struct service_ask *a, const struct service_attempt *first,
                    const struct service_attempt *then)
{
    struct buf one = {0}, other = {0};
    struct slice body = buf_slice(&a->body);
    unsigned status = 0;
    (void)service_sent(first, &status, &one);
    bool good = status == 200;
    good = (service_sent(then, &status, &other) || is_terminated(a)) && status == 200 && good;
    size_t same = 0;
    while (same < body.len && same < one.len && body.at[same] == one.at[same])
        same++;
    bool found = false;
    for (size_t n = 0; good && n <= same && !found; n++) {
        struct slice rest = slice_skip(body, n);
        bool between = n == 0 || service_between_events(body, n);
        size_t left_out = other.len - rest.len;
        found = between && rest.len <= other.len && !carries_tokens(slice_of(one.at, n)) &&
                !carries_tokens(slice_of(other.at, left_out)) &&
                slice_equal(slice_skip(buf_slice(&other), left_out), rest);
    }
    buf_free(&one);
    buf_free(&other);
    return found;
}

/* The router appends words known to clients to an engine's message (ADR 0064): the message without
 * them. */
static struct slice without_ending(struct slice message)
{
    static const struct slice ending = SLICE(" Provider returned error ");
    const char *at = memmem(message.at, message.len, ending.at, ending.len);
    return at != NULL ? slice_of(message.at, (size_t)(at - message.at)) : message;
}

/* True if the router repeats the engine's message: as an event, or in a body that was cut. */
static bool said_so(const struct service_ask *a, const struct service_attempt *t)
{
    static const char key[] = "\"message\":\"";
    if (a->reason[0] == '\0' || !body_has(a, key))
        return false;
    const char *found = memmem(a->body.at, a->body.len, key, sizeof key - 1);
    size_t at = (size_t)(found - a->body.at) + sizeof key - 1;
    struct slice rest = slice_skip(buf_slice(&a->body), at);
    struct slice message = without_ending(slice_cut(&rest, '"'));
    struct buf body = {0};
    unsigned status = 0;
    (void)service_sent(t, &status, &body);
    bool said = body.len > 0 && memmem(body.at, body.len, message.at, message.len) != NULL;
    buf_free(&body);
    return said;
}

static bool was_sent(const struct service_ask *a)
{
    static const struct slice ping = SLICE("event: ping\ndata: {\"type\": \"ping\"}\n\n");
    struct slice body = buf_slice(&a->body);
    bool pinged = a->kind == SERVICE_MESSAGES && slice_starts_with(body, ping);
    struct slice given = pinged ? slice_skip(body, ping.len) : body;
    for (const struct service_attempt *t = a->attempts; t; t = t->next) {
        bool named = strcmp(a->service->engines[t->engine].name, a->replica) == 0;
        if ((named || pinged) && gave(a, t, given))
            return true;
        if (!named)
            continue;
        if (said_so(a, t))
            return true;
        bool may_go_on = a->stream && (a->kind == SERVICE_CHAT || a->kind == SERVICE_COMPLETIONS ||
                                       a->kind == SERVICE_GENERATE);
        for (const struct service_attempt *then = a->attempts; then && may_go_on;
             then = then->next) {
            if (then != t && went_on(a, t, then))
                return true;
        }
    }
    return false;
}

/* An engine's 408 to a connection that was idle for too long may pass for the answer to a crossing
 * request, if no other engine could be asked. Clients repeat the request. */
static bool is_unasked_408(const struct service_ask *a)
{
    const struct service *s = a->service;
    bool says = false;
    for (unsigned i = 0; i < s->engine_count && !says; i++)
        says = strcmp(s->engines[i].name, a->replica) == 0 &&
               s->engines[i].habits.unasked == SERVICE_SAYS_408;
    return says && a->status == 408 && a->body.len == 0;
}

static void judge_whole(struct service_ask *a)
{
    struct service *s = a->service;
    bool own = a->replica[0] == '\0';
    if (a->crossed)
        return;
    bool local = a->kind == SERVICE_MODELS || a->kind == SERVICE_HEALTH;
    if (own && a->status < 400 && !local)
        service_broken(s, "bytes", "request %llu: status %u from no engine",
                       (unsigned long long)a->number, a->status);
    if (!own && !was_sent(a) && !is_unasked_408(a))
        service_broken(s, "bytes", "request %llu: %s did not send this answer as a whole one: %.*s",
                       (unsigned long long)a->number, a->replica,
                       (int)(a->body.len > 200 ? 200 : a->body.len), a->body.at);
    if (body_has(a, "default backend"))
        service_broken(s, "host", "request %llu: %s does not know the name that it was asked by",
                       (unsigned long long)a->number, a->replica);
    if (a->stream && a->status == 200 && !is_terminated(a) && !has_error_event(a))
        service_broken(s, "unfinished",
                       "request %llu: a stream without its last event is whole: %.*s",
                       (unsigned long long)a->number, (int)(a->body.len > 300 ? 300 : a->body.len),
                       a->body.at);
}

/* --- what need not have failed ---------------------------------------------------------------- */

static bool failed(const struct service_ask *a)
{
    if (!a->whole)
        return true;
    bool error_first = has_error_event(a) && !service_has_content(a);
    return a->status >= 500 || a->status == 429 || error_first;
}

/* The answer's events name an id of the engine that made them: another engine cannot continue the
 * answer. */
static bool is_begun_response(const struct service_ask *a)
{
    return a->kind == SERVICE_RESPONSES && a->stream && a->body.len > 0 && a->status == 200;
}

/* The request could have been served elsewhere just as well. */
static bool may_move(const struct service_ask *a)
{
    switch (a->kind) {
    case SERVICE_STORED:
    case SERVICE_DEED:
    case SERVICE_BLOB:
        return false;
    default:
        return !a->poison && !a->continues && !is_begun_response(a);
    }
}

/* Delay between an engine's and a router's view of the same bytes. */
static uint64_t late_us(const struct service_ask *a)
{
    return SERVICE_S / 5 + 2 * a->client->end->far_us + (a->service->field.far ? SERVICE_S / 3 : 0);
}

/* The request's last engine was silent for `ms`: a limit that the operator set. */
static bool silent_for(const struct service_ask *a, uint64_t ms)
{
    const struct service_attempt *t = a->attempts;
    return t != NULL && a->service->world.now_us + late_us(a) > t->sent_us + ms * SERVICE_MS;
}

/* The engine held back the text all the time; a comment is no token. */
static bool no_token_for(const struct service_ask *a, uint64_t ms)
{
    const struct service_attempt *t = a->attempts;
    return t != NULL && !service_has_content(a) &&
           a->service->world.now_us + late_us(a) > t->begun_us + ms * SERVICE_MS;
}

/* A limit of the router's, which a setting names. */
static bool was_limited(const struct service_ask *a)
{
    /* Bytes that a slow client does not read use the same memory, and have a time limit. */
    bool by_memory = !a->whole && a->service->routers[0].options.buffered_bytes_max < BLOB_ROOM;
    bool by_time = a->kind == SERVICE_BLOB && a->client->manner == SERVICE_READS_SLOWLY;
    const struct node_options *o = &a->service->routers[0].options;
    bool cut_by_it = !a->whole && body_has(a, "upstream-first-token-timeout): its answer is cut");
    bool set = !a->whole && !a->service->patient;
    cut_by_it |= set && (silent_for(a, o->upstream_idle_timeout_ms) ||
                         no_token_for(a, o->upstream_first_token_timeout_ms));
    return by_memory || by_time || cut_by_it || strcmp(a->reason, "memory") == 0 ||
           a->limit[0] != '\0';
}

/* The client's connection closed at the limit of connections, before the router had read
 * anything. */
static bool was_turned_away(const struct service_ask *a)
{
    return a->status == 0 && a->ran == 0 && a->client->end->peer->turned_away;
}

static unsigned count_of(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

/* Engines that can serve such a request. */
static uint64_t able(const struct service_ask *a)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < a->service->engine_count; i++) {
        if (a->kind != SERVICE_GENERATE || service_is_sglang(i))
            bits |= UINT64_C(1) << i;
    }
    return bits;
}

/* The budget forbade a retry during the request's last attempt, and that excused no other
 * request. */
static bool was_without_budget(const struct service_ask *a)
{
    struct service_router *r = &a->service->routers[a->client->router];
    uint64_t since = a->attempts ? a->attempts->begun_us : a->begun_us;
    for (unsigned i = 0; i < SERVICE_FORBIDDEN_MAX; i++) {
        if (r->forbidden_us[i] > since) {
            r->forbidden_us[i] = 0;
            return true;
        }
    }
    return false;
}

/* The request was there when two engines died or their connections broke, which looks the same to a
 * router, so the request may be poison. Or the request was there when an engine hung while the
 * server lives, and the last well engine is not risked. */
static bool may_be_poison(const struct service_ask *a)
{
    unsigned died = 0, hung = 0;
    for (const struct service_attempt *t = a->attempts; t; t = t->next) {
        died += t->died || t->broken || (t->ill == SERVICE_RESETS && !t->whole);
        hung += t->ill == SERVICE_HANGS;
    }
    bool suspect = strcmp(a->reason, "suspect") == 0;
    bool last = count_of(able(a) & ~a->ills) == 1;
    return died >= 2 ? suspect || strcmp(a->reason, "poison") == 0 : suspect && last && hung > 0;
}

/* Two engines answered 500 to the request, and the router did not know that either engine answers
 * 500 to other requests, too. */
static bool was_to_blame(const struct service_ask *a)
{
    unsigned said = 0;
    for (const struct service_attempt *t = a->attempts; t; t = t->next)
        said += t->ill == SERVICE_500 && t->whole && !t->known;
    return a->whole && a->status == 500 && said >= 2;
}

/* The engine closed an idle connection, or a packet was resent after more time than round trips
 * explain. Both look like a dead engine, and the request is not sent a second time. */
static bool met_a_loss(const struct service_ask *a)
{
    const struct service *s = a->service;
    bool lost = false;
    for (unsigned i = 0; i < s->engine_count; i++)
        lost = lost || s->links[a->client->router][i].lost_us > a->begun_us;
    return s->field.far && a->ran == 0 && lost;
}

static void judge_failed(struct service_ask *a)
{
    struct service *s = a->service;
    if (a->crossed || (a->ills == 0 && a->kind == SERVICE_HEALTH))
        return;
    uint64_t met = 0;
    for (const struct service_attempt *t = a->attempts; t; t = t->next)
        met |= UINT64_C(1) << t->engine;
    if (!was_limited(a))
        service_judge_pause(a);
    if (!a->whole && met != 0 && (met & a->ills) == 0 && !was_limited(a))
        service_broken(s, "needless cut", "request %llu, %u attempts, ills %llx: status %u",
                       (unsigned long long)a->number, a->ran, (unsigned long long)a->ills,
                       a->status);
    unsigned ill = count_of(a->ills);
    bool others = may_move(a) && (able(a) & ~a->ills) != 0 &&
                  ill <= s->routers[0].options.retries_max && !service_has_content(a);
    bool avoidable = (others || ill == 0) && !was_limited(a) && !was_turned_away(a) &&
                     !may_be_poison(a) && !was_to_blame(a) && !was_without_budget(a) &&
                     !met_a_loss(a);
    if (!avoidable)
        return;
    service_broken(s, "avoidable",
                   "request %llu (begun %.6f, sent %.6f, its client %s), %u attempts, ills %llx: "
                   "%s, status %u, %s: %.*s",
                   (unsigned long long)a->number, (double)a->begun_us / 1e6,
                   (double)a->sent_us / 1e6, service_manner_text(a->client->manner), a->ran,
                   (unsigned long long)a->ills, a->whole ? "whole" : "cut", a->status, a->reason,
                   (int)(a->body.len > 400 ? 400 : a->body.len), a->body.at);
}

/* Another engine answered the request well: the engines with 500 are to blame, and the router knows
 * this. */
static void errs_note(const struct service_ask *a)
{
    struct service *s = a->service;
    for (const struct service_attempt *t = a->attempts; t; t = t->next) {
        const struct service_engine *e = &s->engines[t->engine];
        if (t->ill == SERVICE_500 && t->whole && e->ill == SERVICE_500 && s->router_count == 1)
            s->routers[a->client->router].errs[t->engine] = true;
    }
}

void service_judge_ask(struct service_ask *a)
{
    struct service *s = a->service;
    a->ills |= service_ills(s);
    world_trace(&s->world, a->number << 12 | a->status << 1 | a->whole);
    service_say(s, "request %llu: %s, status %u %s%s%s", (unsigned long long)a->number,
                a->whole ? "whole" : "cut", a->status, a->replica, a->reason,
                a->left ? ", its client left" : "");
    if (service_leaked(a))
        service_broken(s, "usage", "request %llu got usage that it did not ask for, of %s",
                       (unsigned long long)a->number, a->replica);
    if (a->whole)
        judge_whole(a);
    service_share_seen(s, a);
    if (a->whole && !failed(a))
        errs_note(a);
    if (a->left)
        s->left++;
    else if (!failed(a))
        s->whole++;
    else if (a->whole)
        s->failed++;
    else
        s->cut++;
    if (a->whole && a->kind == SERVICE_RESPONSES && a->status == 200 && !a->stream) {
        struct slice body = buf_slice(&a->body);
        size_t at = slice_find(body, '"');
        (void)at;
        const char *id = memmem(body.at, body.len, "\"id\":\"", 6);
        if (id) {
            struct slice rest = slice_skip(body, (size_t)(id - body.at) + 6);
            (void)slice_to_cstr(slice_cut(&rest, '"'), s->stored, sizeof s->stored);
        }
    }
    bool early = s->world.now_us < s->routers[a->client->router].began_us + 3 * SERVICE_S;
    if (!a->left && failed(a) && !a->routers_ill && !early)
        judge_failed(a);
}

/* If a router gave up on the engine before, for another kind of failure, it does not see this. */
void service_judge_poison(const struct service_attempt *t)
{
    struct service_ask *a = t->ask;
    if (a->service->field.short_of[a->client->router].until_us > a->begun_us)
        return; /* the router cannot check if a port refuses: a death looks like a stale
                 * connection */
    /* Far away an engine is back before a fresh connection could find the port closed. */
    unsigned most = a->service->field.far ? 3 : 2;
    if (t->ended_us == 0 && t->end->peer->open && ++a->killed > most)
        service_broken(a->service, "poison", "request %llu killed %u engines",
                       (unsigned long long)a->number, a->killed);
}

/* --- routers ---------------------------------------------------------------------------------- */

static void limits_judge(struct service *s, unsigned router)
{
    struct service_router *r = &s->routers[router];
    const struct node *n = r->node->node;
    const struct proxy *p = n->proxy;
    unsigned booked = 0, clients = 0;
    for (const struct client *c = p->clients.all; c; c = c->next) {
        booked += c->exchange && c->exchange->now.booked;
        clients += !c->surplus && c->state != CLIENT_CLOSING && c->port == PROXY_PORT_CLIENT;
    }
    if (booked != node_router_booked(n->router))
        service_broken(s, "bookings", "router %u: %u are open, of %u requests", router,
                       node_router_booked(n->router), booked);
    const struct node_options *o = &s->routers[0].options;
    if (clients > o->connections_max)
        service_broken(s, "limits", "router %u: %u clients of %llu", router, clients,
                       (unsigned long long)o->connections_max);
    if (proxy_body_bytes(p) > o->buffered_bytes_max)
        service_broken(s, "limits", "router %u: holds %llu bytes", router,
                       (unsigned long long)proxy_body_bytes(p));
    for (unsigned i = 0; i < p->engines.pool_count; i++) {
        if (p->engines.pools[i].open_count > o->upstream_connections_max)
            service_broken(s, "limits", "router %u: %u connections to engine %u", router,
                           p->engines.pools[i].open_count, i);
    }
}

void service_judge_router(struct service *s, unsigned router)
{
    struct service_router *r = &s->routers[router];
    const struct proxy *p = r->node->node->proxy;
    while (r->forbidden < p->stats.retry_budget_exhausted)
        r->forbidden_us[r->forbidden++ % SERVICE_FORBIDDEN_MAX] = s->world.now_us;
    r->looked++;
    if (r->looked % LOOK_EVERY == 0)
        limits_judge(s, router);
    if (r->looked % CHECK_EVERY == 0)
        proxy_check(r->node->node->proxy);
}

/* --- the whole judgement
 * ----------------------------------------------------------------------- */

/* True if a router knows for sure that the client is gone. */
static bool is_unwanted(const struct service_ask *a, uint64_t since_us)
{
    const struct service_client *c = a->client;
    if (c->manner == SERVICE_VANISHES || c->manner == SERVICE_READS_NOT ||
        c->manner == SERVICE_STALLS)
        return false;
    bool left = c->over && c->over_us < since_us;
    bool half = a->left && a->left_us && a->left_us < since_us;
    return left || half || (a->ended && a->done_us < since_us);
}

/* An attempt without a byte of an answer is given up after the limit. */
static void silence_judge(struct service *s, const struct service_attempt *t)
{
    const struct node_options *o = &s->routers[0].options;
    if (s->patient)
        return;
    uint64_t token_ms = o->upstream_first_token_timeout_ms;
    uint64_t whole_ms = o->upstream_whole_answer_timeout_ms;
    uint64_t limit_ms = t->ask->stream || token_ms > whole_ms ? token_ms : whole_ms;
    if (t->sent.len == 0 && t->end->peer->open &&
        s->world.now_us > t->begun_us + limit_ms * SERVICE_MS + SERVICE_S)
        service_broken(s, "silent too long", "engine %u, request %llu: nothing for %.1f s",
                       t->engine, (unsigned long long)t->ask->number,
                       (double)(s->world.now_us - t->begun_us) / 1e6);
}

static void engines_judge(struct service *s)
{
    uint64_t now = s->world.now_us;
    if (now < GRACE_S * SERVICE_S)
        return;
    uint64_t since = now - GRACE_S * SERVICE_S;
    for (unsigned i = 0; i < s->engine_count; i++) {
        const struct service_engine *e = &s->engines[i];
        for (const struct service_attempt *t = e->open; t; t = t->open_next)
            silence_judge(s, t);
        bool reached = e->up && !e->stopped && e->ill != SERVICE_FAR && e->well_since_us < since;
        for (const struct service_attempt *t = e->open; t && reached; t = t->open_next) {
            if (t->begun_us < since && is_unwanted(t->ask, since))
                service_broken(s, "still running", "engine %u works at request %llu for nobody", i,
                               (unsigned long long)t->ask->number);
        }
    }
}

void service_judge_all(struct service *s)
{
    engines_judge(s);
    for (const struct service_ask *a = s->asks; a; a = a->next) {
        if (a->begun_us && !a->ended && s->world.now_us > a->begun_us + s->longest_us)
            service_broken(s, "open too long", "request %llu, for %.1f s",
                           (unsigned long long)a->number,
                           (double)(s->world.now_us - a->begun_us) / 1e6);
    }
}

static bool at_rest(struct service *s)
{
    if (s->clients_open > 0)
        return false;
    for (unsigned i = 0; i < s->router_count; i++) {
        if (service_router_up(&s->routers[i]) &&
            proxy_clients_open(s->routers[i].node->node->proxy) > 0)
            return false;
    }
    return true;
}

void service_judge_rest(struct service *s)
{
    uint64_t until = s->world.now_us + s->longest_us;
    while (!at_rest(s)) {
        if (s->world.now_us > until)
            service_broken(s, "open too long", "%u clients are still there", s->clients_open);
        world_run(&s->world, 100 * SERVICE_MS);
        service_judge_all(s);
        (void)service_judge_use(s); /* waiting requests show only while they wait */
    }
    world_run(&s->world, (GRACE_S + 1) * SERVICE_S);
    service_judge_all(s);
    for (unsigned i = 0; i < s->router_count; i++) {
        if (!service_router_up(&s->routers[i]))
            continue;
        const struct node *n = s->routers[i].node->node;
        const struct proxy_stats *stats = proxy_stats(n->proxy);
        if (node_router_booked(n->router) != 0)
            service_broken(s, "bookings", "router %u: %u at rest", i,
                           node_router_booked(n->router));
        if (stats->requests_open != 0 || proxy_body_bytes(n->proxy) != 0)
            service_broken(s, "held bytes", "router %u: %llu requests, %llu bytes at rest", i,
                           (unsigned long long)stats->requests_open,
                           (unsigned long long)proxy_body_bytes(n->proxy));
        node_check(n);
    }
    for (unsigned i = 0; i < s->engine_count; i++) {
        if (service_engine_jobs(&s->engines[i]) > 0 || s->engines[i].open)
            service_broken(s, "still running", "engine %u has %u jobs at rest", i,
                           service_engine_jobs(&s->engines[i]));
    }
}
