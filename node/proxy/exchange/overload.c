/* Queues requests without a free replica, and answers them if the queue is full or the longest wait
 * is over. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "base/json_write.h"
#include "node/proxy/engine/shortage.h"

/* The classes of waiting requests. */
static const struct {
    enum proxy_limit limit; /* limit of the wait */
    const char *what;       /* the awaited event, for operators */
} classes[QUEUE_CLASSES] = {
    [QUEUE_ALONE] = {PROXY_QUEUE_ALONE, "a replica to itself"},
    [QUEUE_APART] = {PROXY_QUEUE_APART, "a replica without a suspect"},
    [QUEUE_ROOM] = {PROXY_QUEUE, "room"},
};

/* Returns the setting to raise for fewer refusals. */
static const char *limit_in_the_way(const struct proxy *p)
{
    const struct node_options *o = p->config.options;
    if (o->queue_max > 0 || shortage_text(p) != NULL)
        return "queue-max";
    if (admission_is_full(&p->admission))
        return "requests-max";
    bool connections =
        o->replica_requests_max == 0 || o->replica_requests_max > o->upstream_connections_max;
    return connections ? "upstream-connections-max" : "replica-requests-max";
}

static void room_late(struct deadline *d)
{
    struct exchange *x = CONTAINER_OF(d, struct exchange, admission.deadline);
    unsigned status = exchange_because(x, REFUSED_QUEUE_TIMEOUT);
    char text[EXCHANGE_LATE_TEXT];
    exchange_late_text(x, text);
    const char *shortage = shortage_text(x->proxy);
    if (shortage != NULL)
        (void)snprintf(text, sizeof text, "%s (%s).", shortage, x->limit);
    exchange_answer_error(x, status, slice_of("", 0), "%s", text);
}

void exchange_queue(struct exchange *x, void (*over)(struct deadline *d))
{
    struct proxy *p = x->proxy;
    struct deadline *d = &x->admission.deadline;
    enum proxy_limit limit = classes[x->plan.class].limit;
    d->expired = x->plan.class == QUEUE_ROOM ? room_late : over;
    exchange_trace_queued(x);
    deadline_resume(&p->limit[limit], d, x->plan.waited_ms, p->now_ms);
    proxy_armed(p, d);
}

void exchange_queue_full(struct exchange *x)
{
    const char *shortage = shortage_text(x->proxy);
    x->refusal = REFUSED_QUEUE_FULL;
    x->limit = limit_in_the_way(x->proxy);
    x->retry_after_s = x->plan.retry_after_s;
    exchange_answer_error(x, 429, slice_of("", 0), "%s and too many requests wait.",
                          shortage != NULL ? shortage : "Every replica is busy");
}

static void put(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_u64(w, value);
}

/* Writes the waiters with the same condition; `first` has waited longest. */
static void put_lane(const struct proxy *p, struct json_writer *w, const struct queue_waiter *first)
{
    const struct exchange *x = CONTAINER_OF(first, const struct exchange, admission.waiter);
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
    struct queue_look look = {0};
    struct queue_waiter *first;
    json_key(w, "waiting");
    json_array_begin(w);
    while ((first = queue_look_next(&p->admission.queue, &look)) != NULL) {
        put_lane(p, w, first);
        queue_pass(&look, first);
    }
    json_array_end(w);
}

void proxy_queue_write(const struct proxy *p, struct json_writer *w)
{
    const struct node_options *o = p->config.options;
    const struct queue *q = &p->admission.queue;
    json_object_begin(w);
    put(w, "requests_in_flight", node_router_booked(p->config.router));
    put(w, "requests_max", o->requests_max);
    put(w, "replica_requests_max", o->replica_requests_max);
    put(w, "queue_length", q->lines[QUEUE_ROOM].length);
    put(w, "queue_max", q->length_max);
    put(w, "queue_timeout_ms", o->queue_timeout_ms);
    put(w, "queue_served", q->lines[QUEUE_ROOM].served);
    put(w, "queue_full", p->stats.requests_refused[REFUSED_QUEUE_FULL]);
    put(w, "queue_timeouts", p->stats.requests_refused[REFUSED_QUEUE_TIMEOUT]);
    put_waiting(p, w);
    json_object_end(w);
}

void exchange_queue_stop(struct proxy *p)
{
    struct queue_look look = {0};
    struct queue_waiter *w;
    while ((w = queue_look_next(&p->admission.queue, &look)) != NULL) {
        struct exchange *x = CONTAINER_OF(w, struct exchange, admission.waiter);
        unsigned status = exchange_because(x, REFUSED_STOPPING);
        x->client->last = true;
        exchange_answer_error(x, status, slice_of("", 0),
                              "The router is stopping, and no replica %s in time.",
                              w->class == QUEUE_ROOM ? "had room" : "could be used");
    }
}
