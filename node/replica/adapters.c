#include "node/replica/adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/number.h"
#include "node/replica/constants.h"
#include "node/replica/learn.h"

enum {
    WAYS = 8,    /* number of rows of `demands` in which an adapter's row may be */
    SAMPLES = 9, /* the median is that of this many last samples */
};

struct samples {
    unsigned count; /* number of samples since the start */
    float took_s[SAMPLES];
};

struct held {
    uint32_t adapter;
    uint32_t users;
    uint64_t used_ms;
    float wanted; /* demand at the last use, or at the last tick */
};

struct holder {
    uint16_t slots; /* 0: not reported */
    uint16_t count;
    struct held held[NODE_ADAPTER_SLOTS_MAX]; /* most recently used first */
    float wanted_mean;                        /* mean demand of the adapters in the slots, at the
                                               * last tick */
    struct samples took[2];                   /* [0]: prompts whose adapter had a slot; [1]: prompts
                                               * whose adapter had to be loaded */
    double load_s;                            /* load time from `took`, if there are enough
                                               * samples */
};

struct demand {
    uint32_t adapter; /* 0: none */
    struct node_fading requests;
};

struct node_adapters {
    struct holder holders[NODE_REPLICAS_MAX];
    struct demand demands[NODE_ADAPTERS_MAX];
    double fleet_load_s;
    double marginal; /* faded number of requests for the marginal adapter; 0: all adapters fit the
                      * slots */
    bool any;        /* some adapter was ever requested */
    float demands_now[NODE_ADAPTERS_MAX];
    struct node_vote loads[NODE_REPLICAS_MAX];
};

int node_adapters_create(struct node_adapters **out)
{
    struct node_adapters *a = calloc(1, sizeof *a);
    if (!a)
        return ERR_NOMEM;
    a->fleet_load_s = RULE(ADAPTER_LOAD_S);
    *out = a;
    return ERR_OK;
}

void node_adapters_destroy(struct node_adapters *a)
{
    free(a);
}

static struct holder *holder_of(struct node_adapters *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return &a->holders[replica];
}

static unsigned slots_of(const struct holder *h)
{
    return h->slots > 0 ? h->slots : NODE_ADAPTER_SLOTS;
}

/* --- demand for each adapter ---------------------------------------------------------------- */

/* The first of the WAYS rows of `demands` in which the adapter's row may be. */
static unsigned places_of(uint32_t adapter)
{
    return hash_mix(adapter) % (NODE_ADAPTERS_MAX / WAYS) * WAYS;
}

static double demand_now(const struct demand *d, uint64_t now_ms)
{
    return node_fading_now(&d->requests, RULE(ADAPTER_DEMAND_MS), now_ms);
}

void node_adapters_asked(struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    struct demand *set = &a->demands[places_of(adapter)], *at = &set[0];
    a->any = true;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].adapter == adapter) {
            node_fading_add(&set[i].requests, 1, RULE(ADAPTER_DEMAND_MS), now_ms);
            return;
        }
        if (demand_now(&set[i], now_ms) < demand_now(at, now_ms))
            at = &set[i];
    }
    *at = (struct demand){.adapter = adapter, .requests = {1, now_ms}};
}

static double demand_for(const struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    const struct demand *set = &a->demands[places_of(adapter)];
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].adapter == adapter)
            return demand_now(&set[i], now_ms);
    }
    return 0;
}

static double wanted_of(const struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    double demand = demand_for(a, adapter, now_ms);
    return demand <= 0 ? 0 : 1 / (1 + pow(a->marginal / demand, RULE(ADAPTER_POWER)));
}

/* --- what a replica holds ------------------------------------------------------------------- */

static unsigned place_of(const struct holder *h, uint32_t adapter)
{
    unsigned i = 0;
    while (i < h->count && h->held[i].adapter != adapter)
        i++;
    return i;
}

