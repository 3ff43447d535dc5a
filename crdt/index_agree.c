#include "base/bug.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "crdt/index_internal.h"

#include <string.h>

/* --- bookkeeping ---------------------------------------------------------------------------- */

static struct crdt_mark mark_of(const struct crdt_index *x, const struct crdt_item *item,
                                uint32_t generation)
{
    return crdt_spans_mark(&x->spans, crdt_table_id_at(&x->table, item->place, item->id),
                           item->code, crdt_stamp(&x->window, item->replica, generation));
}

void crdt_index_book_new(struct crdt_index *x, const struct crdt_item *item)
{
    uint64_t hash = 0;
    if (x->replicated) {
        struct crdt_mark mark = mark_of(x, item, item->generation);
        crdt_spans_flip(&x->spans, item->generation, &mark, 1);
        x->spans.used[item->replica] = true;
        hash = mark.hash;
    }
    bool apart = crdt_index_is_apart(item->id);
    crdt_counts_add(&x->counts, item->replica, item->generation, checkpoint_weight(item->code),
                    hash, apart);
    x->stats.inserted++;
    x->stats.apart += apart;
}

void crdt_index_book_newer(struct crdt_index *x, const struct crdt_item *item, uint32_t known)
{
    uint64_t hash = 0;
    uint64_t hash_known = 0;
    if (x->replicated) {
        struct crdt_mark mark = mark_of(x, item, item->generation);
        struct crdt_mark mark_known = mark_of(x, item, known);
        if (!BUG(SKETCH_STALE))
            crdt_spans_flip(&x->spans, known, &mark_known, -1);
        crdt_spans_flip(&x->spans, item->generation, &mark, 1);
        hash = mark.hash;
        hash_known = mark_known.hash;
    }
    uint32_t weight = checkpoint_weight(item->code);
    bool apart = crdt_index_is_apart(item->id);
    crdt_counts_subtract(&x->counts, item->replica, known, weight, hash_known, apart);
    crdt_counts_add(&x->counts, item->replica, item->generation, weight, hash, apart);
    x->stats.refreshed++;
}

/* True if a sketch still includes the entry with this stamp. */
static bool is_sketched(const struct crdt_index *x, uint32_t stamp)
{
    return x->replicated && crdt_spans_alive(&x->spans, crdt_stamp_generation(&x->window, stamp));
}

void crdt_index_book_gone(struct crdt_index *x, uint64_t id, uint8_t code, uint32_t stamp)
{
    if (!is_sketched(x, stamp))
        return;
    struct crdt_mark mark = crdt_spans_mark(&x->spans, id, code, stamp);
    crdt_spans_flip(&x->spans, crdt_stamp_generation(&x->window, stamp), &mark, -1);
}

void crdt_index_book_gone_entry(struct crdt_index *x, uint32_t bucket, uint64_t entry)
{
    uint32_t stamp = crdt_entry_stamp(entry);
    if (is_sketched(x, stamp)) /* rarely true: seldom computes the id, which takes a division */
        crdt_index_book_gone(x, crdt_table_id(&x->table, bucket, entry), crdt_entry_code(entry),
                             stamp);
}

uint64_t *crdt_index_put(struct crdt_index *x, struct crdt_place place, uint64_t entry)
{
    struct crdt_taken taken;
    uint64_t *put = crdt_table_insert(&x->table, place, entry, &taken);
    if (taken.any)
        crdt_index_book_gone_entry(x, taken.bucket, taken.entry);
    return put;
}

/* --- agreeing ------------------------------------------------------------------------------- */

/* True if the counters have a slot for the generation. */
static bool is_kept(const struct crdt_index *x, uint32_t generation)
{
    return generation >= x->window.floor && generation <= x->window.now + 1;
}

uint64_t crdt_index_digest(const struct crdt_index *x, uint32_t from)
{
    return crdt_index_digest_between(x, from, UINT32_MAX);
}

uint64_t crdt_index_digest_between(const struct crdt_index *x, uint32_t from, uint32_t until)
{
    uint64_t sum = 0;
    uint32_t newest = x->window.now + 1;
    for (uint32_t g = from > x->window.floor ? from : x->window.floor; g <= newest && g < until;
         g++)
        sum += crdt_index_digest_at(x, g);
    return sum;
}

