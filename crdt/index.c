#include "crdt/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/index_internal.h"

enum {
    /* A bucket is prefetched this number of points before use: AHEAD for the first bucket,
     * AHEAD_SECOND for a second bucket if needed. A core has some 12 to 16 line fill buffers. */
    AHEAD = 16,
    AHEAD_SECOND = 8,
    HOLDERS_SHARE = 8, /* sets get 1/8 of the memory left by the counters */
};

_Static_assert((int)CRDT_WINDOW_REPLICAS == (int)CRDT_REPLICAS_MAX, "stamps hold eleven bits");
_Static_assert((int)CRDT_TTL_MAX + 256 <= (int)CRDT_GENERATIONS,
               "the sweeper is done before stamps would wrap");
_Static_assert(CHECKPOINT_CODE_BINDING < 32, "an entry has five bits for a code");
_Static_assert((int)CRDT_PROMOTE_AT < (int)CRDT_HOLDERS_START &&
                   2 * (int)CRDT_SLOTS < (int)CRDT_HOLDERS_START,
               "a new set takes all single entries and one more");

/* --- start and end ---------------------------------------------------------------------------- */

/* Number of table moves to record for walks: the greatest power of two with at most 1 move per KiB,
 * from 16 to 65,536. */
static uint32_t moves_kept(uint64_t bytes)
{
    uint32_t count = 16;
    while (count < 65536 && (uint64_t)count * 2 * 1024 <= bytes)
        count *= 2;
    return count;
}

uint64_t crdt_index_fixed_bytes(const struct crdt_index *x)
{
    uint64_t bytes = sizeof *x + crdt_counts_bytes(x->replicas, x->ttl + 2, x->replicated);
    if (x->replicated)
        bytes += crdt_spans_bytes(x->replicas, x->ttl) +
                 moves_kept(x->stats.bytes_max) * sizeof *x->table.moved;
    return bytes;
}

uint64_t crdt_index_bytes_ample(unsigned replicas, uint64_t generations, bool replicated)
{
    uint64_t ring = 1;
    while (ring < generations + 2)
        ring *= 2;
    return (ring * 8 * replicas + (3 << 20)) * (replicated ? 2 : 1);
}

static int create_parts(struct crdt_index *x, uint64_t bytes_max)
{
    uint64_t fixed = crdt_index_fixed_bytes(x);
    if (bytes_max <= fixed)
        return ERR_LIMIT;
    uint64_t rest = bytes_max - fixed;
    /* With at most CRDT_PROMOTE_AT replicas no id needs a set. */
    uint64_t sets = x->replicas > CRDT_PROMOTE_AT ? rest / HOLDERS_SHARE : 0;
    int err = crdt_table_init(&x->table, &x->window, rest - sets);
    if (err == 0)
        err = crdt_holders_init(&x->holders, &x->window, x->replicas, sets);
    if (err == 0)
        err = crdt_counts_init(&x->counts, x->replicas, x->ttl + 2, x->replicated);
    if (err == 0 && x->replicated)
        err = crdt_table_remember(&x->table, moves_kept(bytes_max));
    if (err == 0 && x->replicated)
        err = crdt_spans_init(&x->spans, &x->window, x->replicas, x->ttl);
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
    x->replicated = config->replicated;
    x->stats.bytes_max = config->bytes_max;
    int err = create_parts(x, config->bytes_max);
    if (err != 0) {
        crdt_index_destroy(x);
        return err;
    }
    x->base = crdt_index_floor_at(x, config->generation);
    crdt_window_set(&x->window, config->generation, x->base);
    if (x->replicated)
        crdt_spans_floor(&x->spans, x->base);
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
    crdt_spans_free(&x->spans);
    free(x);
}

uint32_t crdt_index_id_ranges(const struct crdt_index *x)
{
    return x->table.buckets < CRDT_EXACT_BUCKETS ? x->table.buckets : CRDT_EXACT_BUCKETS;
}

void crdt_index_memory(const struct crdt_index *x, void **at, uint64_t *bytes)
{
    *at = x->table.bucket;
    *bytes = (uint64_t)x->table.buckets * CRDT_BUCKET_BYTES;
}

/* --- learning ------------------------------------------------------------------------------- */

static int refuse(struct crdt_index *x)
{
    x->stats.refused++;
    return ERR_FULL;
}

