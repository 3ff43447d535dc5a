/* Passes each event of the network, the clock and the router to the right client, upstream or
 * replica. */
#include "node/proxy/proxy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/feeds.h"
#include "node/proxy/engine/prober.h"
#include "node/proxy/engine/publishers.h"
#include "node/proxy/engine/shortage.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/guard/door.h"
#include "node/proxy/guard/slow.h"
#include "node/proxy/guard/watch.h"
#include "node/proxy/own/local.h"
#include "node/proxy/own/models.h"

/* --- from clients --------------------------------------------------------------------------- */

static void handle_input(struct client *c, const struct client_input *in)
{
    if (in->stranger)
        door_refuse_stranger(c);
    else if (in->identified)
        door_identify(c);
    if (in->stranger || in->header)
        return;
    if (exchange_request(c, in))
        local_answer(c->exchange);
    if (in->refused == 0 || (in->head != NULL && c->exchange == NULL))
        return;
    struct exchange_refusal why = {.status = in->refused, .limit = in->limit, .text = in->refusal};
    exchange_refuse_for(c, &why);
}

/* Handles the client's stored bytes, then `bytes`, request by request, as far as their order
 * allows. */
static void take_requests(struct client *c, struct slice bytes)
{
    struct client_input in;
    client_feed(c, bytes);
    while (client_next(c, &in))
        handle_input(c, &in);
    if (!client_rest(c))
        exchange_drop(c, CLIENT_END_NO_MEMORY, false);
    else if (c->half_closed && (c->state == CLIENT_HEAD || c->state == CLIENT_BODY))
        exchange_drop(c, CLIENT_END_GONE, false); /* the rest of the request will not come */
}

static struct slice client_room(void *owner)
{
    struct client *c = owner;
    uint64_t expected = client_direct_bytes(c);
    struct slice room = slice_of(NULL, 0);
    if (expected > 0)
        room = exchange_body_room(c->exchange, expected);
    c->room = room.len > 0 ? room.at : NULL;
    return room;
}

static void client_received(void *owner, struct slice bytes, uint64_t now_ms)
{
    struct client *c = owner;
    if (c->state == CLIENT_CLOSING)
        return;
    c->proxy->now_ms = now_ms;
    slow_make_room(c);
    if (c->state == CLIENT_LINGER) {
        if (!client_linger(c, bytes.len))
            client_close(c, true);
        return;
    }
    if (bytes.at == c->room && c->exchange != NULL) { /* the network has read them straight into the
                                                       * body */
        c->room = NULL;
        c->remaining -= bytes.len;
        if (exchange_body_read(c->exchange, bytes.len, c->remaining == 0))
            local_answer(c->exchange);
        if (c->state == CLIENT_BODY)
            client_arm(c);
        slow_follow(c, bytes.len);
        return;
    }
    if (c->state == CLIENT_HEAD && c->in.len == 0)
        deadline_clear(&c->deadline);
    take_requests(c, bytes);
    slow_follow(c, bytes.len);
}

static void client_ended(void *owner, int err, uint64_t now_ms)
{
    struct client *c = owner;
    if (c->state == CLIENT_CLOSING || (BUG(GONE_KEPT) && c->exchange != NULL))
        return;
    c->proxy->now_ms = now_ms;
    if (err == 0 && client_half_close(c))
        return;
    exchange_drop(c, c->broken != CLIENT_END_DONE ? c->broken : CLIENT_END_GONE, false);
}

static void take_held(struct upstream *u);

/* Continues with the part of an answer that was received, but held back because the client was
 * slow. */
static void client_drained(struct exchange *x)
{
    struct upstream *u = x->now.upstream;
    exchange_client_drained(x);
    if (u != NULL && u->held_back && u->reading)
        take_held(u);
}

static void on_client_written(void *owner, int err, uint64_t now_ms)
{
    struct client *c = owner;
    if (c->state == CLIENT_CLOSING)
        return;
    c->proxy->now_ms = now_ms;
    if (err != 0) {
        exchange_drop(c, CLIENT_END_GONE, false);
    } else if (c->broken != CLIENT_END_DONE) {
        exchange_drop(c, c->broken, true);
    } else {
        client_written(c);
        if (c->exchange != NULL)
            client_drained(c->exchange);
    }
}

