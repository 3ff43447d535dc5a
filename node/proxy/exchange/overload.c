/* Requests for which there is no replica now: they wait in the queue, and are answered where it is
 * full or their time is up. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/json_write.h"
#include "node/proxy/engine/shortage.h"
#include "node/proxy/exchange/suspect.h"

/* What those of each class wait for. */
static const struct {
    enum proxy_limit limit; /* of their time */
    const char *what;       /* as operators see it */
    const char *stopping;   /* of the answer where the router stops */
} classes[QUEUE_CLASSES] = {
    [QUEUE_ALONE] = {PROXY_QUEUE_ALONE, "a replica to itself",
                     "The router stops, and no replica could be used until now."},
    [QUEUE_APART] = {PROXY_QUEUE_APART, "a replica without a suspect",
                     "The router stops, and no replica could be used until now."},
    [QUEUE_ROOM] = {PROXY_QUEUE, "room", "The router stops, and no replica had room until now."},
};

enum queue_class exchange_queue_class(const struct exchange *x)
{
    if (x->plan.err == ERR_AGAIN)
        return QUEUE_ROOM;
    return x->suspect.company == NODE_COMPANY_ALONE ? QUEUE_ALONE : QUEUE_APART;
}

/* The same for those that one replica may serve as well as another. */
static uint64_t key_of(const struct exchange *x, const struct node_request *request)
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
    return p->exchanges.queue.lines[QUEUE_ROOM].length > 0 &&
           queue_has_waiters(&p->exchanges.queue, &x->waiter, QUEUE_ROOM, key_of(x, request));
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

static void room_late(struct deadline *d)
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

void exchange_queue(struct exchange *x, const struct node_request *request,
                    void (*over)(struct deadline *d))
{
    struct proxy *p = x->proxy;
    struct queue *q = &p->exchanges.queue;
    enum queue_class class = exchange_queue_class(x);
    if (queue_push(q, &x->waiter, class, key_of(x, request), p->now_ms) != 0) {
        x->refusal = PROXY_REFUSED_QUEUE_FULL;
        x->limit = limit_in_the_way(p);
        x->retry_after_s = queue_retry_after_s(q, class, p->now_ms);
        const char *shortage = shortage_text(p);
        exchange_answer_error(x, 429, slice_of("", 0), "%s and too many requests wait.",
                              shortage != NULL ? shortage : "Every replica is busy");
        return;
    }
    uint64_t waited_ms = class == QUEUE_ALONE ? suspect_waited_ms(x) : x->waited_ms[class];
    x->queue_deadline.expired = class == QUEUE_ROOM ? room_late : over;
    deadline_resume(&p->limit[classes[class].limit], &x->queue_deadline, waited_ms, p->now_ms);
    proxy_armed(p, &x->queue_deadline);
}

void exchange_queue_served(struct exchange *x)
{
    x->waited_ms[x->waiter.class] += x->proxy->now_ms - x->waiter.since_ms;
    queue_take(&x->proxy->exchanges.queue, &x->waiter, x->proxy->now_ms);
    deadline_clear(&x->queue_deadline);
}

struct exchange *exchange_queue_next(const struct proxy *p, const struct queue_look *look)
{
    struct queue_waiter *w = queue_look_next(&p->exchanges.queue, look);
    if (w == NULL || (w->class == QUEUE_ROOM && router_is_full(p)))
        return NULL;
    return CONTAINER_OF(w, struct exchange, waiter);
}

static void put(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_u64(w, value);
}

/* Of those that wait for the same: `first` has waited longest. */
static void put_lane(const struct proxy *p, struct json_writer *w, const struct queue_waiter *first)
{
    const struct exchange *x = CONTAINER_OF(first, const struct exchange, waiter);
    struct slice model = slice_of("", 0);
    uint64_t count = 0;
    for (const struct queue_waiter *at = first; at != NULL; at = at->next)
        count++;
    if (x->skimming && x->skim.understood)
        model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
    json_object_begin(w);
    json_key(w, "model");
    json_slice(w, model);
    json_key(w, "for");
    json_slice(w, slice_of_cstr(classes[first->class].what));
    put(w, "requests", count);
    put(w, "longest_ms", p->now_ms - first->since_ms);
    json_object_end(w);
}

static void put_waiting(const struct proxy *p, struct json_writer *w)
{
    struct queue_look look = queue_look_begin();
    struct queue_waiter *first;
    json_key(w, "waiting");
    json_array_begin(w);
    while ((first = queue_look_next(&p->exchanges.queue, &look)) != NULL) {
        put_lane(p, w, first);
        queue_pass(&look, first);
    }
    json_array_end(w);
}

void proxy_queue_write(const struct proxy *p, struct json_writer *w)
{
    const struct node_options *o = p->config.options;
    const struct queue *q = &p->exchanges.queue;
    json_object_begin(w);
    put(w, "requests_in_flight", node_router_booked(p->config.router));
    put(w, "requests_max", o->requests_max);
    put(w, "replica_requests_max", o->replica_requests_max);
    put(w, "queue_length", q->lines[QUEUE_ROOM].length);
    put(w, "queue_max", q->length_max);
    put(w, "queue_timeout_ms", o->queue_timeout_ms);
    put(w, "queue_served", q->lines[QUEUE_ROOM].served);
    put(w, "queue_full", p->stats.requests_refused[PROXY_REFUSED_QUEUE_FULL]);
    put(w, "queue_timeouts", p->stats.requests_refused[PROXY_REFUSED_QUEUE_TIMEOUT]);
    put_waiting(p, w);
    json_object_end(w);
}

void exchange_queue_stop(struct proxy *p)
{
    struct queue_look look = queue_look_begin();
    struct queue_waiter *w;
    while ((w = queue_look_next(&p->exchanges.queue, &look)) != NULL) {
        struct exchange *x = CONTAINER_OF(w, struct exchange, waiter);
        x->refusal = PROXY_REFUSED_STOPPING;
        x->client->last = true;
        exchange_answer_error(x, 503, slice_of("", 0), "%s", classes[w->class].stopping);
    }
}
