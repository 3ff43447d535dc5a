/* A tree of blocks, and prompts with a letter for each block. Each test program includes this file
 * once. */
#ifndef TESTS_UNIT_KV_TREE_WORLD_H
#define TESTS_UNIT_KV_TREE_WORLD_H

#include "tests/lib/kv_held.h"
#include "tests/lib/test.h"

enum { BLOCK = 16 };

static struct hash_secret secret;
static struct kv_tree *tree;

static inline void end(void)
{
    kv_tree_check(tree);
    kv_tree_destroy(tree);
}

/* Prompts are texts; a letter is a block. */
static inline uint64_t hash_of(const char *prompt, size_t len)
{
    return hash64(&secret, prompt, len);
}

static inline uint64_t chain_of(const char *prompt, size_t len)
{
    uint64_t chain = kv_chain_root(&secret, BLOCK, 0);
    for (size_t i = 0; i < len; i++)
        chain = kv_chain(&secret, chain, (uint64_t)(unsigned char)prompt[i] + 1);
    return chain;
}

static inline struct kv_event event_of(enum kv_change change)
{
    return (struct kv_event){.change = change, .group = KV_GROUP_NONE, .block_tokens = BLOCK};
}

/* Stores the blocks of `prompt` from number `from` on, with the fields of `like`. */
static inline void store_like(struct kv_event like, const char *prompt, size_t from)
{
    uint64_t hashes[64], digests[64];
    size_t len = strlen(prompt);
    assert_true(from < len && len <= 64);
    for (size_t i = from; i < len; i++) {
        hashes[i - from] = hash_of(prompt, i + 1);
        digests[i - from] = (uint64_t)(unsigned char)prompt[i] + 1;
    }
    like.change = KV_STORED;
    like.count = (uint32_t)(len - from);
    like.hashes = hashes;
    like.digests = digests;
    if (from > 0) {
        like.has_parent = true;
        like.parent = hash_of(prompt, from);
    }
    kv_tree_apply(tree, &like);
    kv_tree_check(tree);
}

static inline void store(const char *prompt, size_t from)
{
    store_like(event_of(KV_STORED), prompt, from);
}

static inline void drop_like(struct kv_event like, const char *prompt)
{
    uint64_t hash = hash_of(prompt, strlen(prompt));
    like.change = KV_REMOVED;
    like.count = 1;
    like.hashes = &hash;
    kv_tree_apply(tree, &like);
    kv_tree_check(tree);
}

static inline void drop(const char *prompt)
{
    drop_like(event_of(KV_REMOVED), prompt);
}

static inline struct kv_held held(const char *prompt)
{
    return kv_tree_held(tree, chain_of(prompt, strlen(prompt)), (uint32_t)strlen(prompt));
}

#define assert_held(prompt, at_least, at_most)                                                     \
    do {                                                                                           \
        struct kv_held held_ = held(prompt);                                                       \
        assert_int_equal(held_.surely, (at_least));                                                \
        assert_int_equal(held_.perhaps, (at_most));                                                \
    } while (0)

static inline void begin(uint32_t blocks_max)
{
    hash_secret_from_seed(&secret, 1);
    assert_int_equal(kv_tree_create(&tree, NULL, &secret, blocks_max), 0);
    assert_held("abc", 0, 3); /* nothing is known yet */
    kv_tree_clear(tree);
}

static inline struct kv_tree_place place_of(const char *prompt)
{
    return kv_tree_find(tree, chain_of(prompt, (unsigned)strlen(prompt)));
}

#endif
