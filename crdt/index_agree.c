#include "base/bug.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "crdt/index_internal.h"

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
    crdt_counts_add(&x->counts, item->replica, item->generation, checkpoint_weight(item->code),
                    hash);
    x->stats.inserted++;
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
    crdt_counts_subtract(&x->counts, item->replica, known, weight, hash_known);
    crdt_counts_add(&x->counts, item->replica, item->generation, weight, hash);
    x->stats.refreshed++;
}

/* Whether a sketch still has the entry of this stamp. */
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
    if (is_sketched(x, stamp)) /* mostly not: then its id, a division, is not needed */
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

/* Whether the counters have a place for the generation. */
static bool is_kept(const struct crdt_index *x, uint32_t generation)
{
    return generation >= x->window.floor && generation <= x->window.now + 1;
}

uint64_t crdt_index_digest(const struct crdt_index *x, uint32_t from)
{
    uint64_t sum = 0;
    uint32_t newest = x->window.now + 1;
    for (uint32_t g = from > x->window.floor ? from : x->window.floor; g <= newest; g++)
        sum += crdt_index_digest_at(x, g);
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

uint32_t crdt_index_generation_of(const struct crdt_index *x, uint16_t generation_mod_4096)
{
    return crdt_stamp_generation(&x->window, generation_mod_4096);
}
