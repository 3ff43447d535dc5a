#include "node/kv/batch.h"

#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>

#include <msgpack.h>

#include "base/buf.h"
#include "base/check.h"
#include "tests/lib/files.h"

/* A batch's events as text, a line each; digests as letters: equal digests have the same letter. */
struct heard {
    char text[8192];
    size_t len;
    uint64_t digests[26];
    unsigned known;
    uint32_t blocks; /* of all events */
    bool quiet;      /* counts alone */
};

static struct hash_secret secret;
static struct kv_decoder *decoder;

static int setup(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 1);
    return kv_decoder_create(&decoder, &secret);
}

static int teardown(void **state)
{
    (void)state;
    kv_decoder_destroy(decoder);
    return 0;
}

static void __attribute__((format(printf, 2, 3))) say(struct heard *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(h->text + h->len, sizeof h->text - h->len, format, args);
    va_end(args);
    assert_true(n >= 0 && h->len + (size_t)n < sizeof h->text);
    h->len += (size_t)n;
}

static char letter(struct heard *h, uint64_t digest)
{
    unsigned i = 0;
    while (i < h->known && h->digests[i] != digest)
        i++;
    if (i == h->known) {
        assert_true(h->known < 26);
        h->digests[h->known++] = digest;
    }
    return (char)('a' + i);
}

static void hear(void *context, const struct kv_event *e)
{
    static const char *const changes[] = {"stored", "removed", "cleared"};
    static const char *const media[] = {"gpu", "host", "disk", "other"};
    static const char *const kinds[] = {"", " window", " state", " ignored"};
    struct heard *h = context;
    h->blocks += e->count;
    if (h->quiet)
        return;
    say(h, "%s %s%s%s", changes[e->change], media[e->medium], kinds[e->kind],
        e->remote ? " remote" : "");
    if (e->has_parent)
        say(h, " behind %" PRIx64, e->parent);
    for (uint32_t i = 0; i < e->count; i++)
        say(h, " %" PRIx64 "%s%c", e->hashes[i], e->digests != NULL ? "=" : "",
            e->digests != NULL ? letter(h, e->digests[i]) : ' ');
    say(h, " x%u", e->block_tokens);
    if (e->group != KV_GROUP_NONE)
        say(h, " group %u", e->group);
    if (e->window > 0)
        say(h, " window %u", e->window);
    if (e->space != 0)
        say(h, " in %c", letter(h, e->space));
    if (e->session.len > 0)
        say(h, " session %.*s", SLICE_ARG(e->session));
    say(h, "\n");
}

static struct kv_batch batch;

static int decode(struct slice payload, struct heard *h)
{
    memset(h, 0, sizeof *h);
    batch = (struct kv_batch){.rank = -2};
    return kv_batch_decode(decoder, payload, hear, h, &batch);
}

/* --- recorded -------------------------------------------------------------------------------- */

static void assert_recorded(const char *name, int rank, const char *wanted)
{
    char path[128];
    struct buf b;
    struct heard h;
    (void)snprintf(path, sizeof path, "tests/fuzz/corpus/kv_batch/%s", name);
    assert_int_equal(file_read(path, &b), 0);
    struct slice all = buf_slice(&b);
    assert_int_equal(decode(all, &h), 0);
    assert_string_equal(h.text, wanted);
    assert_int_equal(batch.rank, rank);
    assert_int_equal(batch.skipped, 0);
    /* Cut short anywhere, the batch is refused, and no event is handed over. */
    for (size_t len = 0; len < all.len; len++) {
        assert_int_equal(decode(slice_of(all.at, len), &h), ERR_SYNTAX);
        assert_string_equal(h.text, "");
    }
    buf_free(&b);
}

static void test_recorded(void **state)
{
    (void)state;
    assert_recorded("vllm-0.24-map", 0,
                    "stored gpu 1e0b2e028ef071cb=a a4cb0f7381b59cc3=b x4 group 0\n"
                    "removed gpu 1e0b2e028ef071cb  x0 group 0\n");
    assert_recorded("vllm-0.22-array", 1,
                    "stored gpu behind 1e0b2e028ef071cb a4cb0f7381b59cc3=a x4 group 0\n");
    assert_recorded("vllm-0.14-bytes-lora", 0,
                    "stored gpu 7c7a2dbd3a3c3498=a x4 in b\n"
                    "removed gpu 7c7a2dbd3a3c3498  x0\n"
                    "cleared gpu x0\n");
    assert_recorded("vllm-0.9-signed", -1,
                    "stored gpu a000000000000000=a x4\n"
                    "removed gpu a000000000000000  x0\n");
    assert_recorded("vllm-0.24-cleared", 0, "cleared gpu x0\n");
    assert_recorded("sglang-array", 0,
                    "stored gpu cf97adeedb59e05b=a x4\n"
                    "stored gpu behind cf97adeedb59e05b 578431b4f4c3280a=b x4\n"
                    "removed host cf97adeedb59e05b  578431b4f4c3280a  x0\n");
    assert_recorded("vllm-0.32-real", 0, "stored gpu 4295ef8542f5abed=a x32 group 0\n");
    assert_recorded("vllm-0.32-removed", 0, "removed gpu 4295ef8542f5abed  x0 group 0\n");
    assert_recorded("sglang-real", 0, "stored gpu 34819f75ed7b029c=a x16\n");
}

