/* Requests for which no replica has room: they wait in the queue, and are answered where it is full
 * or their time is up. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/json_write.h"
#include "node/proxy/engine/shortage.h"
#include "node/proxy/exchange/suspect_wait.h"

uint64_t exchange_queue_key(const struct exchange *x, const struct node_request *request)
{
    uint64_t key = (uint64_t)(int64_t)request->replica_wanted;
    if (request->model.len > 0)
        key ^= hash64(&x->proxy->config.secret, request->model.at, request->model.len);
    for (size_t i = 0; i < ARRAY_LEN(x->excluded); i++) {
        if (x->excluded[i] != 0)
            key = hash_mix(key ^ hash_mix(x->excluded[i] + i));
    }
    return key;
}

static bool router_is_full(const struct proxy *p)
{
    return node_router_booked(p->config.router) >= p->config.options->requests_max;
}

bool exchange_must_queue(const struct exchange *x, const struct node_request *request)
{
    const struct proxy *p = x->proxy;
    if (router_is_full(p))
        return true;
    return p->exchanges.queue.length > 0 && !queue_waits(&x->waiter) &&
           queue_has_waiters(&p->exchanges.queue, &x->waiter, 0, exchange_queue_key(x, request));
}

/* Which of the limits would have to be higher. */
static const char *limit_in_the_way(const struct proxy *p)
{
    const struct node_options *o = p->config.options;
    if (o->queue_max > 0 || shortage_text(p) != NULL)
        return "queue-max";
    if (router_is_full(p))
        return "requests-max";
    bool connections =
        o->replica_requests_max == 0 || o->replica_requests_max > o->upstream_connections_max;
    return connections ? "upstream-connections-max" : "replica-requests-max";
}

static void expired(struct deadline *d)
{
    struct exchange *x = CONTAINER_OF(d, struct exchange, queue_deadline);
    x->refusal = PROXY_REFUSED_QUEUE_TIMEOUT;
    x->limit = "queue-timeout";
    char text[EXCHANGE_LATE_TEXT];
    exchange_late_text(x, text);
    const char *shortage = shortage_text(x->proxy);
    if (shortage != NULL)
        (void)snprintf(text, sizeof text, "%s (%s).", shortage, x->limit);
    exchange_answer_error(x, 504, slice_of("", 0), "%s", text);
}

void exchange_queue(struct exchange *x, const struct node_request *request)
{
    struct proxy *p = x->proxy;
    if (!suspect_has_place(x) || queue_push(&p->exchanges.queue, &x->waiter, 0,
                                            exchange_queue_key(x, request), p->now_ms) != 0) {
        x->refusal = PROXY_REFUSED_QUEUE_FULL;
        x->limit = limit_in_the_way(p);
        x->retry_after_s = queue_retry_after_s(&p->exchanges.queue, p->now_ms);
        const char *shortage = shortage_text(p);
        exchange_answer_error(x, 429, slice_of("", 0), "%s and too many requests wait.",
                              shortage != NULL ? shortage : "Every replica is busy");
        return;
    }
    x->queue_deadline.expired = expired;
    deadline_resume(&p->limit[PROXY_QUEUE], &x->queue_deadline, x->waited_ms, p->now_ms);
    proxy_armed(p, &x->queue_deadline);
}

void exchange_queue_served(struct exchange *x)
{
    x->waited_ms += x->proxy->now_ms - x->waiter.since_ms;
    queue_take(&x->proxy->exchanges.queue, &x->waiter, x->proxy->now_ms);
    deadline_clear(&x->queue_deadline);
}

struct exchange *exchange_queue_next(const struct proxy *p, const struct queue_look *look)
{
    if (router_is_full(p))
        return NULL;
    struct queue_waiter *w = queue_look_next(&p->exchanges.queue, look);
    return w != NULL ? CONTAINER_OF(w, struct exchange, waiter) : NULL;
}

static void put(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_u64(w, value);
}

static void put_row(const struct proxy *p, struct json_writer *w, const struct exchange *x,
                    uint64_t count, uint64_t since_ms, struct slice what)
{
    struct slice model = slice_of("", 0);
    if (x->skimming && x->skim.understood)
        model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
    json_object_begin(w);
    json_key(w, "model");
    json_slice(w, model);
    json_key(w, "for");
    json_slice(w, what);
    put(w, "requests", count);
    put(w, "longest_ms", p->now_ms - since_ms);
    json_object_end(w);
}

/* Those that wait because of one that may be poison. */
static void put_suspects(const struct proxy *p, struct json_writer *w)
{
    const struct exchange *x;
    unsigned count = suspect_waiting(p, true, &x);
    if (x != NULL)
        put_row(p, w, x, count, x->suspect.since_ms, SLICE("a replica to itself"));
    count = suspect_waiting(p, false, &x);
    if (x != NULL)
        put_row(p, w, x, count, x->suspect.since_ms, SLICE("a replica without a suspect"));
}

/* One row each that would be looked at: the longest waiting of those that wait for the same. */
static void put_waiting(const struct proxy *p, struct json_writer *w)
{
    struct queue_look look = queue_look_begin();
    struct queue_waiter *first;
    json_key(w, "waiting");
    json_array_begin(w);
    while ((first = queue_look_next(&p->exchanges.queue, &look)) != NULL) {
        struct exchange *x = CONTAINER_OF(first, struct exchange, waiter);
        uint64_t count = 0;
        for (const struct queue_waiter *at = first; at != NULL; at = at->next)
            count++;
        put_row(p, w, x, count, first->since_ms, SLICE("room"));
        queue_pass(&look, first);
    }
    put_suspects(p, w);
    json_array_end(w);
}

void proxy_queue_write(const struct proxy *p, struct json_writer *w)
{
    const struct node_options *o = p->config.options;
    json_object_begin(w);
    put(w, "requests_in_flight", node_router_booked(p->config.router));
    put(w, "requests_max", o->requests_max);
    put(w, "replica_requests_max", o->replica_requests_max);
    put(w, "queue_length", p->exchanges.queue.length);
    put(w, "queue_max", p->exchanges.queue.length_max);
    put(w, "queue_timeout_ms", o->queue_timeout_ms);
    put(w, "queue_served", p->exchanges.queue.served);
    put(w, "queue_full", p->stats.requests_refused[PROXY_REFUSED_QUEUE_FULL]);
    put(w, "queue_timeouts", p->stats.requests_refused[PROXY_REFUSED_QUEUE_TIMEOUT]);
    put_waiting(p, w);
    json_object_end(w);
}

static void stop(struct exchange *x, const char *text)
{
    x->refusal = PROXY_REFUSED_STOPPING;
    x->client->last = true;
    exchange_answer_error(x, 503, slice_of("", 0), "%s", text);
}

void exchange_queue_stop(struct proxy *p)
{
    struct queue_look look = queue_look_begin();
    struct queue_waiter *w;
    while ((w = queue_look_next(&p->exchanges.queue, &look)) != NULL)
        stop(CONTAINER_OF(w, struct exchange, waiter),
             "The router stops, and no replica had room until now.");
    while (p->exchanges.suspects.first != NULL)
        stop(p->exchanges.suspects.first,
             "The router stops, and no replica could be used until now.");
}
