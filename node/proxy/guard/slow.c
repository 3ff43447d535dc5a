#include "node/proxy/guard/slow.h"

#include <stddef.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/ip.h"
#include "node/proxy/exchange/drive.h"

/* Closes the connection without an answer, and logs the reason. */
static void drop_slow(struct client *c, enum refusal refusal, const char *limit)
{
    if (c->exchange != NULL) {
        c->exchange->refusal = refusal;
        c->exchange->limit = limit;
    }
    exchange_drop(c, CLIENT_END_SLOW, false);
}

/* --- heads, and clients without any progress ------------------------------------------------ */

void slow_client_expired(struct deadline *d)
{
    static const struct exchange_refusal late[] = {
        {408, REFUSED_TIMEOUT, "client-head-timeout",
         "The request did not arrive in time (client-head-timeout)."},
        {408, REFUSED_TIMEOUT, "client-body-timeout",
         "The request did not arrive in time (client-body-timeout)."},
    };
    struct client *c = CONTAINER_OF(d, struct client, deadline);
    if (c->broken != CLIENT_END_DONE) {
        exchange_drop(c, c->broken, true);
        return;
    }
    bool slow = c->state == CLIENT_BODY || (c->state == CLIENT_HEAD && c->in.len > 0);
    bool refuse = slow && c->out_bytes == 0;
    c->proxy->stats.client_timeouts += refuse || c->out_bytes > 0;
    if (refuse && !c->awaits_header)
        exchange_refuse_for(c, &late[c->state != CLIENT_HEAD]);
    else
        drop_slow(c, REFUSED_TIMEOUT, c->out_bytes > 0 ? "client-write-timeout" : NULL);
}

/* --- bodies --------------------------------------------------------------------------------- */

/* Refuses a slow upload. Answers with the reason if an answer is still possible. */
static void refuse_slow(struct client *c, const char *limit, bool short_of_memory)
{
    char late[80];
    (void)snprintf(late, sizeof late, "The request body arrived too slowly (%s).", limit);
    struct exchange_refusal why = {
        .status = short_of_memory ? 503 : 408,
        .refusal = REFUSED_SLOW_UPLOAD,
        .limit = limit,
        .text = short_of_memory ? "Memory is short, and this body arrived too slowly." : late,
    };
    c->proxy->stats.client_timeouts += !short_of_memory;
    if (c->broken == CLIENT_END_DONE && c->out_bytes == 0)
        exchange_refuse_for(c, &why);
    else if (c->broken != CLIENT_END_DONE)
        exchange_drop(c, c->broken, false);
    else
        drop_slow(c, why.refusal, limit);
}

void slow_upload_expired(struct deadline *d)
{
    struct upload *u = CONTAINER_OF(d, struct upload, total);
    struct client *c = CONTAINER_OF(u, struct client, upload);
    struct proxy *p = c->proxy;
    if (u->held_ms != 0 || p->now_ms - u->since_ms < p->limit[PROXY_CLIENT_BODY_TOTAL].wait_ms)
        proxy_arm(p, PROXY_CLIENT_BODY_TOTAL, d); /* the router's pauses do not count */
    else
        refuse_slow(c, "client-body-total-timeout", false);
}

void slow_follow(struct client *c, size_t bytes)
{
    struct proxy *p = c->proxy;
    if (c->state != CLIENT_BODY)
        return;
    if (!upload_listed(&c->upload)) {
        upload_begin(&c->upload, &p->limit[PROXY_CLIENT_BODY_TOTAL], p->now_ms);
        proxy_armed(p, &c->upload.total);
        upload_hold(&c->upload, !c->reading, p->now_ms);
    }
    if (!upload_add(&c->upload, bytes, p->config.options->client_body_rate_min, p->now_ms))
        refuse_slow(c, "client-body-rate-min", false);
}

/* Returns the slowest upload: the stored bytes would take the longest time at the present pace, and
 * at least `least_ms`. NULL: none. `newcomer` does not count, because it has just sent something.
 * Nor do streamed or dropped bodies. */
