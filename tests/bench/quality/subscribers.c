#include "tests/bench/quality/subscribers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/route/kv_events.h"
#include "node/route/router.h"

enum { TICK_US = 100000, LOOK_TICKS = 10, READERS = 2, ENDPOINT_BYTES = 64 };

/* An engine's message, while the publisher keeps the message or while it is under way. */
struct message {
    unsigned holders;
    uint64_t number;
    size_t len;
    char bytes[];
};

struct reading { /* how a router reads */
    struct subscribers *all;
    unsigned number;
    struct kv_readers *readers; /* NULL: the run ends */
    struct kv_readers_user user;
    struct kv_readers_shell shell;
    unsigned ticks;
    unsigned engines[KV_READERS_MAX];
    uint32_t lives[KV_READERS_MAX]; /* odd: open; deliveries to another life are void */
    bool live[NODE_REPLICAS_MAX];
};

struct kept { /* messages kept by an engine */
    uint64_t next;
    struct message *messages[MESSAGES_KEPT];
};

struct subscribers {
    struct play *play;
    struct world *world;
    struct beliefs *beliefs;
    struct reading routers[ROUTERS_MAX];
    struct kept engines[ENGINES_MAX];
};

/* Arrivals at a feed: a connection, a message, a replayed message, the end of the replay. */
enum kind { CONNECTED, LIVE, REPLAYED, REPLAY_ENDED };

struct delivery {
    struct reading *to;
    unsigned feed;
    uint32_t life;
    enum kind kind;
    struct message *message; /* NULL: none */
};

/* --- messages -------------------------------------------------------------------------------- */

static void message_drop(struct message *m)
{
    if (m != NULL && --m->holders == 0)
        free(m);
}

static uint64_t now_ms(const struct reading *r)
{
    return world_ms(r->all->world);
}

static void on_delivered(void *context, struct world_event *e)
{
    (void)context;
    struct delivery *d = e->object;
    struct reading *r = d->to;
    bool stands = r->readers != NULL && r->lives[d->feed] == d->life;
    const struct message *m = d->message; /* for the two kinds with a message */
    if (stands && d->kind == CONNECTED)
        kv_readers_connected(r->readers, d->feed, now_ms(r));
    if (stands && d->kind == LIVE && m != NULL)
        kv_readers_live(r->readers, d->feed, m->number, slice_of(m->bytes, m->len), now_ms(r));
    if (stands && d->kind == REPLAYED && m != NULL)
        kv_readers_replayed(r->readers, d->feed, m->number, slice_of(m->bytes, m->len), now_ms(r));
    if (stands && d->kind == REPLAY_ENDED)
        kv_readers_replay_ended(r->readers, d->feed, now_ms(r));
    if (stands) /* the reader may have had something to send */
        world_touch(&r->all->world->nodes[r->number]);
    message_drop(d->message);
    free(d);
}

static void deliver(struct reading *r, unsigned feed, enum kind kind, struct message *m)
{
    struct delivery *d = malloc(sizeof *d);
    CHECK(d != NULL);
    *d = (struct delivery){r, feed, r->lives[feed], kind, m};
    if (m != NULL)
        m->holders++;
    world_put(r->all->world, (uint64_t)(r->all->play->setup->events_delay_ms * 1000),
              &(struct world_event){.happen = on_delivered, .object = d});
}

void subscribers_moved(struct subscribers *f, unsigned engine)
{
    struct buf payload = {0};
    struct kept *k = &f->engines[engine];
    if (!engine_publishes(&f->play->engines[engine], (double)f->world->now_us / 1e6, &payload))
        return;
    struct message *m = malloc(sizeof *m + payload.len);
    CHECK(m != NULL);
    *m = (struct message){.holders = 1, .number = k->next, .len = payload.len};
    memcpy(m->bytes, payload.at, payload.len);
    buf_free(&payload);
    f->play->out->events.stored += beliefs_message(f->beliefs, engine, slice_of(m->bytes, m->len));
    message_drop(k->messages[k->next % MESSAGES_KEPT]);
    k->messages[k->next++ % MESSAGES_KEPT] = m;
    for (unsigned i = 0; i < f->play->setup->routers; i++) {
        struct reading *r = &f->routers[i];
        for (unsigned feed = 0; feed < KV_READERS_MAX; feed++) {
            if (r->lives[feed] % 2 == 1 && r->engines[feed] == engine)
                deliver(r, feed, LIVE, m);
        }
    }
}

