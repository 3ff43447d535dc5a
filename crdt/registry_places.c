/* The places of rows: which rows have a slot, which wait, and the look-up tables. */
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "crdt/registry_internal.h"

/* --- look-ups ------------------------------------------------------------------------------- */

static void put(struct crdt_registry_lookup *t, uint64_t key, unsigned place)
{
    uint64_t at = hash_mix(key);
    while (t->place[at % CRDT_LOOKUP_PLACES] != 0)
        at++;
    t->place[at % CRDT_LOOKUP_PLACES] = (uint16_t)(place + 1);
}

int crdt_registry_place(const struct crdt_registry *r, uint64_t key)
{
    for (uint64_t at = hash_mix(key);; at++) {
        unsigned place = r->by_key.place[at % CRDT_LOOKUP_PLACES];
        if (place == 0)
            return -1;
        if (r->row[place - 1].key == key)
            return (int)place - 1;
    }
}

static int find_retired(const struct crdt_registry *r, uint32_t rkey)
{
    for (unsigned i = 0; i < r->count; i++)
        if (rkey != 0 && r->rkey_before[i] == rkey)
            return (int)i;
    return -1;
}

int crdt_registry_find_rkey(const struct crdt_registry *r, uint32_t rkey)
{
    for (uint64_t at = hash_mix(rkey);; at++) {
        unsigned place = r->by_rkey.place[at % CRDT_LOOKUP_PLACES];
        if (place == 0)
            return BUG(SKIP_FENCE) ? find_retired(r, rkey) : -1;
        if (r->rkey[place - 1] == rkey)
            return (int)place - 1;
    }
}

void crdt_registry_index(struct crdt_registry *r)
{
    memset(&r->by_key, 0, sizeof r->by_key);
    memset(&r->by_rkey, 0, sizeof r->by_rkey);
    for (int at = -1; (at = crdt_registry_next(r, at)) >= 0;) {
        put(&r->by_key, r->row[at].key, (unsigned)at);
        put(&r->by_rkey, r->rkey[at], (unsigned)at);
    }
}

int crdt_registry_next(const struct crdt_registry *r, int after)
{
    unsigned place = (unsigned)(after + 1);
    for (; place < r->count; place++)
        if (r->rkey[place] != 0)
            return (int)place;
    for (place = place < r->config.slots ? r->config.slots : place;
         r->stats.waiting > 0 && place < r->places; place++)
        if (r->rkey[place] != 0)
            return (int)place;
    return -1;
}

/* --- rows added and removed ------------------------------------------------------------------- */

int crdt_registry_news(const struct crdt_registry *r)
{
    for (unsigned word = 0; r->news_count > 0 && word < ARRAY_LEN(r->news); word++)
        if (r->news[word] != 0)
            return (int)(word * 64 + (unsigned)__builtin_ctzll(r->news[word]));
    return -1;
}

void crdt_registry_sent(struct crdt_registry *r, unsigned place)
{
    r->news_count -= crdt_registry_is_news(r, place);
    r->news[place / 64] &= ~(UINT64_C(1) << place % 64);
}

void crdt_registry_tell(struct crdt_registry *r, unsigned place)
{
    CHECK(crdt_registry_occupied(r, place));
    r->news_count += !crdt_registry_is_news(r, place);
    r->news[place / 64] |= UINT64_C(1) << place % 64;
}

static unsigned *counter_of(struct crdt_registry *r, unsigned place)
{
    return place < r->config.slots ? &r->stats.names : &r->stats.waiting;
}

void crdt_registry_occupy(struct crdt_registry *r, unsigned place)
{
    ++*counter_of(r, place);
    if (place < r->config.slots && place >= r->count)
        r->count = place + 1;
}

/* Empties a place, but leaves the row's hash in the digest. The look-ups must be rebuilt
 * afterwards. */
