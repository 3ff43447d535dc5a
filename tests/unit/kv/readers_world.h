/* Readers, and a shell and a user to note their reports. Each test program includes this file
 * once. */
#ifndef TESTS_UNIT_KV_READERS_WORLD_H
#define TESTS_UNIT_KV_READERS_WORLD_H

#include <stdio.h>

#include "node/kv/readers.h"
#include "tests/lib/test.h"

enum { SLOTS = 300, SECOND = 1000 };

static const struct hash_secret secret = {{1}};
static struct kv_readers *rs;
static char open_at[KV_READERS_MAX][64]; /* "endpoint replay topic"; empty: closed */
static unsigned opened, closed;
static uint64_t replay_from;
static int refuses; /* the shell fails with this error */

static inline int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                          struct slice topic)
{
    (void)context;
    if (refuses != 0)
        return refuses;
    assert_true(feed < KV_READERS_MAX && open_at[feed][0] == '\0');
    (void)snprintf(open_at[feed], sizeof open_at[feed], "%.*s %.*s %.*s", SLICE_ARG(endpoint),
                   SLICE_ARG(replay), SLICE_ARG(topic));
    opened++;
    return ERR_OK;
}

static inline void on_close(void *context, unsigned feed)
{
    (void)context;
    assert_true(open_at[feed][0] != '\0');
    open_at[feed][0] = '\0';
    closed++;
}

static inline int on_replay(void *context, unsigned feed, uint64_t from)
{
    (void)context;
    assert_true(open_at[feed][0] != '\0');
    replay_from = from;
    return ERR_OK;
}

static inline uint64_t on_malformed(void *context, unsigned feed)
{
    (void)context;
    return feed + 100;
}

static const struct kv_readers_shell shell = {on_open, on_close, on_replay, on_malformed, NULL};

static unsigned gone, clears, begins;
static uint32_t begins_rkey; /* of the last beginning */

static inline void on_mark(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    (void)context, (void)slot, (void)id, (void)code;
}

static inline bool on_gone(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    on_mark(context, slot, id, code);
    gone++;
    return true;
}

static inline void on_cleared(void *context, unsigned slot)
{
    (void)context;
    assert_int_equal(slot, 0);
    clears++;
}

static inline void on_began(void *context, unsigned slot, uint32_t rkey)
{
    (void)context, (void)slot;
    begins_rkey = rkey;
    begins++;
}

static const struct kv_readers_user user = {on_gone, on_mark, on_cleared, on_began, NULL};

static inline int setup(void **state)
{
    (void)state;
    memset(open_at, 0, sizeof open_at);
    opened = closed = 0;
    replay_from = UINT64_MAX;
    refuses = 0;
    gone = clears = begins = 0;
    return kv_readers_create(&rs, SLOTS, &secret, &shell, &user);
}

static inline int teardown(void **state)
{
    (void)state;
    kv_readers_destroy(rs);
    assert_int_equal(opened, closed);
    return 0;
}

static inline struct kv_wanted wanted(enum kv_role role)
{
    return (struct kv_wanted){.role = role,
                              .rkey = 1,
                              .blocks = 1000,
                              .endpoint = SLICE("tcp://a:1"),
                              .replay = SLICE("tcp://a:2"),
                              .topic = SLICE("t")};
}

static inline void want(unsigned slot, struct kv_wanted w, uint64_t now_ms)
{
    kv_readers_want(rs, slot, &w, now_ms);
    kv_readers_check(rs);
}

static inline struct kv_reading_row row(unsigned slot)
{
    struct kv_reading_row r;
    assert_true(kv_readers_row(rs, slot, &r));
    return r;
}

/* A stored block: [0, [["BlockStored", [hash], nil, [1, 2, 3, 4], 4, nil, "GPU"]], 0]. */
static inline struct slice stored(uint8_t hash)
{
    static char bytes[] = "\x93\x00\x91\x97\xab"
                          "BlockStored\x91\x01\xc0\x94\x01\x02\x03\x04\x04\xc0\xa3GPU\x00";
    bytes[17] = (char)(hash & 0x7f);
    return slice_of(bytes, sizeof bytes - 1);
}

#endif