uint64_t crdt_index_entries_between(const struct crdt_index *x, uint32_t from, uint32_t until)
{
    uint64_t sum = 0;
    uint32_t newest = x->window.now + 1;
    for (uint32_t g = from > x->window.floor ? from : x->window.floor; g <= newest && g < until;
         g++)
        sum += crdt_index_entries_at(x, g);
    return sum;
}

uint64_t crdt_index_digest_at(const struct crdt_index *x, uint32_t generation)
{
    CHECK(x->replicated);
    return is_kept(x, generation) ? x->counts.digest_by_generation[generation & x->counts.mask] : 0;
}

uint64_t crdt_index_entries_at(const struct crdt_index *x, uint32_t generation)
{
    return is_kept(x, generation) ? x->counts.by_generation[generation & x->counts.mask] : 0;
}

uint32_t crdt_index_sketch_from(const struct crdt_index *x, uint32_t floor)
{
    CHECK(x->replicated);
    uint32_t length = x->spans.length;
    return floor % length == 0 ? floor : floor - floor % length + length;
}

void crdt_index_sketch(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out)
{
    CHECK(x->replicated);
    crdt_spans_sum(&x->spans, from, out);
}

void crdt_index_estimate(const struct crdt_index *x, uint32_t from,
                         uint8_t out[CRDT_ESTIMATE_COUNTERS])
{
    CHECK(x->replicated);
    crdt_spans_estimate(&x->spans, from, out);
}

bool crdt_index_sketch_is_clean(const struct crdt_index *x)
{
    CHECK(x->replicated);
    return x->remains <= CRDT_REMAINS_MAX;
}

/* The sketch of a cut under construction. Ages count back from generation now + 1, as in stamps. */
struct cut {
    const struct crdt_index *index;
    uint32_t youngest, oldest;
    struct crdt_sketch *sketch;
};

static bool is_in(const struct cut *c, uint32_t stamp)
{
    const struct crdt_window *w = &c->index->window;
    uint32_t age =
        crdt_stamp_age((uint16_t)stamp, w->incarnation[crdt_stamp_replica(stamp)], w->newest);
    return age >= c->youngest && age <= c->oldest;
}

static void cut_add(const struct cut *c, uint64_t id, uint64_t entry, uint32_t stamp)
{
    struct crdt_mark mark = crdt_spans_mark(&c->index->spans, id, crdt_entry_code(entry), stamp);
    crdt_sketch_flip_mark(c->sketch, &mark, 1);
}

static void cut_bucket(const struct cut *c, uint32_t bucket)
{
    const struct crdt_table *t = &c->index->table;
    const struct crdt_bucket *b = &t->bucket[bucket];
    for (unsigned used = b->used; used != 0; used &= used - 1) {
        uint64_t entry = b->slot[__builtin_ctz(used)];
        uint32_t stamp = crdt_entry_stamp(entry);
        uint32_t at = 0;
        if (!crdt_entry_is_set(entry)) {
            if (is_in(c, stamp)) /* first, because computing the id takes a division */
                cut_add(c, crdt_table_id(t, bucket, entry), entry, stamp);
            continue;
        }
        while (crdt_holders_next(&c->index->holders, crdt_entry_set(entry), &at, &stamp))
            if (is_in(c, stamp))
                cut_add(c, crdt_table_id(t, bucket, entry), entry, stamp);
    }
}

bool crdt_index_sketch_cut(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out)
{
    CHECK(x->replicated);
    if (x->table.buckets > CRDT_CUT_BUCKETS_MAX)
        return false;
    memset(out, 0, sizeof *out);
    uint32_t until = crdt_index_sketch_from(x, from), end = x->window.now + 2;
    if (crdt_index_entries_between(x, from, until) == 0)
        return true;
    struct cut cut = {.index = x,
                      .youngest = until < end ? end - until : 0,
                      .oldest = end - 1 - (from > x->window.floor ? from : x->window.floor),
                      .sketch = out};
    for (uint32_t bucket = 0; bucket < x->table.buckets; bucket++)
        cut_bucket(&cut, bucket);
    return true;
}

uint32_t crdt_index_generation_of(const struct crdt_index *x, uint16_t generation_mod_4096)
{
    return crdt_stamp_generation(&x->window, generation_mod_4096);
}