static void client_closed(void *owner)
{
    client_free(owner);
}

static const struct net_events client_events = {.room = client_room,
                                                .received = client_received,
                                                .ended = client_ended,
                                                .written = on_client_written,
                                                .closed = client_closed};

int proxy_accept(struct proxy *p, struct net_stream *stream, enum proxy_port port, const char *peer,
                 uint64_t now_ms)
{
    p->now_ms = now_ms;
    if (port == PROXY_PORT_EVENTS)
        return publishers_accept(p, stream, peer);
    struct client *c = client_new(p, stream, port, peer);
    if (c == NULL)
        return ERR_NOMEM;
    stream->events = &client_events;
    stream->owner = c;
    c->deadline.expired = slow_client_expired;
    c->upload.total.expired = slow_upload_expired;
    p->stats.connections_accepted++;
    p->config.net->read(stream, true);
    door_enter(c);
    if (c->state == CLIENT_HEAD)
        client_arm(c);
    return 0;
}

bool proxy_header_awaited(const struct net_stream *stream)
{
    const struct client *c = stream->owner;
    return c->awaits_header;
}

const char *proxy_peer(const struct net_stream *stream)
{
    const struct client *c = stream->owner;
    return c->peer;
}

/* --- from replicas -------------------------------------------------------------------------- */

static void fail_upstream(struct upstream *u, enum upstream_failure failure)
{
    struct exchange *x = u->exchange;
    failure = upstream_fail(u, failure);
    if (x != NULL)
        exchange_failed(x, failure);
}

static void on_upstream_connected(void *owner, int err, uint64_t now_ms)
{
    struct upstream *u = owner;
    if (u->state != UPSTREAM_CONNECTING)
        return;
    u->proxy->now_ms = now_ms;
    if (net_is_shortage(err) && !BUG(SHORTAGE_CHARGED)) {
        shortage_met(u->pool, err);
        shortage_full(u->pool);
        u->no_place = true;
        fail_upstream(u, UPSTREAM_NO_PLACE);
        return;
    }
    if (err != 0) {
        if (err == ERR_CLOSED)
            u->pool->refused_ms = now_ms;
        fail_upstream(u, UPSTREAM_CONNECT_FAILED);
        return;
    }
    upstream_connected(u);
    exchange_push(u->exchange);
}

/* Takes the answer from the received bytes and passes it on; output for the client is written at
 * once. `again`: continues with bytes held back earlier. */
static inline void take_answer(struct upstream *u, struct exchange *x, bool again)
{
    struct client *c = x->client;
    struct upstream_output out;
    bool malformed = again && !exchange_response_rest(x);
    while (!malformed && c->exchange == x && x->now.upstream == u && upstream_next(u, &out)) {
        malformed = out.malformed || !exchange_response(x, &out);
    }
    bool present = c->exchange == x && x->now.upstream == u;
    if (present && !malformed)
        exchange_flush(x);
    if ((!upstream_rest(u) || malformed) && present)
        fail_upstream(u, UPSTREAM_MALFORMED);
}

static void upstream_received(void *owner, struct slice bytes, uint64_t now_ms)
{
    struct upstream *u = owner;
    if (u->state == UPSTREAM_CLOSING)
        return;
    u->proxy->now_ms = now_ms;
    if (u->state != UPSTREAM_BUSY && BUG(UNASKED_SERVED)) {
        CHECK(buf_append_slice(&u->in, bytes) == 0);
        return;
    }
    if (u->state != UPSTREAM_BUSY) { /* an answer without a request */
        fail_upstream(u, UPSTREAM_MALFORMED);
        return;
    }
    upstream_feed(u, bytes);
    if (u->exchange->now.first_token)
        u->pool->token_ms = u->proxy->engines.pools[u->exchange->now.decision.replica].token_ms =
            now_ms;
    take_answer(u, u->exchange, false);
}

