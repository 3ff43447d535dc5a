#include "node/cluster/keep.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/wire.h"
#include "crdt/state.h"
#include "crdt/value.h"
#include "node/kv/readers.h"

enum kind { KIND_HEAD = 1, KIND_PATHS, KIND_FEED, KIND_LEARNED, KIND_TOLD, KIND_STATE, KIND_END };
enum {
    FRAME_HEAD = 5,
    CHECK_BYTES = 8,
    LEARNED_HEAD = 6 + 2,
    HEAD_BYTES = 2 + 6 + 4 + 4 + 8 + 4 + 1, /* plus the secret, if the router has no cluster */
    PASSES_MAX = 64,                        /* passes over the paths */
    END_ROOM = 1 << 20,                     /* bytes of a file reserved for the last chunk and the
                                             * end */
};

static const char magic[] = "GRAPEVINE-STATE\n";
enum { MAGIC_BYTES = sizeof magic - 1 };

/* --- frames ---------------------------------------------------------------------------------- */

static uint64_t check_next(uint64_t before, const char *frame, size_t len)
{
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 0x67726170); /* any constant will do, because the check only
                                                 * detects accidents */
    return hash_mix(before ^ hash64(&secret, frame, len));
}

struct node_keep {
    struct node_keep_source of;
    bool learned; /* a frame LEARNED was written */
    unsigned told_at[2];
    uint64_t now_ms, check, bytes, rewinds;
    enum kind stage;
    struct kv_keep feeds;
    struct crdt_snapshot cursor;
};

static int frame_begin(struct buf *out, enum kind kind)
{
    char head[FRAME_HEAD] = {(char)kind};
    return buf_append(out, head, sizeof head);
}

static int frame_end(struct node_keep *k, struct buf *out, size_t start)
{
    size_t body = out->len - start - FRAME_HEAD;
    struct wire_writer w = wire_writer_of(out->at + start + 1, 4);
    wire_write_u32(&w, (uint32_t)body);
    uint64_t check = check_next(k->check, out->at + start, out->len - start);
    uint8_t bytes[CHECK_BYTES];
    w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u64(&w, check);
    int err = buf_append(out, bytes, sizeof bytes);
    if (err == ERR_OK)
        k->check = check;
    return err;
}

/* --- writing --------------------------------------------------------------------------------- */

static int head_put(const struct node_keep *k, struct buf *out)
{
    uint8_t bytes[HEAD_BYTES + HASH_SECRET_BYTES];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    const struct node_state_config *config = node_state_config_of(k->of.state);
    struct node_agreement a = node_state_agreement(k->of.state);
    wire_write_u16(&w, NODE_KEEP_VERSION);
    wire_write_u48(&w, node_state_cluster_ms(k->of.state, k->now_ms));
    wire_write_u32(&w, a.generation_ms);
    wire_write_u32(&w, a.ttl_ms);
    wire_write_u64(&w, a.hash);
    wire_write_u32(&w, a.id_ranges);
    wire_write_u8(&w, !config->replicated);
    if (!config->replicated) /* routers of a cluster derive the secret from the cluster's key */
        wire_write_bytes(&w, config->secret.bytes, HASH_SECRET_BYTES);
    CHECK(!w.bad);
    return buf_append(out, bytes, wire_written(&w));
}

/* Writes { key 6 | length 2 | value } of each replica. Returns 1; 0: they were written before. */
static int learned_put(struct node_keep *k, struct buf *out)
{
    const struct crdt_registry *registry = crdt_state_registry(node_state_crdt(k->of.state));
    union crdt_report_value v;
    if (k->learned)
        return 0;
    k->learned = true;
    for (unsigned slot = 0; slot < crdt_registry_count(registry); slot++) {
        uint8_t bytes[LEARNED_HEAD + CRDT_VALUE_BYTES_MAX];
        memset(&v, 0, sizeof v);
        if (!crdt_registry_has(registry, slot) || !k->of.learned(k->of.context, slot, &v.learned))
            continue;
        struct wire_writer w = wire_writer_of(bytes + LEARNED_HEAD, CRDT_VALUE_BYTES_MAX);
        crdt_value_write(&w, CRDT_REPORT_LEARNED, &v, slice_of(NULL, 0));
        size_t len = wire_written(&w);
        w = wire_writer_of(bytes, LEARNED_HEAD);
        wire_write_u48(&w, crdt_registry_at(registry, slot)->key);
        wire_write_u16(&w, (uint16_t)len);
        int err = buf_append(out, bytes, LEARNED_HEAD + len);
        if (err != ERR_OK)
            return err;
    }
    return 1;
}