static void vacate(struct crdt_registry *r, unsigned place)
{
    --*counter_of(r, place);
    crdt_registry_sent(r, place);
    r->rkey[place] = 0;
    r->hash[place] = 0;
    memset(&r->row[place], 0, sizeof r->row[place]);
    if (place < r->config.slots)
        r->rkey_before[place] = 0;
    r->version++;
}

void crdt_registry_remove(struct crdt_registry *r, unsigned place)
{
    r->digest -= r->hash[place];
    vacate(r, place);
}

static void move(struct crdt_registry *r, unsigned from, unsigned to)
{
    CHECK(!crdt_registry_occupied(r, to) && r->rkey[from] != 0);
    r->row[to] = r->row[from];
    r->rkey[to] = r->rkey[from];
    r->hash[to] = r->hash[from];
    crdt_registry_occupy(r, to);
    if (crdt_registry_is_news(r, from))
        crdt_registry_tell(r, to);
    vacate(r, from);
}

/* --- the limit ------------------------------------------------------------------------------ */

/* The place of the smallest or greatest row at places from `begin` on and below `end`, or -1. */
static int extreme(const struct crdt_registry *r, unsigned begin, unsigned end, bool smallest)
{
    int found = -1;
    struct crdt_registry_rank extreme_rank = {0};
    for (int at = (int)begin - 1; (at = crdt_registry_next(r, at)) >= 0 && (unsigned)at < end;) {
        struct crdt_registry_rank rank = crdt_registry_rank_of(r, &r->row[at]);
        if (found >= 0 && crdt_registry_is_smaller(rank, extreme_rank) != smallest)
            continue;
        found = at;
        extreme_rank = rank;
    }
    return found;
}

int crdt_registry_next_in(const struct crdt_registry *r)
{
    return extreme(r, r->config.slots, r->places, true);
}

int crdt_registry_next_out(const struct crdt_registry *r)
{
    return extreme(r, 0, r->config.slots, false);
}

static int free_place(const struct crdt_registry *r, unsigned begin, unsigned end)
{
    for (unsigned at = begin; at < end; at++)
        if (!crdt_registry_occupied(r, at) && (at >= r->config.slots || !r->held[at]))
            return (int)at;
    return -1;
}

void crdt_registry_arrange(struct crdt_registry *r)
{
    const unsigned slots = r->config.slots;
    while (r->stats.waiting > 0) {
        int first = crdt_registry_next_in(r);
        if (r->stats.names == r->config.names_max) {
            int last = crdt_registry_next_out(r);
            if (!crdt_registry_is_smaller(crdt_registry_rank_of(r, &r->row[first]),
                                          crdt_registry_rank_of(r, &r->row[last])))
                return;
            int place = free_place(r, slots, r->places);
            CHECK(place >= 0); /* there are more places to wait than waiting rows */
            move(r, (unsigned)last, (unsigned)place);
        } else {
            int slot = free_place(r, 0, slots);
            if (slot < 0)
                return; /* all free slots are held */
            move(r, (unsigned)first, (unsigned)slot);
        }
        crdt_registry_index(r);
    }
}

int crdt_registry_room(struct crdt_registry *r, struct crdt_registry_rank rank)
{
    if (r->stats.names + r->stats.waiting == r->config.rows_max) {
        int last = extreme(r, 0, r->places, false);
        r->stats.refused++;
        if (!crdt_registry_is_smaller(rank, crdt_registry_rank_of(r, &r->row[last])))
            return ERR_FULL;
        crdt_registry_remove(r, (unsigned)last);
        crdt_registry_index(r);
    }
    bool room = r->stats.waiting == 0 && r->stats.names < r->config.names_max;
    int place = room ? free_place(r, 0, r->config.slots) : -1;
    if (place < 0)
        place = free_place(r, r->config.slots, r->places);
    CHECK(place >= 0);
    return place;
}

void crdt_registry_hold(struct crdt_registry *r, unsigned slot, bool held)
{
    CHECK(slot < r->config.slots);
    r->held[slot] = held;
    if (!held)
        crdt_registry_arrange(r);
}