static void take_held(struct upstream *u)
{
    upstream_resume(u);
    upstream_again(u);
    take_answer(u, u->exchange, true);
}

static void on_upstream_ended(void *owner, int err, uint64_t now_ms)
{
    struct upstream *u = owner;
    if (u->state == UPSTREAM_CLOSING)
        return;
    u->proxy->now_ms = now_ms;
    struct exchange *x = u->exchange;
    if (u->state == UPSTREAM_IDLE && now_ms - u->active_ms < UPSTREAM_EARLY_MS)
        prober_hung_up(u->proxy, (unsigned)(u->pool - u->proxy->engines.pools));
    if (err == 0 && upstream_ended(u))
        exchange_ended(x);
    else
        fail_upstream(u, UPSTREAM_BROKEN);
}

static void on_upstream_written(void *owner, int err, uint64_t now_ms)
{
    struct upstream *u = owner;
    u->proxy->now_ms = now_ms;
    if (upstream_written(u, err))
        exchange_push(u->exchange);
}

static void upstream_closed(void *owner)
{
    upstream_free(owner);
}

static const struct net_events upstream_events = {.connected = on_upstream_connected,
                                                  .received = upstream_received,
                                                  .ended = on_upstream_ended,
                                                  .written = on_upstream_written,
                                                  .closed = upstream_closed};

static void upstream_expired(struct deadline *d)
{
    struct upstream *u = CONTAINER_OF(d, struct upstream, deadline);
    switch (u->state) {
    case UPSTREAM_IDLE:
        (void)upstream_fail(u, UPSTREAM_BROKEN);
        return;
    case UPSTREAM_CONNECTING:
        (void)exchange_time_left(u->exchange);
        u->proxy->stats.upstream_timeouts++;
        fail_upstream(u, UPSTREAM_CONNECT_FAILED);
        return;
    case UPSTREAM_BUSY:
        if (u->held_back) {
            take_held(u);
            return;
        }
        if (u->write_failed && !u->in_body) {
            fail_upstream(u, UPSTREAM_BROKEN);
            return;
        }
        if (exchange_time_left(u->exchange))
            return;
        u->proxy->stats.upstream_timeouts++;
        fail_upstream(u, UPSTREAM_TIMEOUT);
        return;
    case UPSTREAM_CLOSING:
        return;
    }
}

static void request_expired(struct deadline *d)
{
    exchange_late(CONTAINER_OF(d, struct exchange, request_deadline));
}

/* --- replicas come and go ------------------------------------------------------------------- */

/* Opens a replica's pool. Returns false without memory; the tick tries again. */
static bool open_pool(struct proxy *p, unsigned replica, const struct node_address *address)
{
    struct pool *pool = &p->engines.pools[replica];
    if (p->engines.pool_count <= replica)
        p->engines.pool_count = replica + 1;
    bool open = pool->proxy != NULL || pool_open(pool, p, address) == 0;
    p->engines.pools_missing |= !open;
    return open;
}

/* Opens the replica's pool and begins to probe. Without a valid address a replica is never probed;
 * a request sent there finds the port refused. */
static void begin_replica(struct proxy *p, unsigned replica)
{
    struct node_address address;
    if (node_router_rank(p->config.router, replica) >= 0)
        return; /* the address has a pool for all ranks */
    if (node_replica_address(node_router_replica_name(p->config.router, replica), &address) != 0)
        address = (struct node_address){.host = "0.0.0.0"};
    if (open_pool(p, replica, &address) && address.port != 0)
        prober_begin(p, replica);
}

static void begin_missing(struct proxy *p)
{
    if (!p->engines.pools_missing)
        return;
    p->engines.pools_missing = false;
    for (unsigned i = 0; i < p->engines.pool_count; i++) {
        if (p->engines.pools[i].proxy == NULL && node_router_replica_present(p->config.router, i))
            begin_replica(p, i);
    }
}

