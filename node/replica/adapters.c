#include "node/replica/adapters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/number.h"
#include "node/replica/learn.h"

enum {
    WAYS = 8,        /* places in which the demand for an adapter may stand */
    SAMPLES = 9,     /* of which the median counts */
    SAMPLES_MIN = 3, /* from which on it does: one stall says nothing */
};

/* How far back demand counts: long enough to know an adapter that is asked for once a minute. */
static const double demand_ms = 600000;

/* How sharply the wanted and the others differ: one asked for half as often as the marginal one
 * is wanted 0.06, one twice as often 0.94. */
static const int wanted_power = 4;

/* Until something is learned: from the memory of the host it takes tens of milliseconds, from a
 * disk a second. It must be long enough for adapters to stay where they are. */
static const double load_believed_s = 0.3;

static const double took_max_s = 60;

struct samples {
    unsigned count; /* since the start */
    float took_s[SAMPLES];
};

struct holder {
    uint16_t slots; /* 0: not said */
    uint16_t count;
    uint32_t adapters[NODE_ADAPTER_SLOTS_MAX]; /* the one used last comes first */
    uint64_t used_ms[NODE_ADAPTER_SLOTS_MAX];
    uint32_t users[NODE_ADAPTER_SLOTS_MAX];
    float wanted[NODE_ADAPTER_SLOTS_MAX];
    float wanted_mean; /* of all that are held, at the last tick */
    struct samples loaded, held;
};

struct demand {
    uint32_t adapter; /* 0: none */
    struct node_fading requests;
};

struct node_adapters {
    struct holder holders[NODE_REPLICAS_MAX];
    struct demand demands[NODE_ADAPTERS_MAX];
    double own_load_s[NODE_REPLICAS_MAX]; /* what a replica shows; < 0: too little */
    double fleet_load_s;
    double marginal; /* demand for the adapter that just has a slot */
    bool any;        /* was asked for, ever */
    float scratch[NODE_ADAPTERS_MAX];
};

int node_adapters_create(struct node_adapters **out)
{
    struct node_adapters *a = calloc(1, sizeof *a);
    if (!a)
        return ERR_NOMEM;
    a->fleet_load_s = load_believed_s;
    for (unsigned k = 0; k < NODE_REPLICAS_MAX; k++)
        a->own_load_s[k] = -1;
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

/* --- how much each is wanted ---------------------------------------------------------------- */

static struct demand *set_of(struct node_adapters *a, uint32_t adapter)
{
    return &a->demands[hash_mix(adapter) % (NODE_ADAPTERS_MAX / WAYS) * WAYS];
}

static double demand_now(const struct demand *d, uint64_t now_ms)
{
    return node_fading_now(&d->requests, demand_ms, now_ms);
}

void node_adapters_asked(struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    struct demand *set = set_of(a, adapter), *at = &set[0];
    a->any = true;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].adapter == adapter) {
            node_fading_add(&set[i].requests, 1, demand_ms, now_ms);
            return;
        }
        if (demand_now(&set[i], now_ms) < demand_now(at, now_ms))
            at = &set[i];
    }
    *at = (struct demand){.adapter = adapter, .requests = {1, now_ms}};
}

static double demand_for(const struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    const struct demand *set = &a->demands[hash_mix(adapter) % (NODE_ADAPTERS_MAX / WAYS) * WAYS];
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].adapter == adapter)
            return demand_now(&set[i], now_ms);
    }
    return 0;
}

static double wanted_of(const struct node_adapters *a, uint32_t adapter, uint64_t now_ms)
{
    double demand = demand_for(a, adapter, now_ms);
    return demand <= 0 ? 0 : 1 / (1 + pow(a->marginal / demand, wanted_power));
}

/* --- what a replica holds ------------------------------------------------------------------- */

static unsigned place_of(const struct holder *h, uint32_t adapter)
{
    unsigned i = 0;
    while (i < h->count && h->adapters[i] != adapter)
        i++;
    return i;
}

/* The one that gives way; count: all are in use. */
static unsigned idle_last(const struct holder *h)
{
    for (unsigned i = h->count; i > 0; i--) {
        if (h->users[i - 1] == 0)
            return i - 1;
    }
    return h->count;
}

static void take_out(struct holder *h, unsigned at)
{
    unsigned behind = --h->count - at;
    memmove(&h->adapters[at], &h->adapters[at + 1], behind * sizeof h->adapters[0]);
    memmove(&h->used_ms[at], &h->used_ms[at + 1], behind * sizeof h->used_ms[0]);
    memmove(&h->users[at], &h->users[at + 1], behind * sizeof h->users[0]);
    memmove(&h->wanted[at], &h->wanted[at + 1], behind * sizeof h->wanted[0]);
}

static void put_in(struct holder *h, unsigned at, uint32_t adapter, uint64_t at_ms, uint32_t users,
                   double wanted)
{
    unsigned behind = h->count++ - at;
    memmove(&h->adapters[at + 1], &h->adapters[at], behind * sizeof h->adapters[0]);
    memmove(&h->used_ms[at + 1], &h->used_ms[at], behind * sizeof h->used_ms[0]);
    memmove(&h->users[at + 1], &h->users[at], behind * sizeof h->users[0]);
    memmove(&h->wanted[at + 1], &h->wanted[at], behind * sizeof h->wanted[0]);
    h->adapters[at] = adapter;
    h->used_ms[at] = at_ms;
    h->users[at] = users;
    h->wanted[at] = (float)wanted;
}

