#include "crdt/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/index_state.h"

enum {
    /* Points between the prefetch of the first bucket, of the second where it will be needed, and
     * use. A core has some 12 to 16 line fill buffers. */
    AHEAD = 16,
    AHEAD_SECOND = 8,
    HOLDERS_SHARE = 8, /* one part in so many of what the counters leave is for sets */
};

_Static_assert((int)CRDT_WINDOW_REPLICAS == (int)CRDT_REPLICAS_MAX, "stamps hold ten bits");
_Static_assert((int)CRDT_PROMOTE_AT < (int)CRDT_HOLDERS_START &&
                   2 * (int)CRDT_SLOTS < (int)CRDT_HOLDERS_START,
               "a new set takes all single entries and one more");

/* --- life ----------------------------------------------------------------------------------- */

static int create_parts(struct crdt_index *x, uint64_t bytes_max)
{
    uint64_t fixed = sizeof *x + crdt_counts_bytes(x->replicas, x->ttl + 2);
    if (bytes_max <= fixed)
        return ERR_LIMIT;
    uint64_t rest = bytes_max - fixed;
    /* With so few replicas there is never a set. */
    uint64_t sets = x->replicas > CRDT_PROMOTE_AT ? rest / HOLDERS_SHARE : 0;
    int err = crdt_table_init(&x->table, &x->window, rest - sets);
    if (err == 0)
        err = crdt_holders_init(&x->holders, &x->window, x->replicas, sets);
    if (err == 0)
        err = crdt_counts_init(&x->counts, x->replicas, x->ttl + 2);
    return err;
}

int crdt_index_create(struct crdt_index **out, const struct crdt_index_config *config)
{
    if (config->replicas_max == 0 || config->replicas_max > CRDT_REPLICAS_MAX ||
        config->ttl_generations == 0 || config->ttl_generations > CRDT_TTL_MAX)
        return ERR_RANGE;
    struct crdt_index *x = calloc(1, sizeof *x);
    if (x == NULL)
        return ERR_NOMEM;
    x->replicas = config->replicas_max;
    x->ttl = config->ttl_generations;
    int err = create_parts(x, config->bytes_max);
    if (err != 0) {
        crdt_index_destroy(x);
        return err;
    }
    x->stats.bytes_max = config->bytes_max;
    x->base = crdt_index_floor_at(x, config->generation);
    crdt_window_set(&x->window, config->generation, x->base);
    uint64_t slots = (uint64_t)x->table.buckets * CRDT_SLOTS;
    x->slots_limit = slots - slots / 16;
    crdt_index_lap_begin(x);
    *out = x;
    return 0;
}

void crdt_index_destroy(struct crdt_index *x)
{
    if (x == NULL)
        return;
    crdt_table_free(&x->table);
    crdt_holders_free(&x->holders);
    crdt_counts_free(&x->counts);
    free(x);
}

void crdt_index_memory(const struct crdt_index *x, void **at, uint64_t *bytes)
{
    *at = x->table.bucket;
    *bytes = (uint64_t)x->table.buckets * CRDT_BUCKET_BYTES;
}

/* --- learning ------------------------------------------------------------------------------- */

/* What the table knows of an id. */
struct lookup {
    uint64_t *entry;  /* the live single entry of the replica, or NULL */
    uint64_t *set;    /* the entry that names the id's set, or NULL */
    unsigned holders; /* live single entries, of any replica */
};

static void look_in(const struct crdt_index *x, uint32_t bucket, unsigned second, uint32_t tag,
                    uint8_t code, unsigned replica, struct lookup *out)
{
    struct crdt_bucket *b = &x->table.bucket[bucket];
    for (unsigned found = crdt_bucket_find(b, tag, code, second); found != 0; found &= found - 1) {
        uint64_t *entry = &b->slot[__builtin_ctz(found)];
        uint32_t stamp = crdt_entry_stamp(*entry);
        if (crdt_entry_is_set(*entry)) {
            out->set = entry;
        } else if (crdt_stamp_alive(&x->window, stamp)) {
            out->holders++;
            if (crdt_stamp_replica(stamp) == replica)
                out->entry = entry;
        }
    }
}

static struct lookup look_up(const struct crdt_index *x, struct crdt_place place, uint8_t code,
                             unsigned replica)
{
    struct lookup found = {0};
    look_in(x, place.first, 0, place.tag, code, replica, &found);
    bool done = found.entry != NULL || found.set != NULL;
    if (!done && x->table.bucket[place.first].overflow > 0)
        look_in(x, place.second, CRDT_ENTRY_SECOND, place.tag, code, replica, &found);
    return found;
}

