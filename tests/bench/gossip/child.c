#include "tests/bench/gossip/child.h"

#include <math.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"
#include "base/prng.h"

enum {
    PROMPT_POINTS = 165, /* average of coding sessions (../shared/design/routing.md) */
    OPEN_MAX = 8,        /* requests of a stream in flight at once */
    TOLD_TOKENS = 400,
};

struct child {
    struct child_setup setup;
    struct bench_node node;
    uv_loop_t loop;
    uv_poll_t commands;
    uv_check_t after;
    uv_timer_t timer;
    struct prng prng;
    bool ready, loaded;
    uint64_t next; /* number of the next observation to wait for */
    uint64_t prompts;
    double stream_rate; /* prompts a second */
    bool stream_requests;
    double stream_due_us;
    uint64_t load_seen;
    struct node_booking open[OPEN_MAX];
    unsigned open_count, open_at;
};

void child_chain(struct chain *chain, uint64_t number, unsigned points)
{
    chain->length = (uint16_t)points;
    chain->token_ids = chain->chunks = false;
    chain->content = (struct chain_content){0};
    for (unsigned i = 0; i < points; i++)
        chain->points[i] = (struct chain_point){.id = hash_mix(number * CHAIN_POINTS_MAX + i + 1),
                                                .blocks = checkpoint_blocks(i),
                                                .code = checkpoint_code(i)};
    chain->bytes = (uint64_t)chain->points[points - 1].blocks * CHECKPOINT_BLOCK_BYTES;
}

static void event(struct child *c, enum group_event_kind kind, uint64_t value)
{
    struct group_event e = {.kind = kind, .value = value, .at_us = bench_now_us()};
    if (kind == GROUP_COUNTED) {
        struct gossip_stats g;
        gossip_stats(node_replication_gossip(c->node.replication), &g);
        struct crdt_state *state = c->node.state;
        struct crdt_state_stats s;
        crdt_state_stats(state, &s);
        e.counts = (struct group_counts){
            .cpu_s = bench_cpu_s(),
            .packets_out = g.packets_out,
            .bytes_out = g.bytes_out,
            .observations = s.observations_out,
            .refused = g.refused_key + g.refused_replay + g.refused_malformed,
            .members = gossip_member_count(node_replication_gossip(c->node.replication)),
            .again = g.deltas_again,
            .gaps = g.gaps,
            .deltas = g.deltas_produced,
        };
        crdt_state_digest(state, 0, &e.counts.digest);
    }
    ssize_t sent = send(c->setup.fd, &e, sizeof e, 0);
    CHECK(sent == sizeof e);
}

static unsigned sessions(const struct child *c)
{
    struct gossip *g = node_replication_gossip(c->node.replication);
    unsigned count = 0;
    for (unsigned i = 0; i < gossip_member_count(g); i++) {
        struct gossip_member m;
        gossip_member_at(g, i, bench_now_us(), &m);
        count += !m.self && m.state == GOSSIP_ALIVE && m.session;
    }
    return count;
}

/* Observations of `case_spread`: number n is the only point of a chain, on replica 0. */
static bool held(const struct child *c, uint64_t number)
{
    struct chain chain;
    uint32_t generation;
    child_chain(&chain, number, 1);
    return crdt_index_get(crdt_state_index(c->node.state),
                          chain.points[0].id & ((UINT64_C(1) << 48) - 1), 0, chain.points[0].code,
                          &generation) == 0;
}

static uint64_t others_requests(const struct child *c)
{
    uint64_t sum = 0;
    for (unsigned r = 0; r < NODE_REPLICAS; r++) {
        struct crdt_load load;
        crdt_reports_load_sum(crdt_state_reports(c->node.state), r, &load);
        sum += load.requests;
    }
    return sum;
}

/* Runs each time before the loop sleeps. */
static void on_after(uv_check_t *check)
{
    struct child *c = check->data;
    if (!c->ready) {
        c->ready = node_replication_ready(c->node.replication) && sessions(c) >= c->setup.expected;
        if (c->ready)
            event(c, GROUP_READY, 0);
        return;
    }
    while (held(c, c->next))
        event(c, GROUP_HELD, c->next++);
    uint64_t version = crdt_reports_load_version(crdt_state_reports(c->node.state));
    if (version == c->load_seen)
        return;
    c->load_seen = version;
    uint64_t requests = others_requests(c);
    if ((requests > 0) != c->loaded)
        event(c, requests > 0 ? GROUP_LOADED : GROUP_UNLOADED, requests);
    c->loaded = requests > 0;
}

