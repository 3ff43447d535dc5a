/* The feeds of a router, shared by readers.c, which opens feeds and passes on their reports, and
 * readers_keep.c, which saves their state over a restart of the router. */
#ifndef NODE_KV_READERS_INTERNAL_H
#define NODE_KV_READERS_INTERNAL_H

#include "node/kv/kept.h"
#include "node/kv/readers.h"
#include "node/kv/sizes.h"

struct kv_readers_feed {
    struct kv_readers *all;
    struct kv_reader *reader; /* NULL: the feed is not open */
    struct kv_reader_user user;
    unsigned slot;
    uint64_t address;  /* a hash of the feed's address */
    uint32_t blocks;   /* the tree's size in blocks */
    uint32_t rkey;     /* rkey of the cache being read */
    uint64_t now_ms;   /* time of the message being read */
    uint64_t began_ms; /* time at which numbers restarted at 0, without a new rkey since; 0: none */
    bool told_began;   /* the user was informed of a restart, so a new rkey will come */
    enum kv_role role;
    bool speaks;
    bool connected;
    bool news;        /* the message being read is neither of a replay nor the engine's first */
    uint64_t lost_ms; /* time of the subscription's end, if there is none now */
    uint64_t connects;
    char from[KV_ENDPOINT_BYTES];
};

struct kv_readers_place {
    uint16_t feed;         /* number of the feed + 1; 0: none */
    uint64_t again_ms;     /* earliest time to open the feed */
    uint64_t address;      /* a hash of the last wanted address */
    bool named;            /* an operator gave the last wanted address */
    struct kv_trust trust; /* the last feed's trust, until the next is opened */
};

struct kv_readers {
    const struct hash_secret *secret;
    const struct kv_readers_shell *shell;
    const struct kv_readers_user *user;
    unsigned slots;
    struct kv_readers_stats stats;
    struct kv_sizes sizes; /* open since the first feed was opened */
    struct kv_readers_feed feeds[KV_READERS_MAX];
    struct kv_readers_place *places; /* by slot */
    struct kv_kept kept;
};

#endif