static int refuse(struct crdt_index *x)
{
    x->stats.refused++;
    return ERR_FULL;
}

/* Makes a set of all single entries of the id. Without room for a set nothing changes. */
static uint64_t *promote(struct crdt_index *x, struct crdt_place place, uint8_t code)
{
    uint32_t set = crdt_holders_create(&x->holders);
    if (set == CRDT_ARENA_NONE)
        return NULL;
    for (unsigned second = 0; second < (place.first == place.second ? 1 : 2); second++) {
        uint32_t bucket = second ? place.second : place.first;
        struct crdt_bucket *b = &x->table.bucket[bucket];
        unsigned found = crdt_bucket_find(b, place.tag, code, second);
        for (; found != 0; found &= found - 1) {
            unsigned slot = (unsigned)__builtin_ctz(found);
            uint32_t stamp = crdt_entry_stamp(b->slot[slot]);
            if (!crdt_stamp_alive(&x->window, stamp))
                continue;
            uint32_t before = set;
            CHECK(crdt_holders_put(&x->holders, &set, crdt_stamp_replica(stamp),
                                   crdt_stamp_generation(&x->window, stamp)) == 0);
            CHECK(set == before);
            crdt_table_remove(&x->table, bucket, slot);
        }
    }
    uint64_t *entry = crdt_table_insert(&x->table, place, crdt_entry_of_set(place.tag, code, set));
    CHECK(entry != NULL); /* several slots have just been freed there */
    return entry;
}

static int join_set(struct crdt_index *x, uint64_t *entry, unsigned replica, uint32_t generation)
{
    uint32_t set = crdt_entry_set(*entry);
    uint8_t code = crdt_entry_code(*entry);
    uint32_t weight = checkpoint_weight(code);
    uint32_t known = 0;
    bool found = crdt_holders_get(&x->holders, set, replica, &known);
    if (found && known >= generation)
        return 0;
    if (!crdt_counts_fits(&x->counts, replica, generation, weight) ||
        crdt_holders_put(&x->holders, &set, replica, generation) != 0)
        return refuse(x);
    *entry = crdt_entry_of_set((uint32_t)(*entry >> 32), code, set) | (*entry & CRDT_ENTRY_SECOND);
    if (found)
        crdt_counts_subtract(&x->counts, replica, known, weight);
    crdt_counts_add(&x->counts, replica, generation, weight);
    *(found ? &x->stats.refreshed : &x->stats.inserted) += 1;
    return 1;
}

static int insert(struct crdt_index *x, struct crdt_place place, uint8_t code, unsigned replica,
                  uint32_t generation)
{
    uint32_t weight = checkpoint_weight(code);
    if (!crdt_counts_fits(&x->counts, replica, generation, weight) || !crdt_index_make_space(x))
        return refuse(x);
    if (generation < x->window.floor) { /* making space has raised it */
        x->stats.stale++;
        return ERR_STALE;
    }
    uint32_t stamp = crdt_stamp(&x->window, replica, generation);
    if (crdt_table_insert(&x->table, place, crdt_entry(place.tag, code, stamp)) == NULL)
        return refuse(x);
    crdt_counts_add(&x->counts, replica, generation, weight);
    x->stats.inserted++;
    return 1;
}

static int join(struct crdt_index *x, struct crdt_place place, uint8_t code, unsigned replica,
                uint32_t generation)
{
    struct lookup found = look_up(x, place, code, replica);
    if (found.entry != NULL) {
        uint32_t known = crdt_stamp_generation(&x->window, crdt_entry_stamp(*found.entry));
        uint32_t weight = checkpoint_weight(code);
        if (known >= generation)
            return 0;
        if (!crdt_counts_fits(&x->counts, replica, generation, weight))
            return refuse(x);
        crdt_counts_subtract(&x->counts, replica, known, weight);
        crdt_counts_add(&x->counts, replica, generation, weight);
        crdt_table_restamp(&x->table, found.entry, generation);
        x->stats.refreshed++;
        return 1;
    }
    if (found.set == NULL && found.holders >= CRDT_PROMOTE_AT)
        found.set = promote(x, place, code);
    if (found.set != NULL)
        return join_set(x, found.set, replica, generation);
    return insert(x, place, code, replica, generation);
}

static int refuse_generation(struct crdt_index *x, uint32_t generation, uint64_t count)
{
    if (generation < x->window.floor) {
        x->stats.stale += count;
        return ERR_STALE;
    }
    if (generation > x->window.now + 1) {
        x->stats.future += count;
        return ERR_RANGE;
    }
    return 0;
}