static bool fits(const struct crdt_index *x, const struct crdt_item *item)
{
    return crdt_counts_fits(&x->counts, item->replica, item->generation,
                            checkpoint_weight(item->code));
}

/* Makes a set of all single entries of the id. Returns the set's entry in the table, or NULL, with
 * nothing changed, if there is no room for a set. */
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
            uint32_t taken = 0;
            CHECK(crdt_holders_put(&x->holders, &set, crdt_stamp_replica(stamp),
                                   crdt_stamp_generation(&x->window, stamp), &taken) == 0);
            CHECK(set == before && taken == CRDT_STAMP_NONE);
            crdt_table_remove(&x->table, bucket, slot);
        }
    }
    uint64_t *entry = crdt_index_put(x, place, crdt_entry_of_set(place.tag, code, set));
    CHECK(entry != NULL); /* several slots there have just been freed */
    crdt_table_note_move(&x->table, *entry & CRDT_ENTRY_SECOND ? place.second : place.first);
    return entry;
}

static int join_set(struct crdt_index *x, uint64_t *entry, const struct crdt_item *item)
{
    uint32_t set = crdt_entry_set(*entry);
    uint32_t known = 0;
    uint32_t taken = CRDT_STAMP_NONE;
    bool found = crdt_holders_get(&x->holders, set, item->replica, &known);
    if (found && known >= item->generation)
        return 0;
    if (!fits(x, item) ||
        crdt_holders_put(&x->holders, &set, item->replica, item->generation, &taken) != 0)
        return refuse(x);
    *entry = crdt_entry_of_set(item->place.tag, item->code, set) | (*entry & CRDT_ENTRY_SECOND);
    if (taken != CRDT_STAMP_NONE)
        crdt_index_book_gone(x, crdt_table_id_at(&x->table, item->place, item->id), item->code,
                             taken);
    if (found)
        crdt_index_book_newer(x, item, known);
    else
        crdt_index_book_new(x, item);
    return 1;
}

static int insert(struct crdt_index *x, const struct crdt_item *item)
{
    if (!fits(x, item) || !crdt_index_make_space(x))
        return refuse(x);
    if (item->generation < x->window.floor && !BUG(SKIP_FLOOR)) { /* making space has raised it */
        x->stats.stale++;
        return ERR_STALE;
    }
    uint32_t stamp = crdt_stamp(&x->window, item->replica, item->generation);
    if (crdt_index_put(x, item->place, crdt_entry(item->place.tag, item->code, stamp)) == NULL)
        return refuse(x);
    crdt_index_book_new(x, item);
    return 1;
}

static int join(struct crdt_index *x, const struct crdt_item *item)
{
    struct crdt_lookup found = crdt_look_up(x, item->place, item->code, item->replica);
    if (found.entry != NULL) {
        uint32_t known = crdt_stamp_generation(&x->window, crdt_entry_stamp(*found.entry));
        if (known >= item->generation)
            return 0;
        if (!fits(x, item))
            return refuse(x);
        crdt_table_restamp(&x->table, found.entry, item->generation);
        crdt_index_book_newer(x, item, known);
        return 1;
    }
    if (found.set == NULL && found.holders >= CRDT_PROMOTE_AT)
        found.set = promote(x, item->place, item->code);
    if (found.set != NULL)
        return join_set(x, found.set, item);
    return insert(x, item);
}

static int refuse_generation(struct crdt_index *x, uint32_t generation, uint64_t count)
{
    if (generation < x->window.floor && !BUG(SKIP_FLOOR)) {
        x->stats.stale += count;
        return ERR_STALE;
    }
    if (generation > x->window.now + 1) {
        x->stats.future += count;
        return ERR_RANGE;
    }
    return 0;
}

static uint32_t accepted(const struct crdt_index *x, uint32_t generation)
{
    if (BUG(FUTURE_CLAMP) && generation > x->window.now + 1)
        return x->window.now + 1;
    if (BUG_RARE(RARE_GENERATION))
        return generation + 1;
    return generation;
}

static void note_seen(struct crdt_index *x, unsigned replica)
{
    if (replica >= x->seen)
        x->seen = replica + 1;
}