/* Index of the adapter to be evicted; h->count: all adapters are in use. */
static unsigned idle_last(const struct holder *h)
{
    for (unsigned i = h->count; i > 0; i--) {
        if (h->held[i - 1].users == 0)
            return i - 1;
    }
    return h->count;
}

static void take_out(struct holder *h, unsigned at)
{
    h->count--;
    memmove(&h->held[at], &h->held[at + 1], (h->count - at) * sizeof h->held[0]);
}

/* Evicts adapters until `count` are left. If all are in use, evicts adapters in use: the engine has
 * more slots than believed. */
static void shrink(struct holder *h, unsigned count)
{
    while (h->count > count) {
        unsigned idle = idle_last(h);
        take_out(h, idle < h->count ? idle : h->count - 1u);
    }
}

void node_adapters_slots(struct node_adapters *a, unsigned replica, unsigned slots)
{
    struct holder *h = holder_of(a, replica);
    if (slots == 0)
        return;
    h->slots = (uint16_t)(slots < NODE_ADAPTER_SLOTS_MAX ? slots : NODE_ADAPTER_SLOTS_MAX);
    shrink(h, h->slots);
}

unsigned node_adapters_slots_of(const struct node_adapters *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return slots_of(&a->holders[replica]);
}

void node_adapters_forget(struct node_adapters *a, unsigned replica)
{
    holder_of(a, replica)->count = 0;
}

void node_adapters_leave(struct node_adapters *a, unsigned replica)
{
    *holder_of(a, replica) = (struct holder){0};
}

static unsigned used_later(const struct holder *h, uint64_t at_ms)
{
    unsigned i = 0;
    while (i < h->count && h->held[i].used_ms > at_ms)
        i++;
    return i;
}

/* Puts the adapter into a slot. `place` is the adapter's index now, or h->count if it has no
 * slot. */
static void put(struct node_adapters *a, struct holder *h, unsigned place, uint32_t adapter,
                unsigned new_users, uint64_t at_ms)
{
    struct held held = {.adapter = adapter};
    if (place < h->count) {
        held = h->held[place];
        take_out(h, place);
    }
    held.users += new_users;
    held.used_ms = at_ms > held.used_ms ? at_ms : held.used_ms;
    held.wanted = (float)wanted_of(a, adapter, at_ms);
    shrink(h, slots_of(h) - 1);
    unsigned to = used_later(h, held.used_ms);
    memmove(&h->held[to + 1], &h->held[to], (h->count - to) * sizeof h->held[0]);
    h->held[to] = held;
    h->count++;
}

void node_adapters_use(struct node_adapters *a, unsigned replica, uint32_t adapter, uint64_t now_ms)
{
    struct holder *h = holder_of(a, replica);
    put(a, h, place_of(h, adapter), adapter, 1, now_ms);
}

void node_adapters_seen(struct node_adapters *a, unsigned replica, uint32_t adapter, uint64_t at_ms)
{
    struct holder *h = holder_of(a, replica);
    unsigned place = place_of(h, adapter);
    /* True if this use is already known, or the adapter was evicted since. */
    bool late =
        place < h->count ? h->held[place].used_ms >= at_ms : used_later(h, at_ms) >= slots_of(h);
    if (!late)
        put(a, h, place, adapter, 0, at_ms);
}

void node_adapters_release(struct node_adapters *a, unsigned replica, uint32_t adapter)
{
    struct holder *h = holder_of(a, replica);
    unsigned at = place_of(h, adapter);
    if (at < h->count && h->held[at].users > 0) /* the adapter may have been forgotten since */
        h->held[at].users--;
}

unsigned node_adapters_held(const struct node_adapters *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return a->holders[replica].count;
}

/* --- consequences of use -------------------------------------------------------------------- */

bool node_adapters_hold(const struct node_adapters *a, unsigned replica, uint32_t adapter)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    const struct holder *h = &a->holders[replica];
    return place_of(h, adapter) < h->count;
}

