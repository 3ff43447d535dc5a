#include "node/proxy/guard/slow.h"

#include <stdio.h>

#include "base/check.h"
#include "node/proxy/exchange/drive.h"

/* It gets no answer any more; the log has why. */
static void drop_slow(struct client *c, enum proxy_refusal refusal, const char *limit)
{
    if (c->exchange != NULL) {
        c->exchange->refusal = refusal;
        c->exchange->limit = limit;
    }
    exchange_drop(c, CLIENT_END_SLOW, false);
}

/* --- heads, and clients that do not move at all --------------------------------------------------
 */

void slow_client_expired(struct deadline *d)
{
    static const struct exchange_refusal late_head = {
        .status = 408,
        .limit = "client-head-timeout",
        .text = "The request did not arrive in time (client-head-timeout).",
    };
    static const struct exchange_refusal late_body = {
        .status = 408,
        .limit = "client-body-timeout",
        .text = "The request did not arrive in time (client-body-timeout).",
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
        exchange_refuse_for(c, c->state == CLIENT_HEAD ? &late_head : &late_body);
    else
        drop_slow(c, PROXY_REFUSED_TIMEOUT, c->out_bytes > 0 ? "client-write-timeout" : NULL);
}

/* --- bodies -------------------------------------------------------------------------------------
 */

/* Where an answer is still possible it says why. */
static void refuse_slow(struct client *c, const char *limit, bool short_of_memory)
{
    char late[80];
    (void)snprintf(late, sizeof late, "The request body arrived too slowly (%s).", limit);
    struct exchange_refusal why = {
        .status = short_of_memory ? 503 : 408,
        .refusal = PROXY_REFUSED_SLOW_UPLOAD,
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
        proxy_arm(p, PROXY_CLIENT_BODY_TOTAL, d); /* it was held back meanwhile */
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
        upload_hold(&c->upload, !c->reading, p->now_ms);
    }
    if (!upload_add(&c->upload, bytes, p->config.options->client_body_rate_min, p->now_ms))
        refuse_slow(c, "client-body-rate-min", false);
}

/* The upload that needs longest, at its present pace, for what it holds; at least `least_ms`. Not
 * `newcomer`, which has just sent something, and none that streams through or is dropped. NULL:
 * none. */
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

void slow_shift(struct proxy *p, uint64_t by_ms)
{
    const struct deadline_queue *list = &p->limit[PROXY_CLIENT_BODY_TOTAL];
    for (struct deadline *d = deadline_first(list); d != NULL; d = deadline_behind(list, d))
        upload_shift(CONTAINER_OF(d, struct upload, total), by_ms);
}
