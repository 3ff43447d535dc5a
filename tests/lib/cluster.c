#include "tests/lib/cluster.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/share.h"
#include "tests/lib/test.h"

enum { DELAY_US = 300, TICK_US = 1000000, PORT = 7000, STEP_US = 1000 };

static const uint64_t wall_start_ms = 1700000000000;

/* --- network -------------------------------------------------------------------------------- */

static struct gossip_address address_of(unsigned number)
{
    return (struct gossip_address){
        .ip = {127, 0, 0, 1}, .port = (uint16_t)(PORT + number), .family = 4};
}

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    const struct cluster_node *n = context;
    struct cluster *c = n->cluster;
    CHECK(len <= GOSSIP_DATAGRAM_MAX && to->port >= PORT);
    unsigned at = to->port - PORT;
    c->packets_sent++;
    if (c->cut[n->number][at] || (c->lose_every > 0 && prng_below(&c->prng, c->lose_every) == 0))
        return;
    if (c->packet_count == c->packet_room) {
        c->packet_room = c->packet_room * 2 + 64;
        c->packets = realloc(c->packets, c->packet_room * sizeof *c->packets);
        CHECK(c->packets != NULL);
    }
    struct cluster_packet *p = &c->packets[c->packet_count++];
    *p = (struct cluster_packet){
        .at_us = c->now_us + DELAY_US, .from = n->number, .to = at, .len = (uint32_t)len};
    memcpy(p->bytes, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    const struct cluster_node *n = context;
    uint8_t *at = out;
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)prng_next(&n->cluster->prng);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    const struct cluster_node *n = context;
    struct cluster *c = n->cluster;
    if (c->call_count == ARRAY_LEN(c->calls) || to->port < PORT)
        return ERR_FULL;
    struct cluster_call *call = &c->calls[c->call_count++];
    *call = (struct cluster_call){.at_us = c->now_us + DELAY_US,
                                  .client = n->number,
                                  .server = to->port - PORT,
                                  .id = id,
                                  .kind = kind};
    CHECK(buf_append_slice(&call->request, request) == ERR_OK);
    return ERR_OK;
}

static void on_replica(void *context, unsigned replica, bool present)
{
    struct cluster_node *n = context;
    n->has[replica] = present;
}

static void on_event(void *context, enum node_replication_event event, struct slice member,
                     int64_t value, struct slice detail)
{
    struct cluster_node *n = context;
    n->events[event]++;
    (void)slice_to_cstr(detail, n->detail[event], sizeof n->detail[event]);
    if (getenv("CLUSTER_TRACE"))
        printf("%8.3f %s: %s %.*s %lld %.*s\n", (double)n->cluster->now_us / 1e6, n->name,
               node_replication_event_text(event), SLICE_ARG(member), (long long)value,
               SLICE_ARG(detail));
}

/* --- life ----------------------------------------------------------------------------------- */

void cluster_init(struct cluster *c, unsigned count, uint64_t seed)
{
    CHECK(count <= CLUSTER_NODES_MAX);
    *c = (struct cluster){.count = count, .now_us = 5000000000};
    prng_seed(&c->prng, seed);
    gossip_keyring_insecure(&c->keyring);
    for (unsigned i = 0; i < count; i++) {
        struct cluster_node *n = &c->nodes[i];
        n->cluster = c;
        n->number = i;
        (void)snprintf(n->name, sizeof n->name, "router-%u", i);
    }
}

static uint64_t wall_ms(const struct cluster_node *n)
{
    return wall_start_ms + cluster_ms(n->cluster) + (uint64_t)n->wall_off_ms;
}

void cluster_start(struct cluster *c, unsigned number)
{
    struct cluster_node *n = &c->nodes[number];
    CHECK(!n->up);
    n->keyring = c->keyring;
    n->keyring.hash[0] ^= n->other_hash;
    struct node_replication_io io = {
        .context = n, .send = on_send, .random = on_random, .call = on_call, .event = on_event};
    struct node_config config;
    CHECK(node_config_default(&config) == ERR_OK);
    config.router.seed = number + 1;
    config.state.index_bytes = 16 << 20; /* quick to make and to check */
    if (n->generation_ms != 0)
        config.state.generation_ms = n->generation_ms;
    config.replication.gossip.name = n->name;
    config.replication.gossip.address = address_of(number);
    config.replication.gossip.routers_max = c->routers_max;
    config.replication.has_seeds = number > 0 || c->has_no_first;
    config.replication.admin = "127.0.0.1:9000";
    config.keyring = &n->keyring;
    config.state.wall_ms = wall_ms(n);
    assert_int_equal(node_create(&n->node, &config, &io, c->now_us), ERR_OK);
    node_router_watch(n->node->router, on_replica, n);
    n->up = true;
    struct gossip_address seed = address_of(number > 0 ? 0 : 1);
    if (config.replication.has_seeds)
        gossip_seeds(node_replication_gossip(n->node->replication), &seed, 1, c->now_us);
}

