/* Byte streams between nodes, as TCP would carry calls: in order, in pieces of any size, stalled by
 * a partition, and broken off if the partition lasts or an end is gone. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "gossip/call.h"
#include "tests/lib/world/memory.h"
#include "tests/lib/world/world.h"

enum { CALLS_MAX = 1024 };

static void call_drop(struct world_call *c)
{
    if (c->serve)
        node_replication_serve_end(c->serve);
    gossip_call_free(c->asks);
    gossip_call_free(c->answers);
    uint32_t tag = c->tag;
    *c = (struct world_call){.tag = tag + 1};
}

/* Reports the end of the call to the client. */
static void call_end(struct world *w, struct world_call *c, int err)
{
    struct world_node *client = &w->nodes[c->client];
    uint32_t id = c->id;
    world_trace(w, (uint64_t)id << 8 ^ (uint64_t)(uint32_t)err);
    call_drop(c);
    node_replication_answered(client->node->replication, id, err, world_mono_us(client));
    world_touch(client);
}

/* Moves some bytes between the ends; negative: the receiver closes. */
static int move(struct world *w, struct world_call *c, struct gossip_call *from,
                struct gossip_call *to)
{
    struct buf *out = gossip_call_out(from);
    if (out->len == 0)
        return ERR_OK;
    size_t len = 1 + prng_below(&w->prng, w->call_bytes_max);
    if (len > out->len)
        len = out->len;
    char *bytes = world_alloc(NULL, len);
    memcpy(bytes, out->at, len);
    buf_consume(out, len);
    if (world_chance(w, w->net.flip / 10))
        bytes[prng_below(&w->prng, len)] ^= (char)(1u << prng_below(&w->prng, 8));
    int err = gossip_call_feed(to, slice_of(bytes, len));
    free(bytes);
    c->moved_us = w->now_us;
    return err;
}

/* The server's side of a round. 0, or an error, which closes the connection. */
static int serve(struct world *w, struct world_call *c)
{
    struct world_node *n = &w->nodes[c->server];
    for (;;) {
        enum gossip_call_step step;
        uint8_t kind = 0;
        struct slice request = {0};
        int err = gossip_call_step(c->answers, &step, &kind, &request);
        if (err != ERR_OK)
            return err;
        if (step != GOSSIP_CALL_REQUEST)
            break;
        c->requested = true;
        err = node_replication_serve(n->node->replication, kind, request, world_mono_us(n),
                                     &c->serve);
        if (err != ERR_OK)
            return err;
    }
    /* A chunk at a time: the state changes between chunks. */
    if (c->requested && !c->ended && gossip_call_wants(c->answers)) {
        struct buf chunk = {0};
        int more = node_replication_serve_next(n->node->replication, c->serve, &chunk);
        int err = more < 0 ? more : ERR_OK;
        CHECK(chunk.len <= GOSSIP_CALL_CHUNK_MAX);
        if (more == 1)
            err = gossip_call_answer(c->answers, buf_slice(&chunk));
        buf_free(&chunk);
        if (more == 0) {
            c->ended = true;
            err = gossip_call_end(c->answers);
        }
        if (err != ERR_OK)
            return err;
    }
    return ERR_OK;
}

/* The client's side: 1 when the answer is whole. */
static int take(struct world *w, struct world_call *c)
{
    struct world_node *n = &w->nodes[c->client];
    for (;;) {
        enum gossip_call_step step;
        uint8_t kind;
        struct slice chunk = {0};
        int err = gossip_call_step(c->asks, &step, &kind, &chunk);
        if (err != ERR_OK)
            return err;
        if (step == GOSSIP_CALL_DONE)
            return 1;
        if (step != GOSSIP_CALL_CHUNK)
            return ERR_OK;
        err = node_replication_answer(n->node->replication, c->id, chunk, world_mono_us(n));
        world_touch(n);
        if (err != ERR_OK)
            return err;
        c->chunks++;
        if (w->hooks.chunk)
            w->hooks.chunk(w->hooks.context, n, c);
    }
}

static void pump(void *context, struct world_event *e);

static void pump_later(struct world *w, const struct world_call *c)
{
    world_queue_put(&w->queue,
                    &(struct world_event){
                        .at_us = w->now_us + 100 + prng_below(&w->prng, w->call_pause_us) +
                                 world_way_us(w, c->client, c->server),
                        .happen = pump,
                        .a = (uint64_t)(c - w->calls),
                        .b = c->tag,
                    });
}