void proxy_replica(struct proxy *p, unsigned replica, bool present, uint64_t now_ms)
{
    p->now_ms = now_ms;
    struct slice name = node_router_replica_name(p->config.router, replica);
    struct node_address address;
    bool rank = node_router_rank(p->config.router, replica) >= 0;
    bool good = rank || node_replica_address(name, &address) == 0;
    if (good)
        log_event(p->config.log, LOG_INFO, present ? "replica_added" : "replica_removed",
                  LOG_STR("replica", name));
    else if (present)
        log_event(p->config.log, LOG_ERROR, "replica_refused", LOG_STR("replica", name),
                  LOG_CSTR("error", "its name, which another router sent, is not HOST:PORT"));
    if (present) {
        begin_replica(p, replica);
    } else {
        prober_end(p, replica);
        if (p->engines.pools[replica].proxy != NULL)
            upstream_flush_pool(&p->engines.pools[replica]);
    }
}

bool proxy_replica_forgotten(struct proxy *p, unsigned replica)
{
    struct pool *pool = &p->engines.pools[replica];
    publishers_forget(p, replica);
    feeds_forget(p, replica);
    if (pool->proxy == NULL)
        return true;
    upstream_flush_pool(pool);
    if (pool->open_count > 0 || pool->fetches > 0)
        return false;
    pool_close(pool);
    return true;
}

/* --- time ----------------------------------------------------------------------------------- */

void proxy_run(struct proxy *p, uint64_t now_ms)
{
    p->now_ms = now_ms;
    while (p->clients.waiting != NULL) {
        struct client *c = p->clients.waiting;
        client_stop_waiting(c);
        if (c->state == CLIENT_HEAD)
            take_requests(c, slice_of(NULL, 0));
    }
    if (p->exchanges.lists_due)
        deadline_run(&p->limit[PROXY_LISTS], UINT64_MAX);
    p->exchanges.lists_due = false;
    if (admission_settle(&p->admission))
        exchange_queue_run(p);
}

/* After a pause (a stopped process, a suspended machine) the answers that arrived meanwhile are
 * still unread. Nobody was slow, so all time limits move by the pause. No probe begins in this
 * tick, because kept-alive connections may have closed meanwhile. A loop that is late again and
 * again is only slow. */
void proxy_tick(struct proxy *p, uint64_t now_ms)
{
    p->now_ms = now_ms;
    uint64_t late = now_ms - p->ticked_ms;
    p->paused = late >= PROXY_PAUSE_MS && !p->paused;
    p->ticked_ms = now_ms;
    p->admission.due = true; /* a replica may have come up */
    if (p->paused)
        p->resumed_ms = now_ms;
    begin_missing(p);
    shortage_tick(p);
    budget_part(&p->admission.budget, node_router_others(p->config.router) + 1);
    if (p->paused) {
        slow_shift(p, late);
        for (unsigned i = 0; i < PROXY_LIMITS; i++)
            deadline_shift(&p->limit[i], late);
    }
    if (now_ms >= p->due_ms)
        proxy_limits_run(p);
    if (!p->paused) {
        prober_tick(p);
        watch_tick(p);
        publishers_tick(p);
        feeds_tick(p);
    }
}

/* --- the beginning and the end -------------------------------------------------------------- */

