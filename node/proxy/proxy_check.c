/* Asserts the invariants between events. */
#include "base/check.h"
#include "node/proxy/engine/publishers.h"
#include "node/proxy/exchange/exchange.h"

static void upstream_check(const struct upstream *u)
{
    CHECK((u->state == UPSTREAM_IDLE) == (u->exchange == NULL));
    CHECK(u->exchange == NULL || u->exchange->now.upstream == u);
    if (u->state != UPSTREAM_BUSY)
        return;
    /* Reading stops only while the client is slow, or while a received part is not decoded yet. */
    CHECK(u->reading || client_congested(u->exchange->client) || u->held_back);
    CHECK(!u->held_back || (!u->reading && u->exchange->now.unpack != NULL));
    CHECK(!u->held_back || (u->deadline.next == NULL) == client_congested(u->exchange->client));
    /* All unsent bytes of the request's body are in memory. */
    const struct body *b = u->request->body;
    uint64_t held = 0;
    for (const struct segment *s = u->segment != NULL ? u->segment : b->first; s != NULL;
         s = s->next)
        held += s->len;
    CHECK(u->request_sent || held - u->segment_sent == b->bytes - u->body_sent);
}

static void deadlines_check(const struct proxy *p)
{
    for (unsigned i = 0; i < PROXY_LIMITS; i++) {
        const struct deadline_queue *q = &p->limit[i];
        uint64_t before_ms = p->due_ms;
        for (const struct deadline *d = deadline_first(q); d; d = deadline_behind(q, d)) {
            CHECK(before_ms <= d->at_ms);
            before_ms = d->at_ms;
        }
    }
}

static void attempt_check(const struct exchange *x)
{
    const struct attempt *a = &x->now;
    bool begun = a->phase >= ATTEMPT_HELD;
    CHECK((a->phase >= ATTEMPT_SENT) == (a->upstream != NULL));
    CHECK(a->upstream == NULL || (a->upstream->exchange == x && a->upstream->in_body == begun));
    CHECK(a->phase != ATTEMPT_CHOSEN || x->deadline.next != NULL);
    CHECK(begun || a->booked == (a->phase != ATTEMPT_NONE));
    /* An error goes to the client unbooked if no other replica could be booked. */
    CHECK(!begun || a->booked || a->status >= 400 || a->error_counted);
    /* Nothing is left of the previous attempt. */
    CHECK(x->endless || begun == (a->status != 0));
    CHECK(begun || (!a->first_token && a->first_byte_ms == 0 && a->outcome == NODE_OUTCOME_OK &&
                    a->held.len == 0 && a->unpack == NULL));
    CHECK(!exchange_is_committed(x) || (a->hold == EXCHANGE_HOLD_NONE && a->held.len == 0));
}

void proxy_check(const struct proxy *p)
{
    uint64_t clients = 0, exchanges = 0, waiting = 0, kept = 0, standing[CLIENT_STANDINGS] = {0};
    deadlines_check(p);
    queue_check(&p->admission.queue);
    if (p->config.access != NULL)
        access_check(p->config.access);
    for (const struct client *c = p->clients.all; c != NULL; c = c->next) {
        const struct exchange *x = c->exchange;
        CHECK(!c->taking && (c->state != CLIENT_CLOSING || x == NULL));
        CHECK(x == NULL || x->client == c);
        CHECK(x == NULL || x->kept.open == (x->kept.bytes.cap > 0));
        if (x != NULL)
            attempt_check(x);
        CHECK((c->state == CLIENT_CLOSING) <= (c->standing == CLIENT_OUTSIDE));
        standing[c->standing]++;
        CHECK(x == NULL || !queue_waits(&x->admission.waiter) ||
              (!x->now.booked && x->now.upstream == NULL));
        waiting += x != NULL && queue_waits(&x->admission.waiter);
        bool is_kept = x != NULL && x->admission.kept != NODE_COMPANY_ANY;
        CHECK(!is_kept || x->now.booked);
        clients++;
        exchanges += x != NULL;
        kept += is_kept;
    }
    CHECK(clients == p->stats.connections_open && exchanges == p->stats.requests_open);
    for (unsigned i = CLIENT_IN; i < CLIENT_STANDINGS; i++)
        CHECK(standing[i] == p->clients.door.standing[i]);
    CHECK(waiting == p->admission.queue.length);
    kept += p->admission.kept != 0;
    CHECK(kept == node_router_kept(p->config.router));
    CHECK(p->clients.gathered.owner == NULL);
    unsigned without_place = 0;
    for (unsigned i = 0; i < p->engines.pool_count; i++) {
        unsigned open = 0;
        without_place += p->engines.pools[i].no_place;
        for (const struct upstream *u = p->engines.pools[i].all; u != NULL; u = u->all_next) {
            upstream_check(u);
            open++;
        }
        CHECK(open == p->engines.pools[i].open_count);
        for (const struct upstream *u = p->engines.pools[i].idle; u != NULL; u = u->next)
            CHECK(u->state == UPSTREAM_IDLE && (u->next == NULL || u->next->prev == u));
    }
    CHECK(without_place == p->engines.without_place);
    publishers_check(p);
}