/* --- requests of readers to their shell ------------------------------------------------------ */

static int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)replay;
    (void)topic;
    struct reading *r = context;
    char text[ENDPOINT_BYTES];
    CHECK(slice_to_cstr(endpoint, text, sizeof text) &&
          sscanf(text, "tcp://replica-%u:5557", &r->engines[feed]) == 1);
    r->lives[feed]++;
    deliver(r, feed, CONNECTED, NULL);
    return ERR_OK;
}

static void on_close(void *context, unsigned feed)
{
    struct reading *r = context;
    r->lives[feed]++;
}

static int on_replay(void *context, unsigned feed, uint64_t from)
{
    struct reading *r = context;
    const struct kept *k = &r->all->engines[r->engines[feed]];
    uint64_t first = k->next > MESSAGES_KEPT ? k->next - MESSAGES_KEPT : 0;
    for (uint64_t n = from > first ? from : first; n < k->next; n++)
        deliver(r, feed, REPLAYED, k->messages[n % MESSAGES_KEPT]);
    deliver(r, feed, REPLAY_ENDED, NULL);
    return ERR_OK;
}

static uint64_t on_malformed(void *context, unsigned feed)
{
    (void)context;
    (void)feed;
    return 0;
}

/* --- between readers and the router, as in node/node.c --------------------------------------- */

static struct node *node_of(const struct reading *r)
{
    return r->all->world->nodes[r->number].node;
}

static bool on_gone(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    return node_router_events_gone(node_of(context)->router, slot, id, code) != ERR_AGAIN;
}

static void on_present(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    DISCARD(node_router_events_present(node_of(context)->router, slot, id, code));
}

static void on_cleared(void *context, unsigned slot)
{
    node_router_cache_reset(node_of(context)->router, slot, now_ms(context));
}

static void on_began(void *context, unsigned slot, uint32_t rkey)
{
    const struct node_router *router = node_of(context)->router;
    if (node_router_replica(router, slot)->rkey == rkey)
        on_cleared(context, slot);
}

static void on_path(void *context, const struct kv_path *path)
{
    struct reading *r = context;
    kv_readers_path(r->readers, path);
}

static void on_told(void *context, const struct kv_told *told)
{
    struct reading *r = context;
    uint64_t ahead_ms = node_state_cluster_ms(node_of(r)->state, now_ms(r)) - now_ms(r);
    struct kv_told here = *told;
    here.sent_ms -= ahead_ms;
    here.ended_ms -= ahead_ms;
    if (here.first_ms > 0)
        here.first_ms -= ahead_ms;
    if (told->well)
        kv_readers_told(r->readers, &here, now_ms(r));
}

/* --- the feeds' turns, as in node/proxy/engine/feeds.c
 * ------------------------------------------ */

static void look(struct reading *r, unsigned slot)
{
    struct node_router *router = node_of(r)->router;
    const struct node_replica *k = node_router_replica(router, slot);
    char at[ENDPOINT_BYTES];
    unsigned engine;
    struct kv_wanted want = {.role = KV_ROLE_NONE, .topic = SLICE("")};
    CHECK(slice_to_cstr(node_router_replica_name(router, slot), at, sizeof at) &&
          sscanf(at, "replica-%u:8000", &engine) == 1);
    (void)snprintf(at, sizeof at, "tcp://replica-%u:5557", engine);
    if (!k->absent && k->health == NODE_HEALTH_UP && k->turn_events.ahead < READERS) {
        want.role = k->turn_events.ahead == 0 ? KV_ROLE_SPEAKS : KV_ROLE_STANDS_BY;
        want.rkey = k->rkey;
        want.blocks = k->scrape.cache_tokens > 0 && k->scrape.block_tokens > 0
                          ? k->scrape.cache_tokens / k->scrape.block_tokens
                          : 0;
        want.has_tier = k->scrape.tier_hits > 0;
        want.endpoint = want.replay = slice_of_cstr(at);
    }
    kv_readers_want(r->readers, slot, &want, now_ms(r));
    node_router_events_reads(router, slot, NODE_READS_TURN);
}