static void drop_calls(struct cluster *c, unsigned number)
{
    for (unsigned i = 0; i < c->call_count;) {
        struct cluster_call *call = &c->calls[i];
        if (call->client != number && call->server != number) {
            i++;
            continue;
        }
        if (call->serve)
            node_replication_serve_end(call->serve);
        buf_free(&call->request);
        if (call->client != number)
            node_replication_answered(c->nodes[call->client].node->replication, call->id,
                                      ERR_CLOSED, c->now_us);
        *call = c->calls[--c->call_count];
    }
}

void cluster_kill(struct cluster *c, unsigned number)
{
    struct cluster_node *n = &c->nodes[number];
    if (!n->up)
        return;
    drop_calls(c, number);
    node_destroy(n->node);
    n->up = false;
    n->node = NULL;
    memset(n->events, 0, sizeof n->events);
    memset(n->has, 0, sizeof n->has);
}

void cluster_free(struct cluster *c)
{
    for (unsigned i = 0; i < c->count; i++)
        cluster_kill(c, i);
    free(c->packets);
}

/* --- time ----------------------------------------------------------------------------------- */

static void deliver_packets(struct cluster *c)
{
    /* Those that are sent meanwhile are due later. */
    unsigned kept = 0, count = c->packet_count;
    struct cluster_packet *due = c->packets;
    c->packets = NULL;
    c->packet_count = c->packet_room = 0;
    for (unsigned i = 0; i < count; i++) {
        struct cluster_packet *p = &due[i];
        if (p->at_us > c->now_us) {
            due[kept++] = *p;
            continue;
        }
        struct cluster_node *n = &c->nodes[p->to];
        struct gossip_address from = address_of(p->from);
        if (n->up)
            node_replication_datagram(n->node->replication, &from, p->bytes, p->len, c->now_us);
    }
    unsigned fresh = c->packet_count;
    if (kept > 0) {
        c->packet_room = kept + fresh;
        c->packets = realloc(c->packets, c->packet_room * sizeof *c->packets);
        CHECK(c->packets != NULL);
        memcpy(c->packets + fresh, due, kept * sizeof *due);
        c->packet_count = kept + fresh;
    }
    free(due);
}

/* One chunk of one call; false when it has ended. */
static bool step_call(struct cluster *c, struct cluster_call call, struct node_serve **serve)
{
    struct node_replication *client = c->nodes[call.client].node->replication;
    struct cluster_node *server = &c->nodes[call.server];
    if (!server->up || c->cut[call.client][call.server]) {
        node_replication_answered(client, call.id, ERR_UNREACHABLE, c->now_us);
        return false;
    }
    int err = ERR_OK;
    if (!*serve)
        err = node_replication_serve(server->node->replication, call.kind, buf_slice(&call.request),
                                     c->now_us, serve);
    struct buf chunk = {0};
    int more = err == ERR_OK
                   ? node_replication_serve_next(server->node->replication, *serve, &chunk)
                   : err;
    if (more > 0)
        more = node_replication_answer(client, call.id, buf_slice(&chunk), c->now_us) == ERR_OK;
    else
        node_replication_answered(client, call.id, more, c->now_us);
    buf_free(&chunk);
    return more > 0;
}

static void step_calls(struct cluster *c)
{
    for (unsigned i = 0; i < c->call_count;) {
        struct cluster_call call = c->calls[i];
        if (call.at_us > c->now_us) {
            i++;
            continue;
        }
        struct node_serve *serve = call.serve;
        bool more = step_call(c, call, &serve);
        /* The call may have opened others, behind it. */
        c->calls[i].serve = serve;
        c->calls[i].at_us = c->now_us + DELAY_US;
        if (more) {
            i++;
            continue;
        }
        if (serve)
            node_replication_serve_end(serve);
        buf_free(&c->calls[i].request);
        c->calls[i] = c->calls[--c->call_count];
    }
}

static void tick(struct cluster *c)
{
    c->ticked_us = c->now_us;
    for (unsigned i = 0; i < c->count; i++) {
        if (!c->nodes[i].up)
            continue;
        node_router_tick(c->nodes[i].node->router, cluster_ms(c));
        node_check(c->nodes[i].node);
    }
}

