#include "tests/lib/linked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/prng.h"
#include "gossip/call.h"

enum { READY_MAX_S = 60 };

#define WALL_MS UINT64_C(1800000000000)

/* A datagram or a call under way. The delay is the same for all, so the queue is in order. */
struct flight {
    struct flight *next;
    uint64_t at_us;
    unsigned from, to;
    bool call;
    uint32_t call_id;
    uint8_t kind;
    size_t len;
    uint8_t bytes[];
};

struct router {
    struct linked *linked;
    unsigned number;
    struct node *node; /* its replication is NULL: it knows nobody */
};

struct linked {
    unsigned count;
    uint64_t now_us, start_us, delay_us;
    struct gossip_keyring keyring;
    struct prng prng;
    struct flight *first, *last;
    struct router routers[LINKED_MAX];
};

static struct gossip_address address_of(unsigned number)
{
    return (struct gossip_address){
        .ip = {10, 0, 0, 1}, .port = (uint16_t)(1 + number), .family = 4};
}

static struct flight *launch(struct router *from, const struct gossip_address *to,
                             struct slice bytes)
{
    struct linked *l = from->linked;
    if (to->port == 0 || to->port > l->count)
        return NULL;
    struct flight *f = calloc(1, sizeof *f + bytes.len);
    CHECK(f != NULL);
    f->at_us = l->now_us + l->delay_us;
    f->from = from->number;
    f->to = to->port - 1u;
    f->len = bytes.len;
    if (bytes.len > 0)
        memcpy(f->bytes, bytes.at, bytes.len);
    *(l->last == NULL ? &l->first : &l->last->next) = f;
    l->last = f;
    return f;
}

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    (void)launch(context, to, slice_of((const char *)bytes, len));
}

static void on_random(void *context, void *out, size_t len)
{
    struct router *r = context;
    for (uint8_t *at = out; len > 0; at++, len--)
        *at = (uint8_t)prng_next(&r->linked->prng);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    struct flight *f = launch(context, to, request);
    if (f == NULL)
        return ERR_UNREACHABLE;
    f->call = true;
    f->call_id = id;
    f->kind = kind;
    return 0;
}

/* The whole answer at once: what a transfer takes is measured elsewhere. */
static void serve(struct linked *l, const struct flight *f)
{
    struct node_replication *server = l->routers[f->to].node->replication;
    struct node_replication *client = l->routers[f->from].node->replication;
    struct node_serve *s = NULL;
    struct buf chunk = {0};
    int err = node_replication_serve(server, f->kind, slice_of((const char *)f->bytes, f->len),
                                     l->now_us, &s);
    while (err == 0) {
        chunk.len = 0;
        int more = node_replication_serve_next(server, s, &chunk);
        if (more <= 0) {
            err = more;
            break;
        }
        err = node_replication_answer(client, f->call_id, slice_of(chunk.at, chunk.len), l->now_us);
    }
    if (s != NULL)
        node_replication_serve_end(s);
    buf_free(&chunk);
    node_replication_answered(client, f->call_id, err, l->now_us);
}

static void land(struct linked *l)
{
    struct flight *f = l->first;
    l->first = f->next;
    if (l->first == NULL)
        l->last = NULL;
    struct gossip_address from = address_of(f->from);
    if (f->call)
        serve(l, f);
    else
        node_replication_datagram(l->routers[f->to].node->replication, &from, f->bytes, f->len,
                                  l->now_us);
    node_replication_run(l->routers[f->to].node->replication, l->now_us);
    if (f->call)
        node_replication_run(l->routers[f->from].node->replication, l->now_us);
    free(f);
}

static void router_make(struct linked *l, unsigned number, const struct linked_config *config)
{
    struct router *r = &l->routers[number];
    char name[32];
    int len = snprintf(name, sizeof name, "router-%u", number);
    CHECK(len > 0);
    r->linked = l;
    r->number = number;
    struct node_config c = config->node;
    c.router.seed += number;
    if (config->shared && config->routers > 1) {
        c.replication.gossip.name = name;
        c.replication.gossip.address = address_of(number);
        c.replication.has_seeds = number > 0;
        c.keyring = &l->keyring;
        c.state.wall_ms = WALL_MS;
    }
    struct node_replication_io io = {
        .context = r, .send = on_send, .random = on_random, .call = on_call};
    CHECK(node_create(&r->node, &c, &io, l->now_us) == 0);
    if (r->node->replication == NULL)
        return;
    struct gossip_address seed = address_of(0);
    if (number > 0)
        gossip_seeds(node_replication_gossip(r->node->replication), &seed, 1, l->now_us);
}

static bool all_ready(const struct linked *l)
{
    for (unsigned i = 0; i < l->count; i++) {
        if (l->routers[i].node->replication == NULL)
            continue;
        struct gossip *g = node_replication_gossip(l->routers[i].node->replication);
        if (!node_replication_ready(l->routers[i].node->replication) ||
            gossip_member_count(g) < l->count)
            return false;
    }
    return true;
}

void linked_create(struct linked **out, const struct linked_config *config)
{
    struct linked *l = calloc(1, sizeof *l);
    CHECK(l != NULL && config->routers >= 1 && config->routers <= LINKED_MAX);
    l->count = config->routers;
    l->now_us = config->shared && config->routers > 1 ? 1000000 : 0;
    l->delay_us = (uint64_t)(config->delay_s * 1e6);
    prng_seed(&l->prng, config->node.router.seed);
    gossip_keyring_insecure(&l->keyring);
    for (unsigned i = 0; i < l->count; i++)
        router_make(l, i, config);
    while (!all_ready(l)) {
        linked_run(l, (double)(l->now_us + 10000) / 1e6);
        CHECK(l->now_us < (uint64_t)READY_MAX_S * 1000000);
    }
    l->start_us = l->now_us;
    *out = l;
}

void linked_destroy(struct linked *l)
{
    for (unsigned i = 0; i < l->count; i++)
        node_destroy(l->routers[i].node);
    for (struct flight *next; l->first != NULL; l->first = next) {
        next = l->first->next;
        free(l->first);
    }
    free(l);
}

struct node_router *linked_router(struct linked *l, unsigned number)
{
    return l->routers[number].node->router;
}

double linked_start_s(const struct linked *l)
{
    return (double)l->start_us / 1e6;
}

/* The router whose gossip is due first; `due_us` is UINT64_MAX if none is. */
static unsigned due_first(const struct linked *l, uint64_t *due_us)
{
    unsigned first = 0;
    *due_us = UINT64_MAX;
    for (unsigned i = 0; i < l->count; i++) {
        if (l->routers[i].node->replication == NULL)
            continue;
        uint64_t due = node_replication_due_us(l->routers[i].node->replication);
        if (due < *due_us) {
            *due_us = due;
            first = i;
        }
    }
    return first;
}

void linked_run(struct linked *l, double now_s)
{
    uint64_t until = (uint64_t)llround(now_s * 1e6);
    for (;;) {
        uint64_t due;
        unsigned first = due_first(l, &due);
        bool landing = l->first != NULL && l->first->at_us <= due;
        uint64_t at = landing ? l->first->at_us : due;
        if (at > until)
            break;
        l->now_us = at > l->now_us ? at : l->now_us;
        if (landing)
            land(l);
        else
            node_replication_run(l->routers[first].node->replication, l->now_us);
    }
    l->now_us = until > l->now_us ? until : l->now_us;
}

void linked_news(struct linked *l, unsigned number)
{
    if (l->routers[number].node->replication != NULL)
        node_replication_run(l->routers[number].node->replication, l->now_us);
}
