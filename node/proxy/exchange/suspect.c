#include "node/proxy/exchange/suspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/pool.h"
#include "node/route/poison.h"

/* --- the request ---------------------------------------------------------------------------- */

/* Returns true if the request can be a suspect. Only computation can kill an engine, and the search
 * for a stored response computes nothing. Only complete bodies can be recognized again. */
static bool can_be_one(const struct exchange *x)
{
    bool computes = x->skimming || x->form;
    return computes && !x->asking && x->request.body->complete && !x->dropped;
}

/* Returns true for a prompt of token ids. They go to the engine unread, and may contain ids unknown
 * to any tokenizer. Requests in words are nearly always innocent of a death. */
static bool is_raw(const struct exchange *x)
{
    return x->skimming && x->skim.understood && http_skim_chain(&x->skim)->token_ids;
}

/* Hashes path and body, independently of the body's pieces. */
static uint64_t hash_of(struct exchange *x)
{
    struct proxy *p = x->proxy;
    size_t len = strlen(x->path);
    memcpy(p->joined, x->path, len);
    uint64_t hash = x->request.body->bytes;
    for (const struct segment *s = x->request.body->first; s != NULL; s = s->next) {
        for (size_t at = 0; at < s->len;) {
            size_t n = s->len - at < sizeof p->joined - len ? s->len - at : sizeof p->joined - len;
            memcpy(p->joined + len, s->data + at, n);
            at += n;
            len += n;
            if (len < sizeof p->joined)
                continue;
            hash = hash_mix(hash * 0x9e3779b97f4a7c15u ^ hash64(&p->config.secret, p->joined, len));
            len = 0;
        }
    }
    hash = hash_mix(hash * 0x9e3779b97f4a7c15u ^ hash64(&p->config.secret, p->joined, len));
    return hash != 0 ? hash : 1;
}

static uint64_t hash(struct exchange *x)
{
    if (x->suspect.hash == 0)
        x->suspect.hash = hash_of(x);
    return x->suspect.hash;
}

static void log_suspect(struct exchange *x, const char *event, const struct pool_death *death)
{
    struct proxy *p = x->proxy;
    char text[17], names[NODE_POISON_NAMES_BYTES];
    struct slice replica = node_router_replica_name(p->config.router, x->now.decision.replica);
    (void)snprintf(text, sizeof text, "%016" PRIx64, hash(x));
    node_poison_names_text(p->config.router, hash(x), names);
    log_event(p->config.log, LOG_WARN, event, LOG_STR("id", x->request_id), LOG_CSTR("hash", text),
              LOG_STR("replica", replica),
              LOG_STR("replicas", names[0] != '\0' ? slice_of_cstr(names) : replica),
              LOG_CSTR("death", death->core ? "core" : "abrupt"),
              LOG_UINT("suspects", death->suspects), LOG_UINT("deaths", x->suspect.deaths));
}

/* --- a death -------------------------------------------------------------------------------- */

/* Returns true if a request without a token, sent at sent_ms, was there when the engine died.
 * `whole`: the answer is not streamed. */
static bool was_there(const struct pool_death *d, uint64_t sent_ms, bool whole)
{
    return sent_ms <= d->until_ms && (!whole || sent_ms >= d->from_ms);
}