/* --- made here ------------------------------------------------------------------------------- */

struct made {
    msgpack_sbuffer bytes;
    msgpack_packer p;
};

static void begin(struct made *m, unsigned events)
{
    msgpack_sbuffer_init(&m->bytes);
    msgpack_packer_init(&m->p, &m->bytes, msgpack_sbuffer_write);
    msgpack_pack_array(&m->p, 3);
    msgpack_pack_double(&m->p, 1.5);
    msgpack_pack_array(&m->p, events);
}

static void put_text(struct made *m, const char *text)
{
    msgpack_pack_str(&m->p, strlen(text));
    msgpack_pack_str_body(&m->p, text, strlen(text));
}

static void put_numbers(struct made *m, uint64_t from, unsigned count)
{
    msgpack_pack_array(&m->p, count);
    for (unsigned i = 0; i < count; i++)
        msgpack_pack_uint64(&m->p, from + i);
}

static int end(struct made *m, struct heard *h)
{
    msgpack_pack_nil(&m->p);
    int err = decode(slice_of(m->bytes.data, m->bytes.size), h);
    msgpack_sbuffer_destroy(&m->bytes);
    return err;
}

/* Stores two blocks of 300 tokens: more than are hashed at once. */
static void put_stored(struct made *m, unsigned first, const char *const order[], unsigned count)
{
    msgpack_pack_map(&m->p, count);
    for (unsigned i = 0; i < count; i++) {
        put_text(m, order[i]);
        if (strcmp(order[i], "type") == 0)
            put_text(m, "BlockStored");
        else if (strcmp(order[i], "block_hashes") == 0)
            put_numbers(m, 7, 2);
        else if (strcmp(order[i], "token_ids") == 0)
            put_numbers(m, first, 600);
        else if (strcmp(order[i], "block_size") == 0)
            msgpack_pack_int(&m->p, 300);
        else if (strcmp(order[i], "nested") == 0) {
            msgpack_pack_map(&m->p, 1);
            put_numbers(m, 1, 3); /* as a key */
            put_numbers(m, 1, 3);
        } else
            put_text(m, order[i]);
    }
}

static void test_fields_may_be_in_any_order(void **state)
{
    (void)state;
    static const char *const declared[] = {"type", "block_hashes", "token_ids", "block_size"};
    static const char *const reversed[] = {"block_size", "token_ids", "block_hashes", "type"};
    static const char *const late[] = {"token_ids", "nested",     "later",     "block_hashes",
                                       "type",      "session_id", "block_size"};
    struct made m;
    struct heard h;
    begin(&m, 4);
    put_stored(&m, 1, declared, 4);
    put_stored(&m, 1, reversed, 4);
    put_stored(&m, 1, late, 7);
    put_stored(&m, 2, declared, 4);
    assert_int_equal(end(&m, &h), 0);
    assert_string_equal(h.text, "stored gpu 7=a 8=b x300\n"
                                "stored gpu 7=a 8=b x300\n"
                                "stored gpu 7=a 8=b x300 session session_id\n"
                                "stored gpu 7=c 8=d x300\n");
}

static void put_extra(struct made *m, const char *salt, int offset)
{
    msgpack_pack_array(&m->p, 2); /* for two blocks */
    msgpack_pack_nil(&m->p);
    msgpack_pack_array(&m->p, 2);
    put_text(m, salt);
    msgpack_pack_array(&m->p, 1); /* an image's place */
    msgpack_pack_int(&m->p, offset);
}

