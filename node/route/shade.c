#include "node/route/shade.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/number.h"

void node_shade_destroy(struct node_shade *s)
{
    if (s)
        node_bookings_destroy(s->bookings);
    free(s);
}

void node_router_shadow_slot_set(struct node_router *r, unsigned replica)
{
    if (!r->shade)
        return;
    CHECK(!node_router_shadow_is_booked(r, replica));
    node_load_init(&r->shade->loads[replica]);
    r->shade->rooms[replica] = (struct node_room){0};
    node_belief_init(&r->shade->beliefs[replica]);
}

void node_router_shadow_cache_renewed(struct node_router *r, unsigned replica)
{
    if (r->shade)
        node_belief_init(&r->shade->beliefs[replica]);
}

void node_router_shadow_check(const struct node_router *r)
{
    const struct node_load *loads[NODE_REPLICAS_MAX];
    CHECK(r->shadow_of == NULL);
    for (unsigned k = 0; r->shade && k < r->replica_count; k++)
        loads[k] = &r->shade->loads[k];
    if (!r->shade)
        return;
    node_bookings_check(r->shade->bookings, loads, r->replica_count);
    CHECK(node_bookings_open_count(r->shade->bookings) <= node_bookings_open_count(r->bookings));
}

static bool shade_create(struct node_router *r)
{
    struct node_shade *s = r->shade ? r->shade : calloc(1, sizeof *s);
    if (!s)
        return false;
    if (!r->shade && node_bookings_create(&s->bookings) != ERR_OK) {
        free(s);
        return false;
    }
    for (unsigned k = 0; !r->shade && k < NODE_REPLICAS_MAX; k++) {
        node_load_init(&s->loads[k]);
        node_belief_init(&s->beliefs[k]);
    }
    r->shade = s;
    return true;
}

void node_router_shadow_notice(struct node_router *r, const struct crdt_index_stats *stats)
{
    /* 1 of CHANCE ids of real prompts looks like an id of shadow mode. */
    enum { CHANCE = 256, CLEARLY = CHANCE / 4, ENOUGH = 64 };
    struct node_apart_seen now = {stats->inserted, stats->apart}, *seen = &r->apart_seen;
    if (now.inserted < seen->inserted) /* the state was replaced */
        *seen = (struct node_apart_seen){0};
    uint64_t apart = now.apart - seen->apart;
    if (apart < ENOUGH)
        return;
    if (apart * CLEARLY > now.inserted - seen->inserted)
        DISCARD(crdt_index_split(r->index));
    *seen = now;
}

#define SWAP(type, a, b)                                                                           \
    do {                                                                                           \
        type kept = (a);                                                                           \
        (a) = (b);                                                                                 \
        (b) = kept;                                                                                \
    } while (0)

static void swap(struct node_router *r)
{
    struct node_shade *s = r->shade;
    SWAP(struct node_bookings *, r->bookings, s->bookings);
    for (unsigned k = 0; k < r->replica_count; k++) {
        SWAP(struct node_load, r->replicas[k].load, s->loads[k]);
        SWAP(struct node_room, r->replicas[k].room, s->rooms[k]);
        SWAP(struct node_belief, r->replicas[k].belief, s->beliefs[k]);
    }
}

/* The other routers publish their real loads. Their choices in shadow mode are not known, so their
 * work counts evenly, with as much prefill per request as at this router. */
static struct node_remote_load others_evenly(const struct node_router *r)
{
    struct node_remote_load sum = {0};
    uint64_t own_requests = 0, own_prefill = 0;
    unsigned count = r->candidate_count;
    for (unsigned i = 0; i < count; i++) {
        unsigned k = r->candidates[i].replica;
        const struct node_load *real = &r->replicas[k].load;
        sum.requests += real->remote.requests;
        sum.context_tokens += real->remote.context_tokens;
        own_requests += real->requests;
        own_prefill += r->shade->loads[k].prefill_tokens;
    }
    if (count == 0 || sum.requests == 0)
        return (struct node_remote_load){0};
    double own = number_max((double)own_requests, 1);
    return (struct node_remote_load){
        .requests = (sum.requests + count - 1) / count,
        .context_tokens = sum.context_tokens / count,
        .decoding_tokens = sum.context_tokens / count,
        .prefill_tokens = (uint64_t)((double)own_prefill / own * (double)sum.requests / count),
    };
}

/* The most requests and tokens that ran at any candidate at once. A plain policy spreads requests
 * evenly, so the replicas it uses rarely run many at once. */
static struct node_room_amount most_ran(const struct node_router *r)
{
    struct node_room_amount most = {0};
    for (unsigned i = 0; i < r->candidate_count; i++) {
        struct node_room_amount ran = r->shade->rooms[r->candidates[i].replica].ran;
        most.requests = number_max(most.requests, ran.requests);
        most.tokens = number_max(most.tokens, ran.tokens);
    }
    return most;
}

/* Takes the cache size from the real belief, because only the real belief learns from answers. */
static void belief_follow(struct node_router *r, unsigned k)
{
    struct crdt_index_ring ring = crdt_index_ring_part(r->index, k, true);
    struct node_belief *b = &r->shade->beliefs[k];
    struct node_shade_seen *seen = &r->shade->seen[k];
    b->stale |= seen->newest != ring.newest || seen->total != ring.total ||
                b->factor != r->replicas[k].belief.factor;
    b->factor = r->replicas[k].belief.factor;
    *seen = (struct node_shade_seen){ring.newest, ring.total};
}

bool node_router_shadow_enter(struct node_router *r, struct node_request *request)
{
    static const struct chain none;
    if (!shade_create(r))
        return false;
    struct node_remote_load others = others_evenly(r);
    struct node_room_amount most = most_ran(r);
    for (unsigned k = 0; k < r->replica_count; k++) {
        struct node_room *room = &r->shade->rooms[k];
        const struct node_room *real = &r->replicas[k].room;
        r->shade->loads[k].remote = others;
        room->ended = real->ended;
        room->ran_anywhere.requests = number_max(most.requests, real->ran_anywhere.requests);
        room->ran_anywhere.tokens = number_max(most.tokens, real->ran_anywhere.tokens);
        belief_follow(r, k);
    }
    swap(r);
    r->shadow_of = request->chain ? request->chain : &none;
    if (request->chain) {
        node_shadow_chain(&r->shadow_chain, request->chain);
        request->chain = &r->shadow_chain;
    }
    return true;
}

void node_router_shadow_leave(struct node_router *r)
{
    CHECK(r->shadow_of != NULL);
    swap(r);
    r->shadow_of = NULL;
}
