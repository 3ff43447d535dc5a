#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/index_internal.h"

enum {
    /* A bucket is prefetched this number of points before use, as in index.c: AHEAD for the first
     * bucket, AHEAD_SECOND for a second bucket if needed. */
    AHEAD = 16,
    AHEAD_SECOND = 8,
};

/* --- matching ------------------------------------------------------------------------------- */

static void match_in(const struct crdt_index *x, uint32_t bucket, unsigned second, uint32_t tag,
                     uint8_t code, struct crdt_match *m, unsigned index)
{
    const struct crdt_window *w = &x->window;
    const struct crdt_bucket *b = &x->table.bucket[bucket];
    for (unsigned found = crdt_bucket_find(b, tag, code, second); found != 0; found &= found - 1) {
        uint64_t entry = b->slot[__builtin_ctz(found)];
        if (crdt_entry_is_set(entry)) {
            crdt_holders_match(&x->holders, crdt_entry_set(entry), m, index);
            continue;
        }
        uint32_t stamp = crdt_entry_stamp(entry);
        unsigned replica = crdt_stamp_replica(stamp);
        uint16_t age = crdt_stamp_age((uint16_t)stamp, w->incarnation[replica], w->newest);
        if (age < m->limit[replica])
            crdt_match_resolve(m, w, replica, age, index);
    }
}

static void match_point(const struct crdt_index *x, const struct crdt_place *place, uint8_t code,
                        struct crdt_match *m, unsigned index)
{
    match_in(x, place->first, 0, place->tag, code, m, index);
    if (x->table.bucket[place->first].overflow > 0)
        match_in(x, place->second, CRDT_ENTRY_SECOND, place->tag, code, m, index);
}

static void match_begin(const struct crdt_index *x, struct crdt_match *m, const uint32_t *floors)
{
    const struct crdt_window *w = &x->window;
    uint32_t end = m->replicas > x->seen ? m->replicas : x->seen;
    /* Fills the limits up to a whole lane (crdt/holders.c). Replicas from x->seen on never had an
     * entry. */
    memset(m->limit, 0, (end + 31u) / 32 * 32 * sizeof m->limit[0]);
    for (uint32_t r = 0; r < m->replicas; r++) {
        uint32_t floor = floors != NULL && floors[r] > w->floor ? floors[r] : w->floor;
        bool possible = floor <= w->now + 1 && x->counts.entries_total[r] > 0;
        m->limit[r] = possible ? (uint16_t)(w->now + 2 - floor) : 0;
        m->pending += possible;
    }
}

void crdt_index_match(const struct crdt_index *x, const struct chain *chain,
                      const uint32_t *floor_by_replica, unsigned replicas, uint16_t *length_out,
                      uint32_t *generation_out)
{
    CHECK(replicas <= x->replicas && chain->length <= CHAIN_POINTS_MAX);
    struct crdt_match m; /* 4 KiB, most of which is never touched */
    m.length_out = length_out;
    m.generation_out = generation_out;
    m.replicas = replicas;
    m.pending = 0;
    memset(length_out, 0, replicas * sizeof *length_out);
    if (generation_out != NULL)
        memset(generation_out, 0, replicas * sizeof *generation_out);
    match_begin(x, &m, floor_by_replica);
    /* From the last point to the first: the first hit at a replica is the longest prefix there. */
    struct crdt_place place[AHEAD];
    const unsigned length = chain->length;
    for (unsigned step = 0; step < length + (unsigned)AHEAD && m.pending > 0; step++) {
        if (step >= AHEAD) {
            unsigned i = length - 1 - (step - AHEAD);
            match_point(x, &place[i % AHEAD], chain->points[i].code, &m, i);
        }
        if (step < length) {
            unsigned i = length - 1 - step;
            place[i % AHEAD] = crdt_table_place(&x->table, chain->points[i].id);
            crdt_table_prefetch(&x->table, place[i % AHEAD]);
        }
        if (step >= AHEAD_SECOND && step - AHEAD_SECOND < length)
            crdt_table_prefetch_second(&x->table,
                                       place[(length - 1 - (step - AHEAD_SECOND)) % AHEAD]);
    }
}

/* --- all holders of an id --------------------------------------------------------------------- */

typedef void (*take_fn)(const struct crdt_index *x, void *context, uint32_t stamp);