static void test_extra_keys_make_other_blocks(void **state)
{
    (void)state;
    static const struct {
        const char *salt;
        int offset;
    } of[] = {{"tenant-a", 1}, {"tenant-a", 1}, {"tenant-b", 1}, {"tenant-a", -1}};
    struct made m;
    struct heard h;
    begin(&m, ARRAY_LEN(of) + 1);
    for (unsigned i = 0; i <= ARRAY_LEN(of); i++) {
        msgpack_pack_map(&m.p, i < ARRAY_LEN(of) ? 5 : 4);
        put_text(&m, "type"), put_text(&m, "BlockStored");
        put_text(&m, "block_hashes"), put_numbers(&m, 7, 2);
        put_text(&m, "token_ids"), put_numbers(&m, 1, 8);
        put_text(&m, "block_size"), msgpack_pack_int(&m.p, 4);
        if (i < ARRAY_LEN(of))
            put_text(&m, "extra_keys"), put_extra(&m, of[i].salt, of[i].offset);
    }
    assert_int_equal(end(&m, &h), 0);
    assert_string_equal(h.text, "stored gpu 7=a 8=b x4\n"
                                "stored gpu 7=a 8=b x4\n"
                                "stored gpu 7=a 8=c x4\n"
                                "stored gpu 7=a 8=d x4\n"
                                "stored gpu 7=a 8=e x4\n");
}

static void put_array(struct made *m, const char *tag, unsigned count, unsigned tokens,
                      unsigned size)
{
    msgpack_pack_array(&m->p, count);
    put_text(m, tag);
    put_numbers(m, 7, 2);
    msgpack_pack_nil(&m->p);
    put_numbers(m, 1, tokens);
    msgpack_pack_int(&m->p, (int)size);
    for (unsigned i = 5; i < count; i++)
        msgpack_pack_nil(&m->p);
}

static void test_tokens_that_do_not_fit_the_blocks(void **state)
{
    (void)state;
    struct made m;
    struct heard h;
    begin(&m, 6);
    put_array(&m, "BlockStored", 6, 8, 4);
    put_array(&m, "BlockStored", 6, 12, 4); /* a sliding window skips blocks */
    put_array(&m, "BlockStored", 6, 7, 4);
    put_array(&m, "BlockStored", 6, 0, 0); /* an offloading connector's */
    put_array(&m, "BlockStored", 6, 9, 1);
    put_array(&m, "BlockStored", 20, 8, 4); /* a later release's */
    assert_int_equal(end(&m, &h), 0);
    assert_string_equal(h.text, "stored gpu 7=a 8=b x4\n"
                                "stored gpu 7  8  x4\n"
                                "stored gpu 7  8  x4\n"
                                "stored gpu 7  8  x0\n"
                                "stored gpu 7  8  x1\n"
                                "stored gpu 7=a 8=b x4\n");
}

static void test_a_pair_of_tokens_counts_once(void **state)
{
    (void)state;
    struct made m;
    struct heard h;
    begin(&m, 1);
    msgpack_pack_array(&m.p, 5);
    put_text(&m, "BlockStored");
    put_numbers(&m, 7, 2);
    msgpack_pack_nil(&m.p);
    msgpack_pack_array(&m.p, 4);
    for (unsigned i = 0; i < 4; i++)
        put_numbers(&m, i % 2, 2);
    msgpack_pack_int(&m.p, 2);
    assert_int_equal(end(&m, &h), 0);
    assert_string_equal(h.text, "stored gpu 7=a 8=a x2\n");
}

static void test_unknown_events_are_skipped(void **state)
{
    (void)state;
    struct made m;
    struct heard h;
    begin(&m, 6);
    put_array(&m, "BlockMoved", 6, 8, 4);
    msgpack_pack_nil(&m.p);
    put_text(&m, "BlockStored");
    msgpack_pack_array(&m.p, 0);
    msgpack_pack_map(&m.p, 0);
    put_array(&m, "BlockStored", 6, 8, 4);
    assert_int_equal(end(&m, &h), 0);
    assert_string_equal(h.text, "stored gpu 7=a 8=b x4\n");
    assert_int_equal(batch.skipped, 5);
    assert_int_equal(batch.events, 1);
}

static void test_malformed_batches(void **state)
{
    (void)state;
    static const char *const none[] = {
        "",
        "\xc0",
        "\x80",
        "\x91\xcb",                         /* only one element */
        "\x92\x00\xc0",                     /* no list of events */
        "\x92\x00\x81\x00\x00",             /* a map */
        "\x92\x00\xdd\xff\xff\xff\xff\xc0", /* announces more than the bytes contain */
        "\xdd\xff\xff\xff\xff\x00",
        "\xc1",
    };
    struct heard h;
    for (unsigned i = 0; i < ARRAY_LEN(none); i++) {
        size_t len = i == 4 ? 3 : i == 5 ? 5 : i == 6 ? 8 : i == 7 ? 6 : strlen(none[i]);
        assert_int_equal(decode(slice_of(none[i], len), &h), ERR_SYNTAX);
    }
    char deep[100];
    memset(deep, 0x92, sizeof deep);
    assert_int_equal(decode(slice_of(deep, sizeof deep), &h), ERR_SYNTAX);
    /* A list announces 4 billion hashes, tokens and extra keys. */
    static const char list[] = "\x92\x00\x91\x96\xabStoredBlock\xdd\xff\xff\xff\xff\x01";
    assert_int_equal(decode(slice_of(list, sizeof list - 1), &h), ERR_SYNTAX);
}