static void on_tick(void *context, struct world_event *e)
{
    struct world *w = context;
    struct reading *r = e->object;
    if (w->closing || r->readers == NULL)
        return;
    struct node_router *router = node_of(r)->router;
    kv_readers_tick(r->readers, now_ms(r));
    bool looks = r->ticks++ % LOOK_TICKS == 0;
    for (unsigned slot = 0; slot < node_router_replica_count(router); slot++) {
        if (looks)
            look(r, slot);
        bool live = kv_readers_speak(r->readers, slot);
        if (live != r->live[slot])
            node_router_events_live(router, slot, live);
        r->live[slot] = live;
    }
    world_touch(&w->nodes[r->number]);
    world_put(w, TICK_US, e);
}

/* --- life ------------------------------------------------------------------------------------ */

static void reading_open(struct reading *r)
{
    struct node *n = node_of(r);
    r->user = (struct kv_readers_user){.gone = on_gone,
                                       .present = on_present,
                                       .cleared = on_cleared,
                                       .began = on_began,
                                       .context = r};
    r->shell = (struct kv_readers_shell){.open = on_open,
                                         .close = on_close,
                                         .replay = on_replay,
                                         .malformed = on_malformed,
                                         .context = r};
    const struct node_events_user user = {.path = on_path, .told = on_told, .context = r};
    CHECK(kv_readers_create(&r->readers, NODE_REPLICAS_MAX, &node_state_config_of(n->state)->secret,
                            &r->shell, &r->user) == ERR_OK);
    node_router_events_watch(n->router, &user);
    world_put(r->all->world, (r->number + 1) * 1000,
              &(struct world_event){.happen = on_tick, .object = r});
}

struct subscribers *subscribers_open(struct play *p, struct world *world)
{
    struct subscribers *f = calloc(1, sizeof *f);
    CHECK(f != NULL);
    f->play = p;
    f->world = world;
    f->beliefs = beliefs_open(p);
    for (unsigned k = 0; k < p->engine_count; k++)
        engine_is_read(&p->engines[k]);
    for (unsigned i = 0; i < p->setup->routers; i++) {
        f->routers[i].all = f;
        f->routers[i].number = i;
        reading_open(&f->routers[i]);
    }
    return f;
}

struct beliefs *subscribers_beliefs(const struct subscribers *f)
{
    return f->beliefs;
}

void subscribers_sum(const struct subscribers *f, struct events_seen *out)
{
    for (unsigned i = 0; i < f->play->setup->routers; i++) {
        const struct kv_readers *readers = f->routers[i].readers;
        out->feeds += kv_readers_stats(readers).feeds;
        for (unsigned slot = 0; slot < NODE_REPLICAS_MAX; slot++) {
            struct kv_reading_row row;
            if (!kv_readers_row(readers, slot, &row))
                continue;
            out->live += row.reading == KV_READING_LIVE;
            out->speak += row.speaks;
            if (!row.may_speak)
                continue;
            out->messages += row.stats.feed.messages;
            out->told += row.stats.told;
            out->tied += row.stats.tied;
            out->unmatched += row.stats.unmatched;
            out->unclear += row.stats.unclear;
            out->gone += row.stats.gone;
            out->present += row.stats.present;
            out->shed += row.stats.shed;
            out->full += row.stats.tree.full;
        }
    }
}

void subscribers_close(struct subscribers *f)
{
    for (unsigned i = 0; i < f->play->setup->routers; i++) {
        struct reading *r = &f->routers[i];
        kv_readers_check(r->readers);
        node_router_events_watch(node_of(r)->router, NULL);
        kv_readers_destroy(r->readers);
        r->readers = NULL;
    }
}

void subscribers_free(struct subscribers *f)
{
    beliefs_close(f->beliefs);
    for (unsigned k = 0; k < ENGINES_MAX; k++) {
        for (unsigned i = 0; i < MESSAGES_KEPT; i++)
            message_drop(f->engines[k].messages[i]);
    }
    free(f);
}
