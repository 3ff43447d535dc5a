#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/record.h"
#include "crdt/state_internal.h"

enum { BATCH = 64 };

/* What joining counts. */
static void count_joined(struct crdt_state *s, int result, uint64_t observations, uint64_t *news)
{
    s->stats.observations_in += observations;
    if (result == ERR_STALE)
        s->stats.stale += observations;
    else if (result == ERR_RANGE)
        s->stats.future += observations;
    else if (result > 0)
        *news += (uint64_t)result;
}

static void join_run(struct crdt_state *s, const struct crdt_run *run, uint64_t *news)
{
    int slot = crdt_registry_by_rkey(s->registry, run->rkey);
    if (slot < 0) {
        s->stats.unknown_replica += run->count;
        return;
    }
    if (run->generation < crdt_state_oldest(s, (unsigned)slot)) {
        s->stats.stale += run->count;
        return;
    }
    uint64_t ids[CRDT_RUN_MAX];
    uint8_t codes[CRDT_RUN_MAX];
    crdt_run_unpack(run, ids, codes);
    int result = crdt_index_observe_run(s->index, ids, codes, run->count, (unsigned)slot,
                                        run->generation, NULL);
    count_joined(s, result, run->count, news);
}

static void join_block(struct crdt_state *s, const struct crdt_batch *block, uint64_t *news)
{
    int16_t slot_of[CRDT_REPLICAS_MAX];
    uint32_t oldest[CRDT_REPLICAS_MAX];
    memset(slot_of, 0xff, sizeof slot_of); /* -1 */
    struct wire_reader rkeys = wire_reader_of(block->rkeys.at, block->rkeys.len);
    for (unsigned i = 0; i < block->caches; i++) {
        int slot = crdt_registry_by_rkey(s->registry, wire_read_u32(&rkeys));
        slot_of[i] = (int16_t)slot;
        oldest[i] = slot >= 0 ? crdt_state_oldest(s, (unsigned)slot) : 0;
    }
    struct crdt_batch_entry e[BATCH];
    struct crdt_batch_reader r = crdt_batch_reader_of(block);
    for (;;) {
        unsigned count = crdt_batch_next(&r, e, BATCH);
        if (count == 0)
            break;
        for (unsigned i = 0; i < count; i++)
            crdt_index_prefetch(s->index, e[i].id48);
        for (unsigned i = 0; i < count; i++) {
            int slot = slot_of[e[i].slot];
            if (slot < 0) {
                s->stats.unknown_replica++;
                continue;
            }
            int result = e[i].generation < oldest[e[i].slot]
                             ? ERR_STALE
                             : crdt_index_observe(s->index, e[i].id48, (unsigned)slot, e[i].code,
                                                  e[i].generation);
            count_joined(s, result, 1, news);
        }
    }
}

static void join_replica(struct crdt_state *s, const struct crdt_origin *origin,
                         const struct crdt_registry_row *in)
{
    bool news = false;
    struct crdt_registry_row row = *in;
    row.told_by = origin != NULL ? origin->router : 0;
    int slot = crdt_registry_join(s->registry, &row, &news);
    s->stats.full += slot == ERR_FULL;
    s->stats.stale += slot == ERR_STALE;
    s->stats.future += slot == ERR_RANGE;
    crdt_state_follow_registry(s);
}

static void join_report(struct crdt_state *s, const struct crdt_origin *origin,
                        const struct crdt_record *record)
{
    struct crdt_report row = record->report.row;
    int slot = crdt_registry_by_key(s->registry, record->report.key);
    if (slot < 0) {
        s->stats.unknown_replica++;
        return;
    }
    row.slot = (unsigned)slot;
    if (origin != NULL) {
        row.router = origin->router;
        row.epoch = origin->epoch;
        row.seq = origin->seq;
    }
    int result = crdt_reports_join(s->reports, &row);
    if (result == ERR_NOT_FOUND)
        s->stats.unknown_router++;
    else if (result == ERR_STALE)
        s->stats.stale++;
    else if (result == ERR_NOMEM)
        s->stats.full++;
}

void crdt_state_join_poison(struct crdt_state *s, const struct crdt_poison_row *row)
{
    int result = crdt_poison_join(&s->poison, row);
    s->stats.full += result == ERR_FULL;
    s->stats.stale += result == ERR_STALE;
    s->stats.future += result == ERR_RANGE;
}

/* Replicas go first: the others name them. */
static void join_replicas(struct crdt_state *s, const struct crdt_origin *origin,
                          struct slice bytes)
{
    struct crdt_records records = crdt_records_of(bytes, origin == NULL);
    struct crdt_record record;
    while (crdt_records_next(&records, &record))
        if (record.kind == CRDT_RECORD_REPLICA)
            join_replica(s, origin, &record.replica);
}

uint64_t crdt_state_join(struct crdt_state *s, const struct crdt_origin *origin, struct slice bytes)
{
    uint64_t news = 0;
    bool dump = origin == NULL;
    join_replicas(s, origin, bytes);
    struct crdt_records records = crdt_records_of(bytes, dump);
    struct crdt_record record;
    while (crdt_records_next(&records, &record)) {
        if (record.kind == CRDT_RECORD_RUN)
            join_run(s, &record.run, &news);
        else if (record.kind == CRDT_RECORD_BATCH)
            join_block(s, &record.block, &news);
        else if (record.kind == CRDT_RECORD_POISON)
            crdt_state_join_poison(s, &record.poison);
        else if (record.kind != CRDT_RECORD_REPLICA)
            join_report(s, origin, &record);
    }
    CHECK(!records.in.bad);
    s->stats.records_skipped += records.skipped;
    s->stats.observations_new += news;
    return news;
}
