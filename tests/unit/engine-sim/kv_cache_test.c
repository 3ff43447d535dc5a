/* From an engine's cache to what is believed of it: tests/engine-sim/cache.h says what it stores
 * and removes. That is published in the form of a release, read, and kept in a tree; the cache is
 * the truth. */
#include "tests/lib/test.h"

#include <msgpack.h>

#include "base/check.h"
#include "base/prng.h"
#include "node/kv/batch.h"
#include "node/kv/tree.h"
#include "tests/engine-sim/cache.h"

enum { BLOCK = 4, PROMPT = 12, NAMES = 1 << 16, AT_ONCE = 4 };

/* What a name stands for: the block in front and the tokens. */
struct meaning {
    uint64_t name, parent;
    uint32_t tokens[BLOCK];
};

static struct hash_secret secret;
static struct meaning meanings[NAMES];

enum form { ARRAY, MAP, BYTES };

struct publisher {
    enum form form;
    msgpack_sbuffer events;
    msgpack_packer p;
    unsigned count;
};

static struct meaning *meaning_of(uint64_t name)
{
    struct meaning *m = &meanings[name % NAMES];
    while (m->name != 0 && m->name != name)
        m = m + 1 < meanings + NAMES ? m + 1 : meanings;
    return m;
}

static void text(struct publisher *p, const char *t)
{
    msgpack_pack_str(&p->p, strlen(t));
    msgpack_pack_str_body(&p->p, t, strlen(t));
}

static void field(struct publisher *p, const char *name)
{
    if (p->form == MAP)
        text(p, name);
}

static void event(struct publisher *p, unsigned fields, const char *tag)
{
    p->count++;
    if (p->form == MAP)
        msgpack_pack_map(&p->p, fields);
    else
        msgpack_pack_array(&p->p, fields);
    field(p, "type");
    text(p, tag);
}

static void hash(struct publisher *p, uint64_t name)
{
    if (p->form != BYTES) {
        msgpack_pack_uint64(&p->p, name);
        return;
    }
    unsigned char bytes[32] = {7};
    for (unsigned i = 0; i < 8; i++)
        bytes[31 - i] = (unsigned char)(name >> 8 * i);
    msgpack_pack_bin(&p->p, sizeof bytes);
    msgpack_pack_bin_body(&p->p, bytes, sizeof bytes);
}

static void on_stored(void *context, uint64_t name)
{
    struct publisher *p = context;
    const struct meaning *m = meaning_of(name);
    event(p, 5, "BlockStored");
    field(p, "block_hashes");
    msgpack_pack_array(&p->p, 1);
    hash(p, name);
    field(p, "parent_block_hash");
    if (m->parent != 0)
        hash(p, m->parent);
    else
        msgpack_pack_nil(&p->p);
    field(p, "token_ids");
    msgpack_pack_array(&p->p, BLOCK);
    for (unsigned i = 0; i < BLOCK; i++)
        msgpack_pack_uint32(&p->p, m->tokens[i]);
    field(p, "block_size");
    msgpack_pack_int(&p->p, BLOCK);
}

static void on_removed(void *context, uint64_t name)
{
    struct publisher *p = context;
    event(p, 2, "BlockRemoved");
    field(p, "block_hashes");
    msgpack_pack_array(&p->p, 1);
    hash(p, name);
}

static void apply(void *context, const struct kv_event *e)
{
    kv_tree_apply(context, e);
}

/* A batch of what happened since the last one; lost on the way unless it `arrives`. */
static void publish(struct publisher *p, struct kv_decoder *d, struct kv_tree *t, bool arrives)
{
    msgpack_sbuffer all;
    msgpack_packer batch;
    struct kv_batch got;
    msgpack_sbuffer_init(&all);
    msgpack_packer_init(&batch, &all, msgpack_sbuffer_write);
    msgpack_pack_array(&batch, 2);
    msgpack_pack_double(&batch, 0.5);
    msgpack_pack_array(&batch, p->count);
    msgpack_sbuffer_write(&all, p->events.data, p->events.size);
    if (arrives)
        assert_int_equal(kv_batch_decode(d, slice_of(all.data, all.size), apply, t, &got), 0);
    else if (p->count > 0)
        kv_tree_doubt(t);
    msgpack_sbuffer_destroy(&all);
    msgpack_sbuffer_clear(&p->events);
    p->count = 0;
}

/* A prompt of blocks that begin alike: each block is one of three behind what is in front of it. */
struct prompt {
    uint64_t names[PROMPT], chains[PROMPT];
    uint32_t len;
};

static uint64_t digest_of(struct kv_decoder *d, const uint32_t *tokens);

static struct prompt prompt_draw(struct prng *prng, struct kv_decoder *d)
{
    struct prompt p = {.len = 1 + (uint32_t)prng_below(prng, PROMPT)};
    uint64_t parent = 0, chain = kv_chain_root(&secret, BLOCK, 0);
    for (uint32_t i = 0; i < p.len; i++) {
        uint32_t tokens[BLOCK] = {(uint32_t)prng_below(prng, i < 2 ? 2 : 3), i, 3, 4};
        uint64_t words[] = {parent, tokens[0]};
        uint64_t name = hash64(&secret, words, sizeof words) | 1;
        struct meaning *m = meaning_of(name);
        *m = (struct meaning){.name = name, .parent = parent};
        memcpy(m->tokens, tokens, sizeof tokens);
        p.names[i] = name;
        p.chains[i] = chain = kv_chain(&secret, chain, digest_of(d, tokens));
        parent = name;
    }
    return p;
}