/* Appends the next piece of the current stage. Returns 1, or 0 at the end of the stage. */
static int stage_put(struct node_keep *k, struct buf *out)
{
    switch (k->stage) {
    case KIND_PATHS:
        return k->of.readers != NULL ? kv_readers_keep_paths(k->of.readers, &k->feeds, out) : 0;
    case KIND_FEED:
        return k->of.readers != NULL ? kv_readers_keep_feed(k->of.readers, &k->feeds, out) : 0;
    case KIND_LEARNED:
        return k->of.learned != NULL ? learned_put(k, out) : 0;
    case KIND_TOLD:
        return k->of.told != NULL ? k->of.told(k->of.context, k->told_at, out) : 0;
    case KIND_STATE:
        if (k->bytes >= NODE_KEEP_BYTES_MAX - END_ROOM)
            return 0;
        return crdt_snapshot_next(node_state_crdt(k->of.state), &k->cursor, out);
    default:
        return 0;
    }
}

static int head_write(struct node_keep *k, struct buf *out)
{
    int err = buf_append(out, magic, MAGIC_BYTES);
    size_t start = out->len;
    if (err == ERR_OK)
        err = frame_begin(out, KIND_HEAD);
    if (err == ERR_OK)
        err = head_put(k, out);
    if (err == ERR_OK)
        err = frame_end(k, out, start);
    k->stage = KIND_PATHS;
    return err == ERR_OK ? 1 : err;
}

static int end_write(struct node_keep *k, struct buf *out)
{
    size_t start = out->len;
    int err = frame_begin(out, KIND_END);
    if (err == ERR_OK)
        err = frame_end(k, out, start);
    k->stage = 0;
    return err == ERR_OK ? 1 : err;
}

static int piece_write(struct node_keep *k, struct buf *out)
{
    if (k->stage == KIND_HEAD)
        return head_write(k, out);
    while (k->stage < KIND_END) {
        size_t start = out->len;
        int more = frame_begin(out, k->stage);
        if (more == ERR_OK)
            more = stage_put(k, out);
        if (more < 0)
            return more;
        if (more == 1) {
            int err = frame_end(k, out, start);
            return err == ERR_OK ? 1 : err;
        }
        out->len = start;
        k->stage++;
    }
    return end_write(k, out);
}

int node_keep_next(struct node_keep *k, struct buf *out)
{
    size_t before = out->len;
    if (k->stage == 0)
        return 0;
    if (k->rewinds != node_state_rewinds(k->of.state))
        return ERR_STALE;
    int more = piece_write(k, out);
    k->bytes += out->len - before;
    return more;
}

int node_keep_begin(struct node_keep **out, const struct node_keep_source *source, uint64_t now_ms)
{
    struct node_keep *k = calloc(1, sizeof *k);
    if (k == NULL)
        return ERR_NOMEM;
    *k = (struct node_keep){.of = *source,
                            .now_ms = now_ms,
                            .rewinds = node_state_rewinds(source->state),
                            .stage = KIND_HEAD};
    crdt_snapshot_begin(&k->cursor, 0);
    *out = k;
    return ERR_OK;
}

void node_keep_end(struct node_keep *k)
{
    free(k);
}

/* --- reading --------------------------------------------------------------------------------- */

struct frames {
    struct wire_reader r;
    uint64_t check;
};

static struct frames frames_of(struct slice file)
{
    return (struct frames){.r = wire_reader_of(file.at + MAGIC_BYTES, file.len - MAGIC_BYTES)};
}

static bool frames_next(struct frames *f, unsigned *kind, struct slice *body)
{
    const char *start = (const char *)f->r.at;
    *kind = wire_read_u8(&f->r);
    *body = wire_read_bytes(&f->r, wire_read_u32(&f->r));
    uint64_t check = wire_read_u64(&f->r);
    if (f->r.bad)
        return false;
    f->check = check_next(f->check, start, FRAME_HEAD + body->len);
    return f->check == check;
}

static int head_read(struct node_kept *k, struct slice body, const char **why)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    unsigned version = wire_read_u16(&r);
    *why = "is of another version of grapevine";
    if (version != NODE_KEEP_VERSION)
        return ERR_VERSION;
    k->cluster_ms = wire_read_u48(&r);
    k->agreement.generation_ms = wire_read_u32(&r);
    k->agreement.ttl_ms = wire_read_u32(&r);
    k->agreement.hash = wire_read_u64(&r);
    k->agreement.id_ranges = wire_read_u32(&r);
    k->alone = wire_read_u8(&r) != 0;
    struct slice secret = wire_read_bytes(&r, k->alone ? HASH_SECRET_BYTES : 0);
    if (!r.bad && k->alone)
        memcpy(k->secret.bytes, secret.at, HASH_SECRET_BYTES);
    *why = "is damaged";
    return r.bad || wire_left(&r) > 0 ? ERR_SYNTAX : ERR_OK;
}