static inline void take_in(const struct crdt_index *x, uint32_t bucket, unsigned second,
                           uint32_t tag, uint8_t code, take_fn take, void *context)
{
    const struct crdt_bucket *b = &x->table.bucket[bucket];
    for (unsigned found = crdt_bucket_find(b, tag, code, second); found != 0; found &= found - 1) {
        uint64_t entry = b->slot[__builtin_ctz(found)];
        uint32_t stamp = crdt_entry_stamp(entry);
        uint32_t at = 0;
        if (!crdt_entry_is_set(entry)) {
            if (crdt_stamp_alive(&x->window, stamp))
                take(x, context, stamp);
            continue;
        }
        while (crdt_holders_next(&x->holders, crdt_entry_set(entry), &at, &stamp))
            take(x, context, stamp);
    }
}

/* Calls `take` for the stamp of every live holder. */
static inline void take_holders(const struct crdt_index *x, uint64_t id, uint8_t code, take_fn take,
                                void *context)
{
    struct crdt_place place = crdt_table_place(&x->table, id);
    take_in(x, place.first, 0, place.tag, code, take, context);
    if (x->table.bucket[place.first].overflow > 0)
        take_in(x, place.second, CRDT_ENTRY_SECOND, place.tag, code, take, context);
}

struct cover {
    const uint32_t *floors; /* least generation by replica, or NULL */
    uint32_t *blocks, *generations;
    uint32_t replicas;
    uint32_t weight; /* weight of the chunk */
};

static void cover_take(const struct crdt_index *x, void *context, uint32_t stamp)
{
    struct cover *c = context;
    unsigned r = crdt_stamp_replica(stamp);
    uint32_t generation = crdt_stamp_generation(&x->window, stamp);
    if (r >= c->replicas || (c->floors != NULL && generation < c->floors[r]))
        return;
    c->generations[r] =
        c->blocks[r] == 0 || generation < c->generations[r] ? generation : c->generations[r];
    c->blocks[r] += c->weight;
}

void crdt_index_cover(const struct crdt_index *x, const struct chain *chain,
                      const uint32_t *floor_by_replica, unsigned replicas, uint32_t *blocks_out,
                      uint32_t *generation_out)
{
    CHECK(replicas <= x->replicas && chain->length <= CHAIN_POINTS_MAX);
    struct cover c = {.floors = floor_by_replica,
                      .blocks = blocks_out,
                      .generations = generation_out,
                      .replicas = replicas};
    memset(blocks_out, 0, replicas * sizeof *blocks_out);
    memset(generation_out, 0, replicas * sizeof *generation_out);
    for (unsigned i = 0; i < chain->length; i++) {
        if (i + AHEAD < chain->length)
            crdt_index_prefetch(x, chain->points[i + AHEAD].id);
        c.weight = checkpoint_weight(chain->points[i].code);
        take_holders(x, chain->points[i].id, chain->points[i].code, cover_take, &c);
    }
}

int crdt_index_get(const struct crdt_index *x, uint64_t id, unsigned replica, uint8_t weight_code,
                   uint32_t *generation_out)
{
    CHECK(replica < x->replicas && weight_code <= CHECKPOINT_CODE_BINDING);
    struct crdt_lookup found =
        crdt_look_up(x, crdt_table_place(&x->table, id), weight_code, replica);
    if (found.set != NULL &&
        crdt_holders_get(&x->holders, crdt_entry_set(*found.set), replica, generation_out))
        return 0;
    if (found.entry == NULL)
        return ERR_NOT_FOUND;
    *generation_out = crdt_stamp_generation(&x->window, crdt_entry_stamp(*found.entry));
    return 0;
}

/* The holder with the newest generation so far. */
struct best {
    unsigned replica;
    uint32_t generation;
    uint32_t rkey;
    bool found;
};

static void best_take(const struct crdt_index *x, void *context, uint32_t stamp)
{
    struct best *best = context;
    unsigned replica = crdt_stamp_replica(stamp);
    uint32_t generation = crdt_stamp_generation(&x->window, stamp);
    uint32_t rkey = x->replicated
                        ? crdt_spans_rkey(&x->spans, replica, crdt_stamp_incarnation(stamp))
                        : replica;
    if (best->found &&
        (generation < best->generation || (generation == best->generation && rkey <= best->rkey)))
        return;
    *best = (struct best){replica, generation, rkey, true};
}

int crdt_index_newest(const struct crdt_index *x, uint64_t id, uint8_t weight_code,
                      unsigned *replica_out, uint32_t *generation_out)
{
    CHECK(weight_code <= CHECKPOINT_CODE_BINDING);
    struct best best = {0};
    take_holders(x, id, weight_code, best_take, &best);
    if (!best.found)
        return ERR_NOT_FOUND;
    *replica_out = best.replica;
    *generation_out = best.generation;
    return 0;
}