static void test_limits(void **state)
{
    (void)state;
    struct made m;
    struct heard h;
    for (unsigned more = 0; more < 2; more++) {
        unsigned blocks = KV_EVENT_BLOCKS_MAX + more;
        begin(&m, 1);
        msgpack_pack_array(&m.p, 2);
        put_text(&m, "BlockRemoved");
        put_numbers(&m, 0, blocks);
        msgpack_pack_nil(&m.p);
        memset(&h, 0, sizeof h);
        h.quiet = true;
        assert_int_equal(
            kv_batch_decode(decoder, slice_of(m.bytes.data, m.bytes.size), hear, &h, &batch),
            more ? ERR_LIMIT : 0);
        assert_int_equal(h.blocks, more ? 0 : blocks);
        msgpack_sbuffer_destroy(&m.bytes);
    }
    begin(&m, KV_BATCH_EVENTS_MAX + 1);
    for (unsigned i = 0; i <= KV_BATCH_EVENTS_MAX; i++)
        msgpack_pack_nil(&m.p);
    assert_int_equal(end(&m, &h), ERR_LIMIT);
    /* The number of tokens does not count towards the limit. */
    begin(&m, 1);
    put_array(&m, "BlockStored", 6, 1 << 20, 1 << 19);
    assert_int_equal(end(&m, &h), 0);
    assert_string_equal(h.text, "stored gpu 7=a 8=b x524288\n");
}

static void test_media_and_kinds(void **state)
{
    (void)state;
    static const struct {
        const char *medium, *kind, *wanted;
    } of[] = {
        {"CPU", "full_attention", "host"},
        {"cpu", "mla_attention", "host"},
        {"CPU_PINNED", "mamba", "host state"},
        {"STORAGE", "sliding_window_mla", "disk window"},
        {"OBJ", "cross_attention", "disk ignored"},
        {"lmcache", "unknown", "other ignored"},
        {"", "chunked_local_attention", "gpu window"},
    };
    for (unsigned i = 0; i < ARRAY_LEN(of); i++) {
        struct made m;
        struct heard h;
        char wanted[128];
        begin(&m, 1);
        msgpack_pack_map(&m.p, 6);
        put_text(&m, "type"), put_text(&m, "BlockStored");
        put_text(&m, "medium"), put_text(&m, of[i].medium);
        put_text(&m, "kv_cache_spec_kind"), put_text(&m, of[i].kind);
        put_text(&m, "kv_cache_spec_sliding_window"), msgpack_pack_int(&m.p, 4096);
        put_text(&m, "group_idx"), msgpack_pack_int(&m.p, 3);
        put_text(&m, "locality"), put_text(&m, i == 0 ? "REMOTE" : "LOCAL");
        assert_int_equal(end(&m, &h), 0);
        (void)snprintf(wanted, sizeof wanted, "stored %s%s x0 group 3 window 4096\n", of[i].wanted,
                       i == 0 ? " remote" : "");
        assert_string_equal(h.text, wanted);
    }
}

static void announced(void *context, uint64_t hash)
{
    say(context, "soon %" PRIx64 "\n", hash);
}

static void test_blocks_are_announced(void **state)
{
    (void)state;
    struct buf b;
    struct heard h;
    assert_int_equal(file_read("tests/fuzz/corpus/kv_batch/vllm-0.24-map", &b), 0);
    kv_decoder_ahead(decoder, announced);
    assert_int_equal(decode(buf_slice(&b), &h), 0);
    kv_decoder_ahead(decoder, NULL);
    assert_string_equal(h.text, "soon 1e0b2e028ef071cb\n"
                                "soon a4cb0f7381b59cc3\n"
                                "soon 1e0b2e028ef071cb\n"
                                "stored gpu 1e0b2e028ef071cb=a a4cb0f7381b59cc3=b x4 group 0\n"
                                "removed gpu 1e0b2e028ef071cb  x0 group 0\n");
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_fields_may_be_in_any_order),
        cmocka_unit_test(test_extra_keys_make_other_blocks),
        cmocka_unit_test(test_tokens_that_do_not_fit_the_blocks),
        cmocka_unit_test(test_a_pair_of_tokens_counts_once),
        cmocka_unit_test(test_unknown_events_are_skipped),
        cmocka_unit_test(test_malformed_batches),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_media_and_kinds),
        cmocka_unit_test(test_blocks_are_announced),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