static struct client *slowest_upload(struct proxy *p, const struct client *newcomer,
                                     uint64_t least_ms)
{
    const struct deadline_queue *list = &p->limit[PROXY_CLIENT_BODY_TOTAL];
    struct client *slowest = NULL;
    for (struct deadline *d = deadline_first(list); d != NULL; d = deadline_behind(list, d)) {
        struct upload *u = CONTAINER_OF(d, struct upload, total);
        struct client *c = CONTAINER_OF(u, struct client, upload);
        if (c == newcomer || c->exchange == NULL || !c->exchange->whole)
            continue;
        uint64_t takes_ms = upload_takes_ms(u, c->exchange->request.body->bytes, p->now_ms);
        if (takes_ms >= least_ms) {
            least_ms = takes_ms + 1;
            slowest = c;
        }
    }
    return slowest;
}

void slow_make_room(const struct client *newcomer)
{
    struct proxy *p = newcomer->proxy;
    const struct segment_pool *pool = &p->segments;
    uint64_t mark = pool->bytes_max - pool->bytes_max / 4;
    uint64_t full = pool->bytes_max - pool->bytes_max / 16;
    for (unsigned i = 0; pool->bytes > mark && i < PROXY_SLOW_CUT_MAX; i++) {
        if (p->now_ms - p->clients.slow_looked_ms < PROXY_SLOW_LOOK_MS)
            return;
        uint64_t least_ms = pool->bytes > full ? PROXY_SLOW_FULL_MS : PROXY_SLOW_MS;
        struct client *c = slowest_upload(p, newcomer, least_ms);
        if (c != NULL)
            refuse_slow(c, "buffered-bytes-max", true);
        else
            p->clients.slow_looked_ms = p->now_ms;
    }
}

/* --- scarce connections --------------------------------------------------------------------- */

enum { ADDRESS_SLOTS = 2 * PROXY_EVICT_LOOK_MAX, CROWD_SHARE = 8 };

/* The number of connections from an address. Two addresses never share a slot: otherwise a client
 * could count as a member of another address's crowd. */
struct address {
    uint64_t id; /* 0: a free slot */
    unsigned count;
};

/* A search for a connection to close. */
struct eviction {
    uint64_t counts_ms; /* connections with progress within this time are not counted */
    struct address address[ADDRESS_SLOTS];
    unsigned all, most; /* counted connections, and the most of any address */
    bool crowd;
    uint64_t still_ms;    /* connections with progress within this time are not closed */
    struct client *least; /* the connection to close; NULL: none found yet */
    double pace;          /* the pace of `least`; in a crowd: minus the time without progress */
};

/* Returns the count of the client's address: for IPv6, of the /64 (node/proxy/limit/peers.h). */
static unsigned *count_of(struct eviction *e, const struct client *c)
{
    uint8_t ip[IP_BYTES] = {0};
    bool parsed = ip_parse(c->peer, ip);
    size_t len = !parsed || ip_is_v4(ip) ? IP_BYTES : IP_BYTES / 2;
    uint64_t id = hash64(&c->proxy->config.secret, ip, len) | 1;
    size_t at = id / 2 % ADDRESS_SLOTS;
    while (e->address[at].id != 0 && e->address[at].id != id)
        at = (at + 1) % ADDRESS_SLOTS;
    e->address[at].id = id;
    return &e->address[at].count;
}

/* A connection's pace, in bytes per second, and time without progress. */
struct progress {
    double pace;
    /* A head: since the first byte. A body: since the last byte, or since the upload's start if the
     * pace is too slow. */
    uint64_t still_ms;
};

/* Measures the progress of an incomplete head. Returns false while output is queued on the
 * connection. The time runs from the head's first byte, because a head normally fits into a
 * packet. */
static bool head_progress(const struct client *c, struct progress *out)
{
    const struct proxy *p = c->proxy;
    uint64_t since_ms = c->deadline.at_ms - p->limit[PROXY_CLIENT_HEAD].wait_ms;
    out->still_ms = p->now_ms > since_ms ? p->now_ms - since_ms : 0;
    out->pace = (double)c->in.len * 1000 / (double)(out->still_ms + 1);
    return c->out_bytes == 0;
}

/* Measures the progress of an incomplete body. Returns false if the upload must stay: the router
 * has paused it, or an answer is committed. */