int crdt_index_observe(struct crdt_index *x, uint64_t id, unsigned replica, uint8_t weight_code,
                       uint32_t generation)
{
    CHECK(replica < x->replicas && weight_code <= CHECKPOINT_CODE_BINDING);
    int err = refuse_generation(x, generation, 1);
    if (err != 0)
        return err;
    return join(x, crdt_table_place(&x->table, id), weight_code, replica, generation);
}

int crdt_index_observe_chain(struct crdt_index *x, const struct chain *chain, unsigned replica,
                             uint32_t generation, uint64_t *inflated)
{
    CHECK(replica < x->replicas && chain->length <= CHAIN_POINTS_MAX);
    if (inflated != NULL)
        memset(inflated, 0, CHAIN_POINTS_MAX / 8);
    int err = refuse_generation(x, generation, chain->length);
    if (err != 0)
        return err;
    struct crdt_place place[AHEAD];
    int count = 0;
    for (unsigned i = 0; i < chain->length + (unsigned)AHEAD; i++) {
        if (i >= AHEAD) {
            unsigned p = i - AHEAD;
            const struct chain_point *point = &chain->points[p];
            CHECK(point->code <= CHECKPOINT_CODE_BINDING);
            /* Making space may have raised the floor meanwhile. */
            int joined = refuse_generation(x, generation, 1);
            if (joined == 0)
                joined = join(x, place[p % AHEAD], point->code, replica, generation);
            if (joined == 1) {
                count++;
                if (inflated != NULL)
                    inflated[p / 64] |= UINT64_C(1) << p % 64;
            }
        }
        if (i < chain->length) {
            place[i % AHEAD] = crdt_table_place(&x->table, chain->points[i].id);
            crdt_table_prefetch(&x->table, place[i % AHEAD]);
        }
        if (i >= AHEAD_SECOND && i - AHEAD_SECOND < chain->length)
            crdt_table_prefetch_second(&x->table, place[(i - AHEAD_SECOND) % AHEAD]);
    }
    return count;
}

int crdt_index_observe_run(struct crdt_index *x, const uint64_t *ids, const uint8_t *codes,
                           unsigned count, unsigned replica, uint32_t generation,
                           uint64_t *inflated)
{
    if (inflated != NULL)
        memset(inflated, 0, (count + 63) / 64 * sizeof *inflated);
    int err = refuse_generation(x, generation, count);
    int news = 0;
    for (unsigned i = 0; i < count && err == 0; i++) {
        if (crdt_index_observe(x, ids[i], replica, codes[i], generation) != 1)
            continue;
        news++;
        if (inflated != NULL)
            inflated[i / 64] |= UINT64_C(1) << i % 64;
    }
    return err != 0 ? err : news;
}

void crdt_index_prefetch(const struct crdt_index *x, uint64_t id)
{
    crdt_table_prefetch(&x->table, crdt_table_place(&x->table, id));
}

/* --- asking --------------------------------------------------------------------------------- */

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
    struct crdt_match m = {
        .length_out = length_out, .generation_out = generation_out, .replicas = replicas};
    memset(length_out, 0, replicas * sizeof *length_out);
    if (generation_out != NULL)
        memset(generation_out, 0, replicas * sizeof *generation_out);
    match_begin(x, &m, floor_by_replica);
    /* From the last point to the first: the first hit of a replica is its longest. */
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

int crdt_index_get(const struct crdt_index *x, uint64_t id, unsigned replica, uint8_t weight_code,
                   uint32_t *generation_out)
{
    CHECK(replica < x->replicas && weight_code <= CHECKPOINT_CODE_BINDING);
    struct lookup found = look_up(x, crdt_table_place(&x->table, id), weight_code, replica);
    if (found.set != NULL &&
        crdt_holders_get(&x->holders, crdt_entry_set(*found.set), replica, generation_out))
        return 0;
    if (found.entry == NULL)
        return ERR_NOT_FOUND;
    *generation_out = crdt_stamp_generation(&x->window, crdt_entry_stamp(*found.entry));
    return 0;
}

void crdt_index_each(const struct crdt_index *x,
                     void (*visit)(void *context, uint64_t id48, uint8_t weight_code,
                                   unsigned replica, uint32_t generation),
                     void *context)
{
    const struct crdt_window *w = &x->window;
    for (uint32_t i = 0; i < x->table.buckets; i++) {
        const struct crdt_bucket *b = &x->table.bucket[i];
        for (unsigned used = b->used; used != 0; used &= used - 1) {
            uint64_t entry = b->slot[__builtin_ctz(used)];
            uint64_t id = crdt_table_id(&x->table, i, entry);
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
                visit(context, id, code, crdt_stamp_replica(stamp),
                      crdt_stamp_generation(w, stamp));
        }
    }
}

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
