/* Any bytes as a file of state (node/cluster/keep.h): as they are, and as frames { kind, length 2,
 * body } with correct checksums, after a valid head. Nothing breaks, and the result can be written
 * and read again. */
#include "base/check.h"
#include "base/err.h"
#include "crdt/learned.h"
#include "crdt/state.h"
#include "node/cluster/keep.h"
#include "node/kv/readers.h"
#include "node/replica/model_keep.h"
#include "node/replica/ruler.h"
#include "tests/lib/keep_help.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SLOTS = 16, FEED_KIND = 3 };

static struct hash_secret secret;

static int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)context, (void)feed, (void)endpoint, (void)replay, (void)topic;
    return ERR_OK;
}

static void on_close(void *context, unsigned feed)
{
    (void)context, (void)feed;
}

static int on_replay(void *context, unsigned feed, uint64_t from)
{
    (void)context, (void)feed, (void)from;
    return ERR_OK;
}

static uint64_t on_malformed(void *context, unsigned feed)
{
    (void)context, (void)feed;
    return 0;
}

static const struct kv_readers_shell shell = {on_open, on_close, on_replay, on_malformed, NULL};

static struct node_state *make_state(void)
{
    const struct node_state_config config = {.secret = secret,
                                             .replicas_max = SLOTS,
                                             .index_bytes = 1 << 20,
                                             .generation_ms = 8000,
                                             .ttl_ms = 80000,
                                             .wall_ms = 1700000000000,
                                             .now_ms = 1};
    struct node_state *s;
    CHECK(node_state_create(&s, &config) == ERR_OK);
    return s;
}

static void write_whole(const struct node_state *s, const struct kv_readers *rs, struct buf *out)
{
    const struct node_keep_source source = {.state = s, .readers = rs};
    struct node_keep *k;
    CHECK(node_keep_begin(&k, &source, 1) == ERR_OK);
    while (node_keep_next(k, out) == 1)
        continue;
    node_keep_end(k);
}

/* Values learned from answers: the router's two parts. */
struct told {
    struct node_models *models;
    struct node_ruler *ruler;
};

static void on_told(void *context, struct slice piece)
{
    const struct told *t = context;
    bool models = piece.len > 0 && piece.at[0] % 2 == 0;
    if (models)
        node_models_recall(t->models, slice_skip(piece, 1));
    else if (piece.len > 0)
        node_ruler_recall(t->ruler, slice_skip(piece, 1));
}

static void on_any(void *context, struct slice piece)
{
    bool *any = context;
    *any |= piece.len > 1;
}

/* Merges the result into new parts, writes these, and compares. */
static void told_again(const struct node_kept *k)
{
    struct told t, again;
    struct buf kept[2] = {{0}}, twice[2] = {{0}};
    struct told *all[] = {&t, &again};
    bool any = false;
    node_kept_told(k, on_any, &any);
    if (!any) /* tables of models are large */
        return;
    for (unsigned i = 0; i < 2; i++) {
        CHECK(node_models_create(&all[i]->models, &secret, 4, 100) == ERR_OK);
        CHECK(node_ruler_create(&all[i]->ruler) == ERR_OK);
    }
    node_kept_told(k, on_told, &t);
    for (unsigned i = 0; i < 2; i++) {
        unsigned at[2] = {0, 0};
        struct buf *out = i == 0 ? kept : twice;
        size_t from = 0;
        node_models_check(all[i]->models);
        for (; node_models_keep(all[i]->models, &at[0], &out[0]) == 1; from = out[0].len)
            node_models_recall(again.models, slice_skip(buf_slice(&out[0]), from));
        from = 0;
        for (; node_ruler_keep(all[i]->ruler, &at[1], &out[1]) == 1; from = out[1].len)
            node_ruler_recall(again.ruler, slice_skip(buf_slice(&out[1]), from));
    }
    CHECK(slice_equal(buf_slice(&kept[0]), buf_slice(&twice[0])));
    CHECK(slice_equal(buf_slice(&kept[1]), buf_slice(&twice[1])));
    for (unsigned i = 0; i < 2; i++) {
        node_models_destroy(all[i]->models);
        node_ruler_destroy(all[i]->ruler);
        buf_free(&kept[i]);
        buf_free(&twice[i]);
    }
}

static void learned(void *context, unsigned slot, const struct crdt_learned *l)
{
    (void)context, (void)l;
    CHECK(slot < SLOTS);
}

/* Makes a file with another process's head and the input's frames. */
static void make_file(const uint8_t *data, size_t size, struct buf *out)
{
    struct buf whole = {0};
    struct node_state *s = make_state();
    write_whole(s, NULL, &whole);
    size_t at = KEEP_MAGIC;
    uint8_t kind;
    uint64_t check = 0;
    struct slice head = keep_body(buf_slice(&whole), &at, &kind);
    CHECK(buf_append(out, whole.at, KEEP_MAGIC) == ERR_OK);
    keep_frame(out, &check, kind, head);
    struct wire_reader r = wire_reader_of(data, size);
    while (wire_left(&r) > 3) {
        kind = wire_read_u8(&r);
        size_t len = wire_read_u16(&r);
        size_t left = wire_left(&r);
        keep_frame(out, &check, 2 + kind % 5, wire_read_bytes(&r, len < left ? len : left));
    }
    keep_frame(out, &check, KEEP_END, slice_of(NULL, 0));
    node_state_destroy(s);
    buf_free(&whole);
}

/* Opens the feeds named by the frames. */
static void open_feeds(struct kv_readers *rs, struct slice file)
{
    size_t at = KEEP_MAGIC;
    unsigned slot = 0;
    uint8_t kind = 0;
    while (kind != KEEP_END && slot < SLOTS) {
        struct slice body = keep_body(file, &at, &kind);
        struct wire_reader r = wire_reader_of(body.at, body.len);
        if (kind == FEED_KIND)
            kv_readers_want(rs, slot++,
                            &(struct kv_wanted){.role = KV_ROLE_SPEAKS,
                                                .rkey = wire_read_u32(&r),
                                                .endpoint = SLICE("tcp://a:1")},
                            1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct node_kept k;
    struct buf file = {0}, again = {0};
    const char *why;
    struct kv_readers *rs;
    hash_secret_from_seed(&secret, 1);
    DISCARD(node_kept_read(&k, slice_of((const char *)data, size), &why));
    make_file(data, size, &file);
    CHECK(node_kept_read(&k, buf_slice(&file), &why) == ERR_OK);
    struct node_state *s = make_state();
    CHECK(kv_readers_create(&rs, SLOTS, &secret, &shell, NULL) == ERR_OK);
    CHECK(node_kept_join(&k, s, rs, 1, &why) == ERR_OK);
    node_kept_learned(&k, s, learned, NULL);
    told_again(&k);
    open_feeds(rs, buf_slice(&file));
    node_state_check(s);
    kv_readers_check(rs);
    write_whole(s, rs, &again);
    CHECK(node_kept_read(&k, buf_slice(&again), &why) == ERR_OK);
    kv_readers_destroy(rs);
    node_state_destroy(s);
    buf_free(&file);
    buf_free(&again);
    return 0;
}
