/* A reader, a feed from the test, and the reader's reports. Each test program includes this file
 * once. */
#ifndef TESTS_UNIT_KV_READER_WORLD_H
#define TESTS_UNIT_KV_READER_WORLD_H

#include "node/kv/reader.h"
#include "tests/lib/kv_messages.h"
#include "tests/lib/test.h"

enum { BLOCK = 4, BLOCKS_MAX = 100000 };

static struct hash_secret secret;
static struct kv_paths *paths;
static struct kv_reader *reader;
static uint64_t number;

static inline void on_replay(void *context, uint64_t from)
{
    (void)context, (void)from;
}

static inline void on_said(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
}

static bool refuses;
static unsigned gone; /* said */

static inline bool on_gone(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
    gone += !refuses;
    return !refuses;
}

static inline void on_cleared(void *context)
{
    (void)context;
}

static inline struct kv_paths *on_paths(void *context, uint32_t block_tokens, uint64_t now_ms)
{
    (void)context, (void)block_tokens, (void)now_ms;
    return paths;
}

static const struct kv_reader_user user = {on_paths,   on_replay,  on_gone, on_said,
                                           on_cleared, on_cleared, NULL};

static inline void begin(void)
{
    number = 0;
    hash_secret_from_seed(&secret, 1);
    assert_int_equal(kv_paths_create(&paths, KV_PATH_LENGTH_MAX + 1), 0);
    assert_int_equal(kv_reader_create(&reader, &user, &secret, BLOCKS_MAX, false), 0);
    kv_reader_speaks(reader, true);
}

static inline void end(void)
{
    kv_reader_check(reader);
    kv_reader_destroy(reader);
    kv_paths_destroy(paths);
    buf_free(&kv_message);
}

/* Blocks `from` to `to` of a long prompt, each named by number. */
static inline void stored_of(msgpack_packer *p, unsigned prompt, unsigned from, unsigned to)
{
    unsigned first = prompt * BLOCKS_MAX;
    msgpack_pack_array(p, 5);
    kv_message_text(p, "BlockStored");
    msgpack_pack_array(p, to - from);
    for (unsigned i = from; i < to; i++)
        msgpack_pack_uint64(p, first + i + 1);
    if (from > 0)
        msgpack_pack_uint64(p, first + from);
    else
        msgpack_pack_nil(p);
    msgpack_pack_array(p, (size_t)(to - from) * BLOCK);
    for (unsigned i = from * BLOCK; i < to * BLOCK; i++)
        msgpack_pack_uint32(p, first * BLOCK + i);
    msgpack_pack_uint32(p, BLOCK);
}

static inline void stored(msgpack_packer *p, unsigned from, unsigned to)
{
    stored_of(p, 0, from, to);
}

static inline void removed(msgpack_packer *p, unsigned block)
{
    msgpack_pack_array(p, 2);
    kv_message_text(p, "BlockRemoved");
    msgpack_pack_array(p, 1);
    msgpack_pack_uint64(p, block + 1);
}

static inline void publish(uint64_t now_ms)
{
    kv_reader_live(reader, number++, buf_slice(&kv_message), now_ms);
}

static inline void store(unsigned prompt, unsigned from, unsigned to, uint64_t now_ms)
{
    msgpack_packer p = kv_message_begin(1);
    stored_of(&p, prompt, from, to);
    publish(now_ms);
}

#endif
