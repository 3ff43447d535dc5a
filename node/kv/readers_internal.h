/* The feeds of a router, for its two files: readers.c opens feeds and passes on their reports,
 * readers_keep.c saves their state over a restart of the router. */
#ifndef NODE_KV_READERS_INTERNAL_H
#define NODE_KV_READERS_INTERNAL_H

#include "node/kv/kept.h"
#include "node/kv/readers.h"
#include "node/kv/sizes.h"

struct kv_readers_feed {
    struct kv_readers *all;
    struct kv_reader *reader; /* NULL: not open */
    struct kv_reader_user user;
    unsigned slot;
    uint64_t address;  /* a hash of its address */
    uint32_t blocks;   /* of the tree */
    uint32_t rkey;     /* of the cache that is read */
    uint64_t now_ms;   /* of the message being read */
    uint64_t began_ms; /* when numbers last restarted at 0 without a new rkey since; 0: never */
    bool told_began;   /* the user was informed, so an rkey will follow */
    enum kv_role role;
    bool speaks;
    bool connected;
    bool news;        /* the message being read is current: from no replay, and not an engine's
                         first */
    uint64_t lost_ms; /* since when there is no subscription */
    uint64_t connects;
    char from[KV_ENDPOINT_BYTES];
};

struct kv_readers_place {
    uint16_t feed;         /* its number + 1; 0: none */
    uint64_t again_ms;     /* earliest time to open it */
    uint64_t address;      /* as in the feed, as last wanted, */
    bool named;            /* by an operator */
    struct kv_trust trust; /* of the last feed */
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
