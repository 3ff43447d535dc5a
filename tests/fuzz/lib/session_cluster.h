/* The network between the routers in the fuzz target of whole sessions: datagrams and calls, which
 * arrive, are lost, doubled, changed or invented. Functions are static. */
#ifndef TESTS_FUZZ_LIB_SESSION_CLUSTER_H
#define TESTS_FUZZ_LIB_SESSION_CLUSTER_H

#include "tests/fuzz/lib/session.h"

static struct gossip_address address_of(unsigned router)
{
    return (struct gossip_address){
        .ip = {10, 9, 0, (uint8_t)(router + 1)}, .port = 7000, .family = 4};
}

static struct node_replication *replication(struct session *s, unsigned router)
{
    return s->routers[router].up ? s->routers[router].world.node->replication : NULL;
}

static uint64_t now_us(const struct router *r)
{
    return r->world.now_ms * 1000;
}

/* --- a router's requests to the network ------------------------------------------------------ */

static void packet_put(struct session *s, unsigned to, struct slice bytes)
{
    for (unsigned i = 0; i < PACKETS_MAX; i++) {
        struct packet *k = &s->packets[i];
        if (k->bytes.len > 0)
            continue;
        k->to = to;
        CHECK(buf_append_slice(&k->bytes, bytes) == 0);
        return;
    } /* otherwise lost */
}

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    struct router *r = context;
    unsigned other = 1 - r->number;
    struct gossip_address there = address_of(other);
    if (to->family == 4 && memcmp(to->ip, there.ip, 4) == 0 && r->session->routers[other].up)
        packet_put(r->session, other, slice_of((const char *)bytes, len));
}

static void on_random(void *context, void *out, size_t len)
{
    struct router *r = context;
    uint8_t *at = out;
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)prng_next(&r->session->random);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    struct router *r = context;
    struct session *s = r->session;
    (void)to;
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        struct call *c = &s->calls[i];
        if (c->used)
            continue;
        *c = (struct call){
            .used = true, .from = r->number, .to = 1 - r->number, .id = id, .kind = kind};
        CHECK(buf_append_slice(&c->request, request) == 0);
        return 0;
    }
    return ERR_UNREACHABLE;
}

/* --- calls ----------------------------------------------------------------------------------- */

static void call_end(struct session *s, struct call *c, int err)
{
    struct router *r = &s->routers[c->from];
    struct call ended = *c;
    *c = (struct call){0};
    if (ended.serve != NULL)
        node_replication_serve_end(ended.serve);
    buf_free(&ended.request);
    if (r->up)
        node_replication_answered(r->world.node->replication, ended.id, err, now_us(r));
}

/* The next step of a call: the request, a chunk of the answer, the end. */
static void call_step(struct session *s, struct call *c, bool changed)
{
    struct node_replication *asks = replication(s, c->from), *serves = replication(s, c->to);
    if (asks == NULL || serves == NULL) {
        call_end(s, c, ERR_CLOSED);
        return;
    }
    if (c->serve == NULL) {
        if (changed)
            mutate(s, &c->request, 0);
        int err = node_replication_serve(serves, c->kind, buf_slice(&c->request),
                                         now_us(&s->routers[c->to]), &c->serve);
        if (err != 0)
            call_end(s, c, ERR_CLOSED);
        return;
    }
    struct buf chunk = {0};
    int more = node_replication_serve_next(serves, c->serve, &chunk);
    int err = more < 0 ? ERR_CLOSED : 0;
    if (more == 1) {
        if (changed)
            mutate(s, &chunk, 0);
        char *copy = malloc(chunk.len + 1);
        CHECK(copy != NULL);
        memcpy(copy, chunk.at, chunk.len);
        err = node_replication_answer(asks, c->id, slice_of(copy, chunk.len),
                                      now_us(&s->routers[c->from]));
        free(copy);
    }
    buf_free(&chunk);
    if (more != 1 || err != 0)
        call_end(s, c, err);
}

/* --- packets --------------------------------------------------------------------------------- */

static void packet_give(struct session *s, const struct packet *k)
{
    struct router *r = &s->routers[k->to];
    struct gossip_address from = address_of(1 - k->to);
    if (!r->up || !s->clustered || k->bytes.len == 0)
        return;
    uint8_t *copy = malloc(k->bytes.len);
    CHECK(copy != NULL);
    memcpy(copy, k->bytes.at, k->bytes.len);
    node_replication_datagram(r->world.node->replication, &from, copy, k->bytes.len, now_us(r));
    free(copy);
}

/* Delivers everything on the way. */
static void cluster_flow(struct session *s)
{
    for (unsigned i = 0; i < PACKETS_MAX; i++) {
        struct packet k = s->packets[i];
        s->packets[i] = (struct packet){0};
        packet_give(s, &k);
        buf_free(&k.bytes);
    }
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        for (unsigned n = 0; n < 4 && s->calls[i].used && !s->calls[i].deaf; n++)
            call_step(s, &s->calls[i], false);
    }
}

/* Call after each event. */
static void cluster_run(struct session *s)
{
    for (unsigned i = 0; i < s->router_count; i++) {
        struct router *r = &s->routers[i];
        if (s->clustered)
            node_replication_run(r->world.node->replication, now_us(r));
        proxy_world_settle(&r->world);
    }
}

static void step_packet(struct session *s)
{
    unsigned b = byte(s);
    struct packet *k = &s->packets[b / 8 % PACKETS_MAX];
    switch (b % 8) {
    case 0:
    case 1:
        packet_give(s, k); /* may come again */
        break;
    case 2:
        packet_give(s, k);
        buf_free(&k->bytes);
        break;
    case 3:
        buf_free(&k->bytes);
        break;
    case 4:
        if (k->bytes.len > 0)
            mutate(s, &k->bytes, 0);
        packet_give(s, k);
        buf_free(&k->bytes);
        break;
    case 5:
        s->held = !s->held;
        break;
    case 6: {
        struct slice raw = piece(s);
        struct packet made = {.to = b / 8 % ROUTERS};
        CHECK(buf_append_slice(&made.bytes, raw) == 0);
        packet_give(s, &made);
        buf_free(&made.bytes);
        break;
    }
    default:
        cluster_flow(s);
    }
}

static void step_call(struct session *s)
{
    unsigned b = byte(s);
    struct call *c = &s->calls[b / 8 % CALLS_MAX];
    if (!c->used)
        return;
    switch (b % 8) {
    case 0:
        call_end(s, c, ERR_CLOSED);
        break;
    case 1:
        c->deaf = true;
        break;
    case 2:
    case 3:
    case 4:
        s->spoiled = true;
        call_step(s, c, true);
        break;
    default:
        call_step(s, c, false);
    }
}

static void cluster_close(struct session *s)
{
    for (unsigned i = 0; i < PACKETS_MAX; i++)
        buf_free(&s->packets[i].bytes);
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        if (s->calls[i].used)
            call_end(s, &s->calls[i], ERR_CLOSED);
    }
}

#endif