/* Down to so many. One in use goes too where nothing else is left: more run than was believed. */
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
    struct holder *h = holder_of(a, replica);
    h->count = 0;
    h->slots = 0;
    h->loaded.count = h->held.count = 0;
    a->own_load_s[replica] = -1;
}

static unsigned used_later(const struct holder *h, uint64_t at_ms)
{
    unsigned i = 0;
    while (i < h->count && h->used_ms[i] > at_ms)
        i++;
    return i;
}

void node_adapters_use(struct node_adapters *a, unsigned replica, uint32_t adapter, uint64_t now_ms)
{
    struct holder *h = holder_of(a, replica);
    unsigned old = place_of(h, adapter);
    uint32_t users = 1;
    if (old < h->count) {
        users += h->users[old];
        take_out(h, old);
    }
    shrink(h, slots_of(h) - 1);
    bool later = h->count > 0 && h->used_ms[0] > now_ms;
    put_in(h, 0, adapter, later ? h->used_ms[0] : now_ms, users, wanted_of(a, adapter, now_ms));
}

void node_adapters_seen(struct node_adapters *a, unsigned replica, uint32_t adapter, uint64_t at_ms)
{
    struct holder *h = holder_of(a, replica);
    unsigned old = place_of(h, adapter);
    uint32_t users = 0;
    if (old < h->count) {
        if (h->used_ms[old] >= at_ms)
            return;
        users = h->users[old];
        take_out(h, old);
    } else if (used_later(h, at_ms) >= slots_of(h)) {
        return; /* it had to give way since */
    }
    shrink(h, slots_of(h) - 1);
    put_in(h, used_later(h, at_ms), adapter, at_ms, users, wanted_of(a, adapter, at_ms));
}

void node_adapters_release(struct node_adapters *a, unsigned replica, uint32_t adapter)
{
    struct holder *h = holder_of(a, replica);
    unsigned at = place_of(h, adapter);
    if (at < h->count && h->users[at] > 0) /* it may have been forgotten since */
        h->users[at]--;
}

void node_adapters_remove(struct node_adapters *a, unsigned replica, uint32_t adapter)
{
    struct holder *h = holder_of(a, replica);
    unsigned at = place_of(h, adapter);
    if (at < h->count)
        take_out(h, at);
}

unsigned node_adapters_held(const struct node_adapters *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return a->holders[replica].count;
}

/* --- what it would mean --------------------------------------------------------------------- */

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
    need.wanted = h->wanted[victim];
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
            a->scratch[count++] = (float)demand_now(&a->demands[i], now_ms);
    }
    a->marginal = 0;
    if (count == 0 || slots == 0)
        return;
    qsort(a->scratch, count, sizeof a->scratch[0], descending);
    a->marginal = slots < count ? a->scratch[slots - 1] : 0;
}

static void holders_weigh(struct node_adapters *a, uint64_t now_ms)
{
    for (unsigned k = 0; k < NODE_REPLICAS_MAX; k++) {
        struct holder *h = &a->holders[k];
        double sum = 0;
        for (unsigned i = 0; i < h->count; i++)
            sum += h->wanted[i] = (float)wanted_of(a, h->adapters[i], now_ms);
        if (h->count > 0)
            h->wanted_mean = (float)(sum / h->count);
    }
}

/* --- what loading takes --------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    return -descending(a, b);
}

static double median(const struct samples *s)
{
    float sorted[SAMPLES];
    unsigned count = s->count < SAMPLES ? s->count : SAMPLES;
    if (count == 0)
        return 0;
    memcpy(sorted, s->took_s, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], ascending);
    return sorted[count / 2];
}

void node_adapters_took(struct node_adapters *a, unsigned replica, bool loaded, double seconds)
{
    struct holder *h = holder_of(a, replica);
    struct samples *s = loaded ? &h->loaded : &h->held;
    s->took_s[s->count++ % SAMPLES] = (float)number_min(seconds, took_max_s);
    if (h->loaded.count >= SAMPLES_MIN)
        a->own_load_s[replica] = number_max(median(&h->loaded) - median(&h->held), 0);
}

static void fleet_find(struct node_adapters *a)
{
    unsigned count = 0;
    for (unsigned k = 0; k < NODE_REPLICAS_MAX; k++) {
        if (a->own_load_s[k] >= 0)
            a->scratch[count++] = (float)a->own_load_s[k];
    }
    if (count == 0)
        return;
    qsort(a->scratch, count, sizeof a->scratch[0], ascending);
    a->fleet_load_s = a->scratch[count / 2];
}

double node_adapters_load_s(const struct node_adapters *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return a->own_load_s[replica] >= 0 ? a->own_load_s[replica] : a->fleet_load_s;
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
            CHECK(h->adapters[i] != 0 && (i == 0 || h->used_ms[i] <= h->used_ms[i - 1]));
    }
}