static void request(struct child *c, bool keep)
{
    static struct chain chain;
    child_chain(&chain, ++c->prompts * GROUP_MAX + c->setup.node.number + (UINT64_C(1) << 40),
                PROMPT_POINTS);
    struct node_request r = {.chain = &chain, .body_bytes = chain.bytes, .replica_wanted = -1};
    struct node_decision d;
    uint64_t now_ms = bench_now_us() / 1000;
    CHECK(node_router_place(c->node.router, &r, NULL, now_ms, &d) == 0);
    if (keep)
        return;
    if (c->open_count == OPEN_MAX) {
        struct node_usage usage = {-1, -1, TOLD_TOKENS, {0}};
        struct node_booking *oldest = &c->open[c->open_at];
        node_router_first_byte(c->node.router, *oldest, now_ms);
        node_router_finish(c->node.router, *oldest, NODE_OUTCOME_OK, &usage, now_ms);
    } else {
        c->open_count++;
    }
    c->open[c->open_at] = d.booking;
    c->open_at = (c->open_at + 1) % OPEN_MAX;
}

static void observe(struct child *c, uint64_t number, unsigned points, unsigned replica)
{
    static struct chain chain;
    child_chain(&chain, number, points);
    CHECK(crdt_state_observe(c->node.state, &chain, replica) >= 0);
}

/* Prompts come at random times, at the rate of the command. */
static void on_timer(uv_timer_t *timer)
{
    struct child *c = timer->data;
    while (c->stream_rate > 0 && c->stream_due_us <= (double)bench_now_us()) {
        if (c->stream_requests)
            request(c, false);
        else
            observe(c, ++c->prompts * GROUP_MAX + c->setup.node.number + (UINT64_C(1) << 40),
                    PROMPT_POINTS, (unsigned)prng_below(&c->prng, NODE_REPLICAS));
        c->stream_due_us += -log(1 - prng_unit(&c->prng)) * 1e6 / c->stream_rate;
    }
}

static void stream(struct child *c, uint64_t observations_s, bool requests)
{
    c->stream_rate = (double)observations_s / PROMPT_POINTS;
    c->stream_requests = requests;
    c->stream_due_us = (double)bench_now_us() + prng_unit(&c->prng) * 1e5;
    if (observations_s > 0)
        CHECK(uv_timer_start(&c->timer, on_timer, 1, 1) == 0);
    else
        CHECK(uv_timer_stop(&c->timer) == 0);
}

static void fill(struct child *c, uint64_t observations)
{
    for (uint64_t done = 0; done < observations; done += PROMPT_POINTS)
        observe(c, (done / PROMPT_POINTS + 1) | UINT64_C(1) << 41, PROMPT_POINTS,
                done / PROMPT_POINTS % NODE_REPLICAS);
    event(c, GROUP_FILLED, observations);
}

static void on_command(uv_poll_t *poll, int status, int events)
{
    struct child *c = poll->data;
    struct group_command command;
    (void)events;
    if (status != 0 || recv(c->setup.fd, &command, sizeof command, 0) != sizeof command)
        _exit(0); /* the parent is gone */
    switch (command.kind) {
    case GROUP_OBSERVE:
        event(c, GROUP_MADE, command.value);
        observe(c, command.value, 1, 0);
        break;
    case GROUP_STREAM:
    case GROUP_REQUEST:
        stream(c, command.value, command.kind == GROUP_REQUEST);
        break;
    case GROUP_BOOK:
        for (uint64_t i = 0; i < command.value; i++)
            request(c, true);
        break;
    case GROUP_FILL:
        fill(c, command.value);
        break;
    case GROUP_COUNTS:
        event(c, GROUP_COUNTED, 0);
        break;
    }
}

_Noreturn void child_run(const struct child_setup *setup)
{
    static struct child c;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    c.setup = *setup;
    c.next = 1;
    prng_seed(&c.prng, setup->node.number + 1);
    CHECK(uv_loop_init(&c.loop) == 0);
    bench_node_start(&c.node, &c.loop, &setup->node);
    c.commands.data = c.after.data = c.timer.data = &c;
    CHECK(uv_poll_init(&c.loop, &c.commands, setup->fd) == 0);
    CHECK(uv_poll_start(&c.commands, UV_READABLE, on_command) == 0);
    CHECK(uv_check_init(&c.loop, &c.after) == 0);
    CHECK(uv_check_start(&c.after, on_after) == 0);
    CHECK(uv_timer_init(&c.loop, &c.timer) == 0);
    (void)uv_run(&c.loop, UV_RUN_DEFAULT);
    _exit(0);
}