int node_kept_read(struct node_kept *out, struct slice file, const char **why)
{
    *out = (struct node_kept){.file = file};
    *why = "is no state of grapevine, or its beginning is damaged";
    if (file.len < MAGIC_BYTES || memcmp(file.at, magic, MAGIC_BYTES) != 0)
        return ERR_SYNTAX;
    struct frames f = frames_of(file);
    unsigned kind;
    struct slice body;
    bool is_first = true;
    do {
        *why = "is damaged, or was cut";
        if (!frames_next(&f, &kind, &body) || is_first != (kind == KIND_HEAD) || kind > KIND_END)
            return ERR_SYNTAX;
        int err = is_first ? head_read(out, body, why) : ERR_OK;
        if (err != ERR_OK)
            return err;
        is_first = false;
    } while (kind != KIND_END);
    return body.len == 0 && wire_left(&f.r) == 0 ? ERR_OK : ERR_SYNTAX;
}

static int fits(const struct node_kept *k, const struct node_state *s, uint64_t now_ms,
                const char **why)
{
    struct node_agreement own = node_state_agreement(s);
    uint64_t now = node_state_cluster_ms(s, now_ms);
    *why = "is of another cluster, or of a router alone";
    if (k->agreement.hash != own.hash)
        return ERR_DENIED;
    *why = "is of other settings (generation, index-bytes)";
    if (k->agreement.generation_ms != own.generation_ms || k->agreement.id_ranges != own.id_ranges)
        return ERR_RANGE;
    *why = "is from the future: this machine's clock was set back, or another machine wrote it";
    if (k->cluster_ms > now + NODE_KEEP_FUTURE_MS)
        return ERR_RANGE;
    *why = "is older than ttl, so everything in it has expired";
    return k->cluster_ms + own.ttl_ms < now ? ERR_STALE : ERR_OK;
}

/* A point's parent may be in a later piece, so pieces are read again until a pass places no further
 * point. */
static void paths_recall(const struct node_kept *k, struct kv_readers *readers)
{
    bool any = readers != NULL;
    for (unsigned pass = 0; any && pass < PASSES_MAX; pass++) {
        struct frames f = frames_of(k->file);
        unsigned kind;
        struct slice body;
        any = false;
        while (frames_next(&f, &kind, &body) && kind != KIND_END) {
            if (kind == KIND_PATHS && kv_readers_recall_paths(readers, body))
                any = true;
        }
    }
}

/* A malformed chunk would be skipped, but no chunk with a correct check is malformed. */
int node_kept_join(const struct node_kept *k, struct node_state *s, struct kv_readers *readers,
                   uint64_t now_ms, const char **why)
{
    int err = fits(k, s, now_ms, why);
    if (err != ERR_OK)
        return err;
    node_state_clock(s, now_ms);
    struct frames f = frames_of(k->file);
    unsigned kind;
    struct slice body;
    while (frames_next(&f, &kind, &body) && kind != KIND_END) {
        if (kind == KIND_STATE)
            DISCARD(crdt_snapshot_apply(node_state_crdt(s), body));
        else if (kind == KIND_FEED && readers != NULL)
            kv_readers_recall_feed(readers, body);
    }
    paths_recall(k, readers);
    return ERR_OK;
}

void node_kept_learned(const struct node_kept *k, const struct node_state *s,
                       void (*learned)(void *context, unsigned slot,
                                       const struct crdt_learned *learned),
                       void *context)
{
    const struct crdt_registry *registry = crdt_state_registry(node_state_crdt(s));
    struct frames f = frames_of(k->file);
    unsigned kind;
    struct slice body;
    while (frames_next(&f, &kind, &body) && kind != KIND_LEARNED && kind != KIND_END)
        continue;
    struct wire_reader r = wire_reader_of(body.at, kind == KIND_LEARNED ? body.len : 0);
    while (wire_left(&r) > 0) {
        union crdt_report_value v;
        struct slice later;
        int slot = crdt_registry_by_key(registry, wire_read_u48(&r));
        struct slice value = wire_read_bytes(&r, wire_read_u16(&r));
        if (r.bad)
            break;
        struct wire_reader in = wire_reader_of(value.at, value.len);
        crdt_value_read(&in, CRDT_REPORT_LEARNED, &v, &later);
        if (slot >= 0 && !in.bad)
            learned(context, (unsigned)slot, &v.learned);
    }
}

void node_kept_told(const struct node_kept *k, void (*told)(void *context, struct slice piece),
                    void *context)
{
    struct frames f = frames_of(k->file);
    unsigned kind;
    struct slice body;
    while (frames_next(&f, &kind, &body) && kind != KIND_END) {
        if (kind == KIND_TOLD)
            told(context, body);
    }
}