static bool body_progress(const struct client *c, struct progress *out)
{
    const struct proxy *p = c->proxy;
    const struct upload *u = &c->upload;
    uint64_t rate_min = p->config.options->client_body_rate_min;
    uint64_t age_ms = p->now_ms > u->since_ms ? p->now_ms - u->since_ms : 0;
    if (u->held_ms != 0 || c->exchange == NULL || exchange_is_committed(c->exchange))
        return false;
    bool slow = age_ms >= PROXY_EVICT_SILENT_MS && upload_takes_ms(u, rate_min, p->now_ms) > 1000;
    out->still_ms = slow ? age_ms : p->now_ms - u->last_ms;
    out->pace = (double)c->exchange->request.body->bytes * 1000 / (double)(age_ms + 1);
    return true;
}

static const struct evictable {
    enum proxy_limit list;
    size_t offset; /* offset of the list's deadline in struct client */
    bool (*progress)(const struct client *c, struct progress *out); /* false: the connection
                                                                       stays */
    uint64_t still_ms;                                              /* least time without
                                                                     * progress */
} evictables[] = {
    {PROXY_CLIENT_HEAD, offsetof(struct client, deadline), head_progress, PROXY_EVICT_IDLE_MS},
    {PROXY_CLIENT_BODY_TOTAL, offsetof(struct client, upload.total), body_progress,
     PROXY_EVICT_SILENT_MS},
};

/* Calls `each` for the oldest PROXY_EVICT_LOOK_MAX connections of the list. */
static void evictables_each(struct proxy *p, const struct evictable *of,
                            void (*each)(struct eviction *e, struct client *c,
                                         const struct progress *progress),
                            struct eviction *e)
{
    const struct deadline_queue *list = &p->limit[of->list];
    unsigned looked = 0;
    for (struct deadline *d = deadline_first(list); d != NULL && looked < PROXY_EVICT_LOOK_MAX;
         d = deadline_behind(list, d), looked++) {
        struct client *c = (struct client *)(void *)((char *)d - of->offset);
        struct progress progress;
        if (of->progress(c, &progress))
            each(e, c, &progress);
    }
}

static void count_one(struct eviction *e, struct client *c, const struct progress *progress)
{
    if (progress->still_ms < e->counts_ms)
        return;
    unsigned n = ++*count_of(e, c);
    e->all++;
    e->most = n > e->most ? n : e->most;
}

static void weigh_one(struct eviction *e, struct client *c, const struct progress *progress)
{
    double pace = e->crowd ? -(double)progress->still_ms : progress->pace;
    if (progress->still_ms < e->still_ms || *count_of(e, c) != e->most ||
        (e->least != NULL && pace >= e->pace))
        return;
    e->least = c;
    e->pace = pace;
}

/* Returns the connection with the least progress. There is a crowd if at least two are counted and
 * they are an eighth of connections-max, or if an address has more than the newcomer's. In a crowd,
 * the longest time without progress decides. */
static struct client *least_far(struct proxy *p, const struct evictable *of,
                                const struct client *newcomer, bool crowd_alone)
{
    bool heads = of->list == PROXY_CLIENT_HEAD;
    struct eviction e = {.counts_ms = crowd_alone && !heads ? of->still_ms : 0};
    evictables_each(p, of, count_one, &e);
    bool many = (heads || crowd_alone) && e.all > 1 &&
                e.all >= p->config.options->connections_max / CROWD_SHARE;
    e.crowd = many || *count_of(&e, newcomer) + 1 < e.most;
    if (crowd_alone && !e.crowd)
        return NULL;
    e.still_ms = e.crowd ? e.counts_ms : of->still_ms;
    evictables_each(p, of, weigh_one, &e);
    return e.least;
}

bool slow_evict(const struct client *newcomer, bool crowd_alone)
{
    struct proxy *p = newcomer->proxy;
    for (size_t i = 0; i < ARRAY_LEN(evictables); i++) {
        struct client *c = least_far(p, &evictables[i], newcomer, crowd_alone);
        if (c == NULL)
            continue;
        CHECK(c->standing == CLIENT_IN && c != newcomer);
        p->stats.connections_evicted++;
        drop_slow(c, REFUSED_CONNECTIONS, "connections-max");
        return true;
    }
    return false;
}

void slow_shift(struct proxy *p, uint64_t by_ms)
{
    const struct deadline_queue *list = &p->limit[PROXY_CLIENT_BODY_TOTAL];
    for (struct deadline *d = deadline_first(list); d != NULL; d = deadline_behind(list, d))
        upload_shift(CONTAINER_OF(d, struct upload, total), by_ms);
}