static void digest_heard(void *context, const struct kv_event *e)
{
    *(uint64_t *)context = e->digests[0];
}

/* By the decoder itself. */
static uint64_t digest_of(struct kv_decoder *d, const uint32_t *tokens)
{
    msgpack_sbuffer b;
    msgpack_packer p;
    uint64_t digest = 0;
    struct kv_batch got;
    msgpack_sbuffer_init(&b);
    msgpack_packer_init(&p, &b, msgpack_sbuffer_write);
    msgpack_pack_array(&p, 2);
    msgpack_pack_nil(&p);
    msgpack_pack_array(&p, 1);
    msgpack_pack_array(&p, 5);
    msgpack_pack_str(&p, 11);
    msgpack_pack_str_body(&p, "BlockStored", 11);
    msgpack_pack_array(&p, 1);
    msgpack_pack_int(&p, 1);
    msgpack_pack_nil(&p);
    msgpack_pack_array(&p, BLOCK);
    for (unsigned i = 0; i < BLOCK; i++)
        msgpack_pack_uint32(&p, tokens[i]);
    msgpack_pack_int(&p, BLOCK);
    assert_int_equal(kv_batch_decode(d, slice_of(b.data, b.size), digest_heard, &digest, &got), 0);
    msgpack_sbuffer_destroy(&b);
    return digest;
}

struct running {
    struct prompt prompt;
    uint32_t blocks[PROMPT], hits;
    bool runs;
};

static void end(struct sim_cache *c, struct running *r)
{
    for (uint32_t i = r->hits; i < r->prompt.len && r->runs; i++)
        sim_cache_name(c, r->blocks[i], r->prompt.names[i]);
    if (r->runs)
        sim_cache_release(c, r->blocks, r->prompt.len);
    r->runs = false;
}

/* A chain that is not known says nothing of what is in front of it: it is asked for by itself. */
static struct kv_held held(const struct kv_tree *t, const struct prompt *p)
{
    struct kv_held all = {0, p->len, KV_GPU};
    for (uint32_t len = p->len; len > 0; len--) {
        struct kv_held h = kv_tree_held(t, p->chains[len - 1], len);
        all.surely = h.surely > all.surely ? h.surely : all.surely;
        if (h.perhaps < len && h.perhaps < all.perhaps)
            all.perhaps = h.perhaps;
    }
    return all;
}

struct outcome {
    unsigned asked, exact;
};

/* `copies`: requests that compute the same at once store it twice. `losses`: of messages, in %. */
static struct outcome play(uint64_t seed, enum form form, bool copies, unsigned losses)
{
    struct outcome o = {0};
    struct prng prng;
    struct kv_decoder *d;
    struct kv_tree *t;
    struct publisher p = {.form = form};
    struct running running[AT_ONCE] = {0};
    const struct sim_cache_watch watch = {on_stored, on_removed, &p};
    struct sim_cache *c = sim_cache_create(AT_ONCE * PROMPT + 20);
    prng_seed(&prng, seed);
    hash_secret_from_seed(&secret, seed);
    memset(meanings, 0, sizeof meanings);
    assert_int_equal(kv_decoder_create(&d, &secret), 0);
    assert_int_equal(kv_tree_create(&t, &secret, 4096), 0);
    msgpack_sbuffer_init(&p.events);
    msgpack_packer_init(&p.p, &p.events, msgpack_sbuffer_write);
    sim_cache_watch(c, &watch, copies);
    for (unsigned step = 0; step < 2000; step++) {
        struct running *r = &running[prng_below(&prng, AT_ONCE)];
        end(c, r);
        r->prompt = prompt_draw(&prng, d);
        r->hits = (uint32_t)sim_cache_match(c, r->prompt.names, r->prompt.len);
        r->runs =
            sim_cache_take(c, r->prompt.names, r->hits, r->prompt.len - r->hits, r->blocks) == 0;
        assert_true(r->runs);
        publish(&p, d, t, prng_below(&prng, 100) >= losses);
        if (step % 100 == 0)
            kv_tree_check(t);
        struct prompt asked = prompt_draw(&prng, d);
        size_t there = sim_cache_match(c, asked.names, asked.len);
        struct kv_held h = held(t, &asked);
        assert_true(h.surely <= there);
        assert_true(h.perhaps >= there);
        o.asked++;
        o.exact += h.surely == there && h.perhaps == there;
    }
    for (unsigned i = 0; i < AT_ONCE; i++)
        end(c, &running[i]);
    sim_cache_check(c);
    sim_cache_destroy(c);
    kv_tree_destroy(t);
    kv_decoder_destroy(d);
    msgpack_sbuffer_destroy(&p.events);
    return o;
}

static void test_never_a_wrong_certainty(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= TEST_ROUNDS(6); seed++) {
        bool copies = seed % 2 == 0;
        struct outcome o = play(seed, (enum form)(seed % 3), copies, 0);
        assert_true(copies ? o.exact > o.asked / 5 : o.exact == o.asked);
    }
}

static void test_nor_where_messages_are_lost(void **state)
{
    (void)state;
    for (unsigned seed = 11; seed <= 10 + TEST_ROUNDS(6); seed++) {
        (void)play(seed, (enum form)(seed % 3), seed % 2 == 0, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_a_wrong_certainty),
        cmocka_unit_test(test_nor_where_messages_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
