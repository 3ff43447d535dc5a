#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "crdt/classes.h"
#include "crdt/record.h"
#include "crdt/state_internal.h"

enum {
    CHUNK_TARGET = 20480,
    ENTRY_BYTES = 10,      /* bytes of a single entry, at most */
    HOLDER_BYTES = 3,      /* bytes of an entry in a set, without the shared id */
    BUCKETS_MAX = 1 << 16, /* index buckets scanned for a chunk: less than a millisecond */
    BUCKET_ENTRIES_MAX = 7 * CRDT_NAMES_MAX, /* most entries in a bucket: seven full sets */
    ENTRIES_MAX = CHUNK_TARGET / HOLDER_BYTES + BUCKET_ENTRIES_MAX + 1,
};
_Static_assert(CHUNK_TARGET + BUCKET_ENTRIES_MAX * HOLDER_BYTES + CRDT_NAMES_MAX * 4 + 128 <=
                   CRDT_CHUNK_MAX,
               "a chunk has room for one more bucket than its target, and for its caches");

enum { STAGE_INDEX = CRDT_CLASSES, STAGE_END }; /* the first stages are crdt_classes */

void crdt_snapshot_begin(struct crdt_snapshot *c, uint32_t from)
{
    *c = (struct crdt_snapshot){.from = from};
}

/* --- the index ------------------------------------------------------------------------------ */

struct gathering {
    uint32_t from;
    unsigned count;
    size_t bytes; /* approximate size of the entries when written */
    struct crdt_batch_entry entry[ENTRIES_MAX];
};

static void gather(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                   uint32_t generation)
{
    struct gathering *g = context;
    if (generation < g->from || BUG_RARE(RARE_ENTRY))
        return;
    const struct crdt_batch_entry *before = &g->entry[g->count > 0 ? g->count - 1 : 0];
    bool shares = g->count > 0 && before->id48 == id48 && before->code == weight_code;
    g->bytes += shares ? HOLDER_BYTES : ENTRY_BYTES;
    CHECK(g->count < ENTRIES_MAX);
    g->entry[g->count++] = (struct crdt_batch_entry){
        .id48 = id48, .generation = generation, .slot = (uint16_t)replica, .code = weight_code};
}

static int next_block(const struct crdt_state *s, struct crdt_snapshot *c, struct buf *out)
{
    struct gathering *g = malloc(sizeof *g);
    if (g == NULL)
        return ERR_NOMEM;
    g->from = c->from;
    g->count = 0;
    g->bytes = 0;
    struct crdt_index_cursor cursor = c->cursor;
    bool more = c->from <= crdt_index_now(s->index) + 1; /* false: the snapshot leaves the index
                                                          * out */
    for (unsigned i = 0; more && i < BUCKETS_MAX && g->bytes < CHUNK_TARGET; i++)
        more = crdt_index_walk(s->index, &cursor, 1, gather, g);
    int err = 0;
    if (g->count > 0) {
        err = crdt_record_append_batch(out, g->entry, g->count, s->rkey_known);
    }
    free(g);
    if (err != 0)
        return err;
    c->cursor = cursor;
    if (!more)
        c->stage = STAGE_END;
    return 0;
}

/* --- chunks --------------------------------------------------------------------------------- */

static int next_rows(const struct crdt_state *s, struct crdt_snapshot *c, struct buf *out)
{
    int err = buf_reserve(out, CRDT_CHUNK_MAX);
    if (err != 0)
        return err;
    struct wire_writer w = wire_writer_of(out->at + out->len, CRDT_CHUNK_MAX);
    bool done = crdt_classes[c->stage].dump(s, &c->position, &w);
    out->len += wire_written(&w);
    if (done) {
        c->stage++;
        c->position = 0;
    }
    return 0;
}

int crdt_snapshot_next(const struct crdt_state *s, struct crdt_snapshot *c, struct buf *out)
{
    const size_t before = out->len;
    while (c->stage < STAGE_END) {
        bool walking = c->stage == STAGE_INDEX;
        int err = walking ? next_block(s, c, out) : next_rows(s, c, out);
        if (err != 0) {
            out->len = before;
            return err;
        }
        if (out->len > before || (walking && c->stage == STAGE_INDEX)) {
            CHECK(out->len - before <= CRDT_CHUNK_MAX);
            CHECK_SLOW(crdt_records_valid(slice_skip(buf_slice(out), before), true));
            return 1;
        }
    }
    return 0;
}

int crdt_snapshot_apply(struct crdt_state *s, struct slice chunk)
{
    if (!crdt_records_valid(chunk, true)) {
        s->stats.malformed++;
        return ERR_SYNTAX;
    }
    (void)crdt_state_join(s, NULL, chunk);
    return 0;
}