static void step(struct cluster *c)
{
    c->now_us += STEP_US;
    deliver_packets(c);
    step_calls(c);
    if (c->now_us - c->ticked_us >= TICK_US)
        tick(c);
    for (unsigned i = 0; i < c->count; i++) {
        struct cluster_node *n = &c->nodes[i];
        if (n->up && node_replication_due_us(n->node->replication) <= c->now_us)
            node_replication_run(n->node->replication, c->now_us);
    }
}

void cluster_run(struct cluster *c, uint64_t us)
{
    uint64_t until = c->now_us + us;
    while (c->now_us < until)
        step(c);
}

bool cluster_until(struct cluster *c, uint64_t us, bool (*done)(struct cluster *c))
{
    uint64_t until = c->now_us + us;
    while (c->now_us < until) {
        if (done(c))
            return true;
        step(c);
    }
    return done(c);
}

static bool settled(struct cluster *c)
{
    unsigned up = 0;
    for (unsigned i = 0; i < c->count; i++)
        up += c->nodes[i].up;
    for (unsigned i = 0; i < c->count; i++) {
        const struct cluster_node *n = &c->nodes[i];
        if (!n->up)
            continue;
        struct gossip *g = node_replication_gossip(n->node->replication);
        unsigned alive = 0;
        for (unsigned k = 0; k < gossip_member_count(g); k++) {
            struct gossip_member m;
            gossip_member_at(g, k, c->now_us, &m);
            alive += m.state == GOSSIP_ALIVE && (m.self || m.session);
        }
        if (alive != up || !node_replication_ready(n->node->replication))
            return false;
    }
    return true;
}

void cluster_settle(struct cluster *c)
{
    assert_true(cluster_until(c, 20000000, settled));
}

bool cluster_agrees(struct cluster *c)
{
    struct crdt_digest first = {0};
    bool have = false;
    uint32_t floor = 0;
    for (unsigned i = 0; i < c->count; i++) {
        if (!c->nodes[i].up)
            continue;
        struct crdt_index *x = node_state_index(c->nodes[i].node->state);
        floor = crdt_index_floor(x) > floor ? crdt_index_floor(x) : floor;
    }
    for (unsigned i = 0; i < c->count; i++) {
        struct crdt_digest d;
        if (!c->nodes[i].up)
            continue;
        crdt_state_digest(node_state_crdt(c->nodes[i].node->state), floor, &d);
        if (have && (d.registry != first.registry || d.index != first.index || d.log != first.log ||
                     d.reports != first.reports))
            return false;
        first = d;
        have = true;
    }
    return true;
}

/* --- requests ------------------------------------------------------------------------------- */

unsigned cluster_replica(struct cluster *c, unsigned number, const char *name)
{
    struct cluster_node *n = &c->nodes[number];
    int slot = node_router_replica_add(n->node->router, slice_of_cstr(name), NODE_ENGINE_VLLM);
    assert_true(slot >= 0);
    node_router_probed(n->node->router, (unsigned)slot, true, false, cluster_ms(c));
    node_replication_run(n->node->replication, c->now_us);
    return (unsigned)slot;
}

void cluster_prompt(struct chain *out, uint64_t seed, unsigned tokens)
{
    *out = (struct chain){.bytes = tokens * 4ull};
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        uint32_t blocks = checkpoint_blocks(i);
        if (blocks * 256ull > out->bytes)
            break;
        out->points[out->length++] = (struct chain_point){
            .id = hash_mix(seed * 1000003 + i), .blocks = blocks, .code = checkpoint_code(i)};
    }
}

struct node_decision cluster_choose(struct cluster *c, unsigned number, const struct chain *chain)
{
    struct cluster_node *n = &c->nodes[number];
    struct node_request request = {
        .chain = chain, .body_bytes = chain->bytes, .replica_wanted = -1};
    struct node_decision d;
    assert_int_equal(node_router_choose(n->node->router, &request, NULL, cluster_ms(c), &d),
                     ERR_OK);
    node_replication_run(n->node->replication, c->now_us);
    return d;
}

void cluster_finish(struct cluster *c, unsigned number, struct node_decision d,
                    const struct node_usage *usage)
{
    struct cluster_node *n = &c->nodes[number];
    node_router_first_byte(n->node->router, d.booking, cluster_ms(c));
    node_router_finish(n->node->router, d.booking, NODE_OUTCOME_OK, usage, cluster_ms(c));
    node_replication_run(n->node->replication, c->now_us);
}