int crdt_index_observe(struct crdt_index *x, uint64_t id, unsigned replica, uint8_t weight_code,
                       uint32_t generation)
{
    CHECK(replica < x->replicas && weight_code <= CHECKPOINT_CODE_BINDING);
    generation = accepted(x, generation);
    int err = refuse_generation(x, generation, 1);
    if (err != 0)
        return err;
    note_seen(x, replica);
    struct crdt_item item = {.place = crdt_table_place(&x->table, id),
                             .id = id,
                             .generation = generation,
                             .replica = (uint16_t)replica,
                             .code = weight_code};
    int joined = join(x, &item);
    if (x->replicated)
        crdt_spans_settle(&x->spans);
    return joined;
}

/* Observations of one replica and generation, with ids and codes in any layout. */
struct run {
    const void *ids;
    const void *codes;
    size_t id_stride; /* bytes between two ids */
    size_t code_stride;
    unsigned count;
    unsigned replica;
    uint32_t generation;
};

static uint64_t run_id(const struct run *run, unsigned i)
{
    return *(const uint64_t *)((const char *)run->ids + i * run->id_stride);
}

static int join_nth(struct crdt_index *x, const struct run *run, unsigned i,
                    const struct crdt_place *place)
{
    struct crdt_item item = {.place = *place,
                             .id = run_id(run, i),
                             .generation = run->generation,
                             .replica = (uint16_t)run->replica,
                             .code = ((const uint8_t *)run->codes)[i * run->code_stride]};
    CHECK(item.code <= CHECKPOINT_CODE_BINDING);
    /* Making space may have raised the floor meanwhile. */
    int err = refuse_generation(x, item.generation, 1);
    return err != 0 ? err : join(x, &item);
}

static int observe_all(struct crdt_index *x, const struct run *run, uint64_t *inflated)
{
    int err = refuse_generation(x, run->generation, run->count);
    if (err != 0)
        return err;
    note_seen(x, run->replica);
    struct crdt_place place[AHEAD];
    int count = 0;
    for (unsigned i = 0; i < run->count + (unsigned)AHEAD; i++) {
        if (i >= AHEAD) {
            unsigned p = i - AHEAD;
            if (join_nth(x, run, p, &place[p % AHEAD]) == 1) {
                count++;
                if (inflated != NULL)
                    inflated[p / 64] |= UINT64_C(1) << p % 64;
            }
        }
        if (i < run->count) {
            place[i % AHEAD] = crdt_table_place(&x->table, run_id(run, i));
            crdt_table_prefetch(&x->table, place[i % AHEAD]);
        }
        if (i >= AHEAD_SECOND && i - AHEAD_SECOND < run->count)
            crdt_table_prefetch_second(&x->table, place[(i - AHEAD_SECOND) % AHEAD]);
    }
    if (x->replicated)
        crdt_spans_settle(&x->spans);
    return count;
}

int crdt_index_observe_chain(struct crdt_index *x, const struct chain *chain, unsigned replica,
                             uint32_t generation, uint64_t *inflated)
{
    CHECK(replica < x->replicas && chain->length <= CHAIN_POINTS_MAX);
    if (inflated != NULL)
        memset(inflated, 0, CHAIN_POINTS_MAX / 8);
    struct run run = {.ids = &chain->points[0].id,
                      .codes = &chain->points[0].code,
                      .id_stride = sizeof chain->points[0],
                      .code_stride = sizeof chain->points[0],
                      .count = chain->length,
                      .replica = replica,
                      .generation = accepted(x, generation)};
    return observe_all(x, &run, inflated);
}

int crdt_index_observe_run(struct crdt_index *x, const uint64_t *ids, const uint8_t *codes,
                           unsigned count, unsigned replica, uint32_t generation,
                           uint64_t *inflated)
{
    CHECK(replica < x->replicas && count <= INT32_MAX);
    if (inflated != NULL)
        memset(inflated, 0, ((size_t)count + 63) / 64 * sizeof *inflated);
    struct run run = {.ids = ids,
                      .codes = codes,
                      .id_stride = sizeof *ids,
                      .code_stride = sizeof *codes,
                      .count = count,
                      .replica = replica,
                      .generation = accepted(x, generation)};
    return observe_all(x, &run, inflated);
}

void crdt_index_prefetch(const struct crdt_index *x, uint64_t id)
{
    crdt_table_prefetch(&x->table, crdt_table_place(&x->table, id));
}