static uint64_t before(uint64_t ms, uint64_t by)
{
    return ms > by ? ms - by : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The requests at a replica when a connection there ended. */
struct under_way {
    bool streams; /* answers with tokens: the last byte is at most a step older than the death */
    uint64_t owed_ms; /* when the oldest request without a token was sent; UINT64_MAX: none */
};

static void look_at(struct under_way *w, const struct exchange *x)
{
    w->streams = w->streams || x->now.first_token;
    if (!x->now.first_token)
        w->owed_ms = least(w->owed_ms, x->began_ms);
}

/* Returns true if the request was sent. A reconnecting request may have been sent before, on a
 * connection closed by the death. */
static bool was_sent(const struct upstream *u)
{
    return u->exchange != NULL && (u->state == UPSTREAM_BUSY ||
                                   (u->state == UPSTREAM_CONNECTING && u->exchange->now.stale));
}

/* Returns the requests under way at a replica. They include `failing` (NULL: none), although its
 * connection is already closed. */
static struct under_way look(const struct pool *pool, const struct exchange *failing)
{
    struct under_way w = {.owed_ms = UINT64_MAX};
    if (failing != NULL)
        look_at(&w, failing);
    for (const struct upstream *u = pool->all; u != NULL; u = u->all_next) {
        if (was_sent(u))
            look_at(&w, u->exchange);
    }
    return w;
}

/* Returns true if the engine's core may die in silence. SGLang's server lives on until it notices
 * the death. vLLM refuses deadly requests, and reports a dead core: there silence is a hang. */
static bool dies_silently(const struct pool *pool)
{
    const struct proxy *p = pool->proxy;
    unsigned replica = (unsigned)(pool - p->engines.pools);
    return node_router_replica_engine(p->config.router, replica) != NODE_ENGINE_VLLM;
}

/* Returns the start of the silence; `until_ms`: the latest time for a request to be the cause. */
static uint64_t silent_since(const struct pool *pool, const struct under_way *w, uint64_t *until_ms)
{
    uint64_t silent_ms = pool->answer_ms;
    if (!w->streams && w->owed_ms != UINT64_MAX && w->owed_ms > silent_ms)
        silent_ms = w->owed_ms;
    *until_ms = silent_ms + (w->streams ? SUSPECT_STEP_MS : SUSPECT_MARGIN_MS);
    return silent_ms;
}

/* Returns true if the port closed while connections lived: a shutdown, which no request causes. */
static bool was_told_to_end(const struct pool *pool, uint64_t now)
{
    bool closed = pool->refused_ms > pool->probed_ms && pool->refused_ms >= pool->accepted_ms;
    return closed && now >= pool->refused_ms + SUSPECT_CLOSED_MS;
}

/* Judges a death: the kind, from the silence before, and the time range of the suspects. An
 * unstreamed answer shows no tokens until the end, so a request sent before d->from_ms is assumed
 * to have tokens. */
static void judge(struct pool_death *d, const struct pool *pool, const struct under_way *w,
                  enum suspect_end end, uint64_t now)
{
    uint64_t until_ms, silent_ms = silent_since(pool, w, &until_ms);
    bool server_lives = pool->probed_ms > silent_ms + SUSPECT_MARGIN_MS;
    *d = (struct pool_death){.at_ms = now, .until_ms = UINT64_MAX};
    if (end == SUSPECT_END_BROKEN && was_told_to_end(pool, now)) {
        d->hang = d->told = true;
    } else if (end == SUSPECT_END_CORE_DEAD) {
        d->said = true;
        d->from_ms = before(now, SUSPECT_TEXT_MS);
    } else if (end == SUSPECT_END_SILENT) {
        d->core = server_lives && dies_silently(pool);
        d->hang = !d->core;
        d->until_ms = until_ms;
        d->from_ms = before(silent_ms, SUSPECT_MARGIN_MS);
    } else if (now - silent_ms >= SUSPECT_SILENCE_MS && dies_silently(pool)) {
        uint64_t late_ms = w->streams ? 0 : before(now, SUSPECT_NOTICED_MS);
        d->core = true;
        d->until_ms = until_ms > late_ms ? until_ms : late_ms;
        d->from_ms = before(least(silent_ms, before(now, SUSPECT_LATEST_MS)), SUSPECT_MARGIN_MS);
    }
}

static bool is_suspect(const struct pool_death *d, const struct exchange *x)
{
    return !x->now.first_token && was_there(d, x->began_ms, x->request.answered_whole);
}

/* Returns the death to which this end belongs. A new death is judged by all requests there now. */
static struct pool_death *death_of(struct pool *pool, const struct exchange *failing,
                                   enum suspect_end end)
{
    uint64_t now = pool->proxy->now_ms;
    struct pool_death *d = &pool->death;
    bool sent_since = failing != NULL && failing->began_ms > d->at_ms;
    bool ended = end == SUSPECT_END_BROKEN ? !d->left : end != SUSPECT_END_SILENT;
    bool died = ended && !d->told; /* the replica hung before, and died */
    bool hung_only = d->hang && (pool->answer_ms > d->at_ms || sent_since || died);
    if (d->at_ms != 0 && now - d->at_ms < SUSPECT_DEATH_MS && !hung_only)
        return d;
    struct under_way w = look(pool, failing);
    judge(d, pool, &w, end, now);
    const struct node_replica *k = node_router_process(
        pool->proxy->config.router, (unsigned)(pool - pool->proxy->engines.pools));
    d->shared = node_replica_requests(k) > node_replica_own_requests(k);
    if (failing != NULL)
        d->suspects = is_suspect(d, failing);
    for (const struct upstream *u = pool->all; u != NULL; u = u->all_next) {
        if (was_sent(u))
            d->suspects += is_suspect(d, u->exchange);
    }
    return d;
}

bool suspect_may_move(const struct exchange *x)
{
    const struct proxy *p = x->proxy;
    const struct pool *pool = &p->engines.pools[x->now.decision.server];
    if (node_router_replica_engine(p->config.router, x->now.decision.replica) !=
            NODE_ENGINE_SGLANG ||
        !can_be_one(x) || !is_raw(x))
        return true;
    if (node_router_rank_stalled(p->config.router, x->now.decision.replica)) /* the other ranks make
                                                                              * progress */
        return p->now_ms - x->began_ms >= SUSPECT_HANG_MS;
    struct under_way w = look(pool, NULL);
    uint64_t until_ms, silent_ms = silent_since(pool, &w, &until_ms);
    return x->began_ms > until_ms || p->now_ms - silent_ms >= SUSPECT_HANG_MS;
}

void suspect_silent(struct pool *pool)
{
    death_of(pool, NULL, SUSPECT_END_SILENT)->left = true;
}

/* --- conclusions about the request ---------------------------------------------------------- */

/* Returns true if the earlier replica has answered since, and the port never refused: no process
 * died. */
static bool was_no_death(const struct exchange *x)
{
    const struct pool *pool = &x->proxy->engines.pools[x->suspect.replica];
    return !x->suspect.core && pool->answer_ms > x->suspect.at_ms + SUSPECT_ALIVE_MS &&
           pool->refused_ms < x->suspect.at_ms;
}

void suspect_refuse(struct exchange *x, const char *text)
{
    x->suspect.refused = REFUSED_SUSPECT;
    x->suspect.refused_text = text;
}

/* Returns true for a repeated report. A dead core is reported to every request until the server is
 * gone. */
static bool is_said_again(const struct pool *pool, const struct exchange *x, enum suspect_end end)
{
    const struct pool_death *d = &pool->death;
    return end == SUSPECT_END_CORE_DEAD && d->at_ms != 0 && x->began_ms > d->at_ms &&
           pool->first_token_ms < d->at_ms &&
           pool->proxy->now_ms - d->at_ms < SUSPECT_TEXT_AGAIN_MS;
}

/* Returns true if both processes ended within a second, so both were stopped from outside. Does not
 * count processes that live on to report a dead engine. */
static bool died_together(const struct suspect *s, const struct pool_death *d, uint64_t now)
{
    return s->deaths > 0 && !s->core && !d->core && !d->said && now - s->at_ms < SUSPECT_DEATH_MS;
}

static void note_death(struct exchange *x, const struct pool_death *d)
{
    struct suspect *s = &x->suspect;
    bool strong = d->core && is_raw(x);
    struct node_router *router = x->proxy->config.router;
    unsigned replica = x->now.decision.server, earlier = s->replica;
    if (s->deaths > 0 && was_no_death(x)) {
        s->deaths = 0;
        s->core = s->clear = false;
    }
    bool together = died_together(s, d, x->proxy->now_ms);
    bool known = node_poison_of(router, hash(x)) != NODE_POISON_NONE;
    s->deaths++;
    s->died = true;
    s->core = s->core || d->core;
    s->clear = s->clear || strong || (d->suspects == 1 && !d->shared);
    s->replica = replica;
    s->at_ms = x->proxy->now_ms;
    x->proxy->stats.suspects++;
    enum node_poison now = known ? NODE_POISON_SUSPECT : NODE_POISON_NONE;
    bool second = s->deaths > 1 && s->clear && !together;
    if (strong || known || s->deaths > 1)
        now = node_poison_died(router, s->hash, replica, second);
    if (s->deaths > 1)
        node_poison_names(router, s->hash, earlier, replica);
    bool once = x->proxy->config.options->poison_retry;
    if (now == NODE_POISON_SURE)
        s->refused = REFUSED_POISON;
    else if (s->deaths > 1)
        suspect_refuse(x, "Engines died after this request, maybe not because of it. The router "
                          "does not send it to another engine.");
    else if (!once && s->clear)
        suspect_refuse(x, "An engine died after this request. The router does not send it to "
                          "another engine, because poison-retry is off.");
    x->admission.company = strong || known ? NODE_COMPANY_ALONE : NODE_COMPANY_RATHER_ALONE;
    if (strong || s->refused != REFUSED_NONE) /* otherwise upstream_failed says enough */
        log_suspect(x, now == NODE_POISON_SURE ? "poison" : "poison_suspect", d);
}

void suspect_ended(struct exchange *x, enum suspect_end end)
{
    struct pool *pool = &x->proxy->engines.pools[x->now.decision.server];
    bool sent =
        end != SUSPECT_END_BROKEN || (x->now.upstream != NULL && x->now.upstream->head_sent > 0);
    if (!sent || is_said_again(pool, x, end))
        return;
    const struct pool_death *d = death_of(pool, x, end);
    bool spared = end == SUSPECT_END_BROKEN && x->now.upstream->crossed && !x->suspect.spared;
    x->suspect.spared = x->suspect.spared || spared;
    if (!d->hang && !spared && can_be_one(x) && is_suspect(d, x))
        note_death(x, d);
}

void suspect_of_nothing(const struct exchange *x)
{
    uint64_t now = x->proxy->now_ms;
    struct pool_death *d = &x->proxy->engines.pools[x->now.decision.server].death;
    if (d->at_ms == 0 || now - d->at_ms >= SUSPECT_DEATH_MS)
        *d = (struct pool_death){.at_ms = now, .hang = true};
}

bool suspect_refused(struct exchange *x)
{
    struct suspect *s = &x->suspect;
    struct node_router *router = x->proxy->config.router;
    if (s->refused == REFUSED_NONE && node_poison_any(router) && can_be_one(x)) {
        enum node_poison known = node_poison_of(router, hash(x));
        if (known == NODE_POISON_SURE)
            s->refused = REFUSED_POISON;
        else if (known == NODE_POISON_SUSPECT)
            x->admission.company = NODE_COMPANY_ALONE;
    }
    if (s->refused == REFUSED_NONE)
        return false;
    x->refusal = s->refused;
    bool once = x->proxy->config.options->poison_retry;
    if (s->refused == REFUSED_SUSPECT && !once && s->deaths == 1)
        x->limit = "poison-retry";
    return true;
}

/* Returns true if an engine with such an answer has examined the request. An engine without room,
 * or with another key, has not. */
static bool was_looked_at(unsigned status)
{
    return status / 100 == 2 || status == 400 || status == 422;
}

void suspect_answered(struct exchange *x)
{
    if (x->now.status >= 500)
        return;
    x->proxy->engines.pools[x->now.decision.server].first_token_ms = x->proxy->now_ms;
    if (x->suspect.hash == 0 || !was_looked_at(x->now.status))
        return;
    node_poison_cleared(x->proxy->config.router, x->suspect.hash);
    x->suspect.deaths = 0;
    x->admission.company = NODE_COMPANY_ANY;
}
