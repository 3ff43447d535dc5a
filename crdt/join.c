#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/classes.h"
#include "crdt/record.h"
#include "crdt/state_internal.h"

enum { BATCH = 64 };

/* Counts the results of a join. */
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

static void hear_tiding(struct crdt_state *s, const struct crdt_origin *origin,
                        const struct crdt_record *record)
{
    CHECK(origin != NULL); /* a dump has no tidings */
    s->stats.tidings_in++;
    if (s->tiding != NULL)
        s->tiding(s->tiding_context, origin->router, record->tiding.kind, record->tiding.body);
}

static void join_row(struct crdt_state *s, const struct crdt_origin *origin,
                     const struct crdt_record *record)
{
    for (unsigned i = 0; i < CRDT_CLASSES; i++)
        if ((crdt_classes[i].records & 1u << record->kind) != 0)
            crdt_classes[i].join(s, origin, record);
}

uint64_t crdt_state_join(struct crdt_state *s, const struct crdt_origin *origin, struct slice bytes)
{
    uint64_t news = 0;
    struct crdt_records records;
    /* Replicas go first, because the other records refer to them. */
    for (unsigned others = 0; others < 2; others++) {
        records = crdt_records_of(bytes, origin == NULL);
        struct crdt_record record;
        while (crdt_records_next(&records, &record)) {
            if (others != (record.kind != CRDT_RECORD_REPLICA))
                continue;
            if (record.kind == CRDT_RECORD_RUN)
                join_run(s, &record.run, &news);
            else if (record.kind == CRDT_RECORD_BATCH)
                join_block(s, &record.block, &news);
            else if (record.kind == CRDT_RECORD_TIDING)
                hear_tiding(s, origin, &record);
            else
                join_row(s, origin, &record);
        }
    }
    CHECK(!records.in.bad);
    s->stats.records_skipped += records.skipped;
    s->stats.observations_new += news;
    return news;
}
