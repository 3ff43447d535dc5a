/* The registry's start, invariants and passage of time. */
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "crdt/registry_internal.h"

/* Longest time, in seconds, between two calls of crdt_registry_advance() in a running router. */
enum { AWAKE_S = 2 };

/* --- time ----------------------------------------------------------------------------------- */

/* Age at which this router names a row again: a quarter of the time to live, plus up to an eighth.
 * The extra part differs by router, so that the first router to repeat a name spares the others. */
static uint32_t named_again_after(const struct crdt_registry *r, const struct crdt_replica *row)
{
    uint32_t ttl = r->config.ttl_s;
    return ttl / 4 + (uint32_t)(hash_mix(r->config.self ^ row->key) % (ttl / 8 + 1));
}

uint32_t crdt_registry_floor_s(const struct crdt_registry *r)
{
    return r->floor;
}

static uint32_t floor_at(const struct crdt_registry *r, uint32_t now)
{
    return now > r->config.ttl_s ? now - r->config.ttl_s : 0;
}

/* True if this router repeats the name of a replica added by operators. This router also repeats a
 * row that arrived just now and would expire: the clock of the router that named the replica may be
 * behind, and this router has not tried the replica yet. */
static bool vouches(const struct crdt_registry *r, const struct crdt_replica *row)
{
    bool untried = row->named < r->floor && r->now - row->heard_s <= r->config.ttl_s / 16;
    return row->asked || crdt_registry_is_up(r, row) || untried || BUG(NAMES_REPEATED);
}

void crdt_registry_advance(struct crdt_registry *r, uint32_t now_s)
{
    const uint32_t now = now_s;
    if (now <= r->now)
        return;
    /* A router that slept must not bring back an added replica forgotten by the others. A router
     * that is awake names such a row again in the row's last second, because the row may come from
     * a clock that is behind. */
    uint32_t added_floor = now - r->now <= AWAKE_S ? r->floor : floor_at(r, now);
    r->now = now;
    r->floor = floor_at(r, now);
    uint64_t forgotten = r->stats.forgotten;
    for (int at = -1; (at = crdt_registry_next(r, at)) >= 0;) {
        struct crdt_replica *row = &r->row[at];
        bool added = row->wish == CRDT_WISH_ADDED && row->named >= added_floor && vouches(r, row);
        bool looked_after = row->ours || added;
        if (looked_after && now - row->named >= named_again_after(r, row) && now > row->named) {
            row->named = now;
            crdt_registry_rehash(r, (unsigned)at);
            crdt_registry_tell(r, (unsigned)at);
        }
        if (row->named < r->floor) {
            crdt_registry_remove(r, (unsigned)at);
            r->stats.forgotten++;
        }
    }
    if (r->stats.forgotten != forgotten)
        crdt_registry_index(r);
    crdt_registry_arrange(r); /* time alone may change which rows count as up */
}

/* --- start and end ---------------------------------------------------------------------------- */

int crdt_registry_create(struct crdt_registry **out, const struct crdt_registry_config *config)
{
    struct crdt_registry_config c = *config;
    CHECK(c.slots > 0 && c.slots <= CRDT_REPLICAS_MAX && c.rows_max <= CRDT_ROWS_MAX);
    unsigned most = c.slots < CRDT_NAMES_MAX ? c.slots : CRDT_NAMES_MAX;
    if (c.names_max == 0 || c.names_max > most)
        c.names_max = most;
    if (c.rows_max == 0)
        c.rows_max = CRDT_ROWS_MAX;
    if (c.ttl_s == 0)
        c.ttl_s = CRDT_NAMES_TTL_S;
    if (c.skew_s == 0)
        c.skew_s = c.ttl_s / 8;
    struct crdt_registry *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->config = c;
    r->places = c.slots + c.rows_max;
    r->now = c.now_s;
    r->floor = floor_at(r, c.now_s);
    r->stats.names_max = c.names_max;
    hash_secret_from_seed(&r->secret, 0x67726170); /* any constant, the same at all routers */
    *out = r;
    return 0;
}

void crdt_registry_destroy(struct crdt_registry *r)
{
    free(r);
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void crdt_registry_copy(struct crdt_registry *r, const struct crdt_registry *from)
{
    CHECK(r->places == from->places && r->stats.names + r->stats.waiting == 0 && r->digest == 0);
    for (int i = -1; (i = crdt_registry_next(from, i)) >= 0;) {
        unsigned at = (unsigned)i;
        struct crdt_replica *row = &r->row[at];
        *row = from->row[at];
        row->named = lesser(row->named, r->now);
        row->born = lesser(row->born, r->now);
        r->rkey[at] = from->rkey[at];
        crdt_registry_occupy(r, at);
        crdt_registry_rehash(r, at);
        crdt_registry_tell(r, at);
    }
    r->count = from->count;
    memcpy(r->held, from->held, sizeof r->held);
    crdt_registry_index(r);
    crdt_registry_arrange(r);
}

static void check_place(const struct crdt_registry *r, unsigned at)
{
    const struct crdt_replica *row = &r->row[at];
    CHECK((row->name_len > 0) == (r->rkey[at] != 0));
    if (row->name_len == 0) {
        CHECK(r->hash[at] == 0 && !crdt_registry_is_news(r, at));
        return;
    }
    CHECK(row->name_len <= CRDT_NAME_MAX && row->name[row->name_len] == '\0');
    CHECK(row->born <= row->named && row->named >= r->floor);
    CHECK(r->rkey[at] == row->rkey);
    CHECK(crdt_registry_place(r, row->key) == (int)at);
    CHECK(crdt_registry_find_rkey(r, row->rkey) == (int)at);
    CHECK(crdt_registry_is_derived(r, at));
}

void crdt_registry_check(const struct crdt_registry *r)
{
    uint64_t digest = 0;
    unsigned in_use = 0, waiting = 0, news = 0;
    bool room = false;
    for (unsigned at = 0; at < r->places; at++) {
        check_place(r, at);
        digest += r->hash[at];
        news += crdt_registry_is_news(r, at);
        bool occupied = crdt_registry_occupied(r, at);
        *(at < r->config.slots ? &in_use : &waiting) += occupied;
        room = room || (at < r->config.slots && !occupied && !r->held[at]);
        CHECK(!occupied || at >= r->config.slots || at < r->count);
    }
    CHECK(digest == r->digest && news == r->news_count);
    CHECK(in_use == r->stats.names && waiting == r->stats.waiting && in_use <= r->config.names_max);
    CHECK(waiting == 0 || in_use == r->config.names_max || !room);
    if (waiting == 0 || in_use == 0)
        return;
    const struct crdt_replica *first = &r->row[crdt_registry_next_in(r)];
    const struct crdt_replica *last = &r->row[crdt_registry_next_out(r)];
    CHECK(
        in_use < r->config.names_max ||
        !crdt_registry_is_smaller(crdt_registry_rank_of(r, first), crdt_registry_rank_of(r, last)));
}