static void pump(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_call *c = &w->calls[e->a];
    if (w->closing || !c->used || c->tag != e->b)
        return;
    struct world_node *client = &w->nodes[c->client], *server = &w->nodes[c->server];
    bool there = world_runs(client) && world_runs(server);
    bool cut = world_link(w, c->client, c->server)->cut || world_link(w, c->server, c->client)->cut;
    /* Also without a cut link: a damaged length makes both ends wait for the other. */
    if (w->now_us - c->moved_us > w->call_stall_us && world_runs(client)) {
        call_end(w, c, ERR_TIMEOUT);
        return;
    }
    if (!there || cut) {
        pump_later(w, c);
        return;
    }
    int err = move(w, c, c->asks, c->answers);
    if (err == ERR_OK)
        err = serve(w, c);
    if (err == ERR_OK)
        err = move(w, c, c->answers, c->asks);
    if (err == ERR_OK)
        err = take(w, c);
    if (err != ERR_OK)
        call_end(w, c, err > 0 ? ERR_OK : err);
    else
        pump_later(w, c);
}

static struct world_call *call_free_slot(struct world *w)
{
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        if (!w->calls[i].used)
            return &w->calls[i];
    }
    return NULL;
}

/* NULL: no memory. */
static struct gossip_call *call_side(struct world_node *n, bool client, uint32_t id, uint8_t kind,
                                     struct slice request)
{
    struct gossip_keyring keys;
    if (client)
        node_replication_call_keys(n->node->replication, id, &keys);
    uint8_t random[32];
    world_random(n, random, sizeof random);
    struct gossip_call *side = NULL;
    struct gossip_versions speaks = gossip_speaks(node_replication_gossip(n->node->replication));
    int err = client ? gossip_call_open(&side, &keys, speaks, random, kind, request)
                     : gossip_call_accept(&side, &n->keyring, speaks, random);
    CHECK(err == ERR_OK || err == ERR_NOMEM);
    return side;
}

int world_call_open(struct world_node *client, uint32_t id, const struct gossip_address *to,
                    uint8_t kind, struct slice request)
{
    struct world *w = client->world;
    int number = world_reached(w, client->number, to);
    struct world_call *c = call_free_slot(w);
    if (!c || number < 0)
        return ERR_UNREACHABLE;
    struct world_node *server = &w->nodes[number];
    if (!server->up || server->calls_refused)
        return ERR_UNREACHABLE;
    uint32_t tag = c->tag;
    *c = (struct world_call){
        .used = true,
        .tag = tag,
        .client = client->number,
        .server = server->number,
        .id = id,
        .kind = kind,
        .asks = call_side(client, true, id, kind, request),
        .answers = call_side(server, false, 0, 0, request),
        .moved_us = w->now_us,
    };
    if (!c->asks || !c->answers) {
        call_drop(c);
        return ERR_NOMEM;
    }
    world_trace(w, (uint64_t)client->number << 32 ^ (uint64_t)server->number << 8 ^ kind);
    pump_later(w, c);
    return ERR_OK;
}

static void broken_later(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_node *client = &w->nodes[e->node];
    if (w->closing || !client->up || client->life != e->a)
        return;
    node_replication_answered(client->node->replication, (uint32_t)e->b, ERR_CLOSED,
                              world_mono_us(client));
    world_touch(client);
}

void world_calls_of_node_end(struct world_node *n)
{
    struct world *w = n->world;
    unsigned node = n->number;
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        struct world_call *c = &w->calls[i];
        if (!c->used || (c->client != node && c->server != node))
            continue;
        if (c->client != node) {
            world_queue_put(&w->queue, &(struct world_event){
                                           .at_us = w->now_us + world_delay_us(w),
                                           .happen = broken_later,
                                           .node = c->client,
                                           .a = w->nodes[c->client].life,
                                           .b = c->id,
                                       });
        }
        call_drop(c);
    }
}

void world_calls_open(struct world *w)
{
    w->calls = calloc(CALLS_MAX, sizeof *w->calls);
    CHECK(w->calls != NULL);
}

void world_calls_close(struct world *w)
{
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        if (w->calls[i].used)
            call_drop(&w->calls[i]);
    }
    free(w->calls);
}

struct world_call *world_call_of(struct world *w, unsigned client)
{
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        if (w->calls[i].used && w->calls[i].client == client)
            return &w->calls[i];
    }
    return NULL;
}