int proxy_create(struct proxy **out, const struct proxy_config *config, uint64_t now_ms)
{
    struct proxy *p = calloc(1, sizeof *p);
    if (p == NULL)
        return ERR_NOMEM;
    /* Pages for unused replicas are never touched. */
    p->engines.pools = calloc(NODE_REPLICAS_MAX, sizeof p->engines.pools[0]);
    if (p->engines.pools == NULL) {
        free(p);
        return ERR_NOMEM;
    }
    p->config = *config;
    p->now_ms = p->started_ms = p->ticked_ms = now_ms;
    p->due_ms = UINT64_MAX;
    p->engines.events = &upstream_events;
    p->engines.expired = upstream_expired;
    p->exchanges.expired = request_expired;
    admission_init(&p->admission, config->router, config->access, config->options, &config->secret);
    memcpy(p->exchanges.id_key, config->random, sizeof p->exchanges.id_key);
    (void)snprintf(p->via, sizeof p->via, HTTP_VIA_ROUTER "%016" PRIx64, config->random[2]);
    (void)snprintf(p->identity, sizeof p->identity, "%s%s%s", p->via,
                   config->name != NULL ? " " : "", config->name != NULL ? config->name : "");
    segment_pool_init(&p->segments, config->options->buffered_bytes_max);
    buf_init(&p->scratch, 0);
    proxy_limits_begin(p);
    if (door_init(p) != 0 || feeds_open(p) != 0 || publishers_open(p) != 0) {
        feeds_close(p);
        door_free(p);
        node_aliases_free(&p->aliases);
        free(p->engines.pools);
        free(p);
        return ERR_NOMEM;
    }
    *out = p;
    return 0;
}

int proxy_start(struct proxy *p, uint64_t now_ms)
{
    p->now_ms = p->ticked_ms = now_ms;
    return prober_start(p);
}

void proxy_drain(struct proxy *p, bool closed, uint64_t now_ms)
{
    p->now_ms = now_ms;
    bool news = !p->draining || (closed && !p->closed);
    p->draining = true;
    p->closed |= closed;
    for (struct client *c = p->clients.all; news && c != NULL; c = c->next) {
        struct exchange *x = c->exchange;
        /* A prepared head, sent or held, tells the client that the connection will take another
         * request. */
        bool promised = x != NULL && (x->now.status != 0 || x->alive);
        if (c->port == PROXY_PORT_CLIENT && x != NULL && !promised)
            c->last = true;
        else if (c->port == PROXY_PORT_CLIENT && x != NULL)
            x->now.last_asked = true; /* counts if the held answer is dropped */
        if (p->closed && BUG(DRAIN_CUTS) && c->exchange != NULL)
            exchange_drop(c, CLIENT_END_STOPPED, false);
        if (p->closed)
            client_drain(c);
    }
}

unsigned proxy_clients_open(const struct proxy *p)
{
    return (unsigned)p->stats.clients_open;
}

void proxy_stop(struct proxy *p, uint64_t now_ms)
{
    p->now_ms = now_ms;
    prober_stop(p);
    publishers_stop(p);
    exchange_queue_stop(p);
    for (struct client *c = p->clients.all; c != NULL; c = c->next) {
        if (c->exchange != NULL && (exchange_is_committed(c->exchange) || c->exchange->alive))
            exchange_say_cut(c->exchange, 503, "The router is stopping: the answer is cut.");
        exchange_drop(c, CLIENT_END_STOPPED, false);
    }
    for (unsigned i = 0; i < p->engines.pool_count; i++) {
        if (p->engines.pools[i].proxy == NULL)
            continue;
        upstream_flush_pool(&p->engines.pools[i]);
        pool_close(&p->engines.pools[i]);
    }
}

void proxy_destroy(struct proxy *p)
{
    if (p == NULL)
        return;
    CHECK(p->clients.all == NULL && p->engines.prober == NULL);
    door_free(p);
    publishers_close(p);
    feeds_close(p);
    exchange_pool_free(p);
    models_forget(p);
    node_aliases_free(&p->aliases);
    segment_pool_free(&p->segments);
    buf_free(&p->scratch);
    free(p->engines.pools);
    free(p);
}

unsigned proxy_admin_connections_max(const struct proxy *p)
{
    return p->clients.door.admin_max;
}

uint64_t proxy_now_ms(const struct proxy *p)
{
    return p->now_ms;
}

struct proxy_stats *proxy_stats(struct proxy *p)
{
    return &p->stats;
}

const struct proxy_timing *proxy_timing(const struct proxy *p)
{
    return &p->timing;
}

uint64_t proxy_waiting(const struct proxy *p)
{
    return p->admission.queue.lines[QUEUE_ROOM].length;
}

uint64_t proxy_body_bytes(const struct proxy *p)
{
    return p->segments.bytes;
}