struct node_adapter_need node_adapters_need(const struct node_adapters *a, unsigned replica,
                                            uint32_t adapter, uint64_t now_ms)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    const struct holder *h = &a->holders[replica];
    struct node_adapter_need need = {.loads = place_of(h, adapter) == h->count};
    if (!need.loads || h->count < slots_of(h))
        return need;
    unsigned victim = idle_last(h);
    need.waits = victim == h->count;
    if (need.waits)
        victim = h->count - 1u;
    double own = wanted_of(a, adapter, now_ms);
    need.wanted = h->held[victim].wanted;
    need.unlike = own * (1 - h->wanted_mean) + (1 - own) * h->wanted_mean;
    return need;
}

static int descending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void marginal_find(struct node_adapters *a, uint64_t slots, uint64_t now_ms)
{
    unsigned count = 0;
    for (unsigned i = 0; i < NODE_ADAPTERS_MAX; i++) {
        if (a->demands[i].adapter != 0)
            a->demands_now[count++] = (float)demand_now(&a->demands[i], now_ms);
    }
    a->marginal = 0;
    if (count == 0 || slots == 0)
        return;
    qsort(a->demands_now, count, sizeof a->demands_now[0], descending);
    a->marginal = slots < count ? a->demands_now[slots - 1] : 0;
}

static void holders_weigh(struct node_adapters *a, uint64_t now_ms)
{
    for (unsigned k = 0; k < NODE_REPLICAS_MAX; k++) {
        struct holder *h = &a->holders[k];
        double sum = 0;
        for (unsigned i = 0; i < h->count; i++)
            sum += h->held[i].wanted = (float)wanted_of(a, h->held[i].adapter, now_ms);
        if (h->count > 0)
            h->wanted_mean = (float)(sum / h->count);
    }
}

/* --- what loading takes --------------------------------------------------------------------- */

static double median(const struct samples *s)
{
    struct node_vote votes[SAMPLES];
    unsigned count = s->count < SAMPLES ? s->count : SAMPLES;
    for (unsigned i = 0; i < count; i++)
        votes[i] = (struct node_vote){s->took_s[i], 1};
    return node_votes_median(votes, count);
}

static bool load_is_known(const struct holder *h)
{
    return h->took[true].count > RULE(FEW);
}

void node_adapters_took(struct node_adapters *a, unsigned replica, bool loaded, double seconds)
{
    struct holder *h = holder_of(a, replica);
    struct samples *s = &h->took[loaded];
    s->took_s[s->count++ % SAMPLES] = (float)number_min(seconds, RULE(ADAPTER_TOOK_MAX_S));
    if (load_is_known(h))
        h->load_s = number_max(median(&h->took[true]) - median(&h->took[false]), 0);
}

static void fleet_find(struct node_adapters *a)
{
    unsigned count = 0;
    for (unsigned k = 0; k < NODE_REPLICAS_MAX; k++) {
        if (load_is_known(&a->holders[k]))
            a->loads[count++] = (struct node_vote){a->holders[k].load_s, 1};
    }
    if (count > 0)
        a->fleet_load_s = node_votes_median(a->loads, count);
}

double node_adapters_load_s(const struct node_adapters *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    const struct holder *h = &a->holders[replica];
    return load_is_known(h) ? h->load_s : a->fleet_load_s;
}

void node_adapters_tick(struct node_adapters *a, uint64_t slots, uint64_t now_ms)
{
    if (!a->any)
        return;
    marginal_find(a, slots, now_ms);
    holders_weigh(a, now_ms);
    fleet_find(a);
}

void node_adapters_check(const struct node_adapters *a)
{
    for (unsigned k = 0; k < NODE_REPLICAS_MAX; k++) {
        const struct holder *h = &a->holders[k];
        CHECK(h->count <= slots_of(h));
        for (unsigned i = 0; i < h->count; i++)
            CHECK(h->held[i].adapter != 0 &&
                  (i == 0 || h->held[i].used_ms <= h->held[i - 1].used_ms));
    }
}