/* --- walking -------------------------------------------------------------------------------- */

typedef void (*visit_fn)(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                         uint32_t generation);

static void visit_bucket(const struct crdt_index *x, uint32_t bucket, visit_fn visit, void *context)
{
    const struct crdt_window *w = &x->window;
    const struct crdt_bucket *b = &x->table.bucket[bucket];
    for (unsigned used = b->used; used != 0; used &= used - 1) {
        uint64_t entry = b->slot[__builtin_ctz(used)];
        uint64_t id = crdt_table_id(&x->table, bucket, entry);
        uint8_t code = crdt_entry_code(entry);
        uint32_t stamp = crdt_entry_stamp(entry);
        uint32_t at = 0;
        if (!crdt_entry_is_set(entry)) {
            if (crdt_stamp_alive(w, stamp))
                visit(context, id, code, crdt_stamp_replica(stamp),
                      crdt_stamp_generation(w, stamp));
            continue;
        }
        while (crdt_holders_next(&x->holders, crdt_entry_set(entry), &at, &stamp))
            visit(context, id, code, crdt_stamp_replica(stamp), crdt_stamp_generation(w, stamp));
    }
}

void crdt_index_each(const struct crdt_index *x, visit_fn visit, void *context)
{
    for (uint32_t i = 0; i < x->table.buckets; i++)
        visit_bucket(x, i, visit, context);
}

/* Invariant: every entry present when the walk began was visited, or is in a bucket still ahead, or
 * moved after the walk last read the moves. */
bool crdt_index_walk(const struct crdt_index *x, struct crdt_index_cursor *c, uint32_t buckets,
                     visit_fn visit, void *context)
{
    const struct crdt_table *t = &x->table;
    if (c->bucket == 0 || t->moves - c->moves > t->moved_mask) {
        c->bucket = 0; /* too many moves since the last call: start over */
        c->moves = t->moves;
    }
    for (; buckets > 0 && c->moves < t->moves; c->moves++) {
        uint32_t bucket = t->moved[c->moves & t->moved_mask];
        if (bucket >= c->bucket)
            continue; /* a bucket ahead */
        visit_bucket(x, bucket, visit, context);
        buckets--;
    }
    for (; buckets > 0 && c->bucket < t->buckets; buckets--)
        visit_bucket(x, c->bucket++, visit, context);
    return c->bucket < t->buckets || c->moves < t->moves;
}

/* --- counters ------------------------------------------------------------------------------- */

uint64_t crdt_index_blocks(const struct crdt_index *x, unsigned replica, uint32_t generation)
{
    CHECK(replica < x->replicas);
    if (generation < x->window.floor || generation > x->window.now + 1)
        return 0;
    struct crdt_index_ring ring = crdt_index_ring(x, replica);
    return crdt_index_ring_at(&ring, generation);
}

uint64_t crdt_index_blocks_total(const struct crdt_index *x, unsigned replica)
{
    CHECK(replica < x->replicas);
    return x->counts.blocks_total[replica];
}

static void count_part(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                       uint32_t generation)
{
    struct crdt_index *x = context;
    crdt_counts_part_add(&x->counts, replica, generation, checkpoint_weight(weight_code),
                         crdt_index_is_apart(id48));
}

int crdt_index_split(struct crdt_index *x)
{
    if (x->counts.parts[0].blocks != NULL)
        return ERR_OK;
    int err = crdt_counts_split(&x->counts);
    if (err == ERR_OK)
        crdt_index_each(x, count_part, x);
    return err;
}

struct crdt_index_ring crdt_index_ring_part(const struct crdt_index *x, unsigned replica,
                                            bool apart)
{
    struct crdt_index_ring ring = crdt_index_ring(x, replica);
    const struct crdt_counts_part *part = &x->counts.parts[apart];
    if (part->blocks != NULL) {
        ring.counts = part->blocks + (size_t)replica * (x->counts.mask + 1);
        ring.total = part->blocks_total[replica];
    }
    return ring;
}

struct crdt_index_ring crdt_index_ring(const struct crdt_index *x, unsigned replica)
{
    CHECK(replica < x->replicas);
    return (struct crdt_index_ring){
        .counts = x->counts.blocks + (size_t)replica * (x->counts.mask + 1),
        .mask = x->counts.mask,
        .newest = x->window.now + 1,
        .oldest = x->window.floor,
        .total = x->counts.blocks_total[replica],
    };
}
