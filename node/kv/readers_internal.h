/* What a router reads, for its two files: readers.c opens feeds and says what they say,
 * readers_keep.c keeps what is known of them over a restart of the router. */
#ifndef NODE_KV_READERS_INTERNAL_H
#define NODE_KV_READERS_INTERNAL_H

#include "node/kv/kept.h"
#include "node/kv/readers.h"
#include "node/kv/sizes.h"

struct kv_readers_feed {
    struct kv_readers *all;
    struct kv_reader *reader; /* NULL: it is not open */
    struct kv_reader_user user;
    unsigned slot;
    uint64_t address;  /* a hash of where it is */
    uint32_t blocks;   /* of its tree */
    uint32_t rkey;     /* of the cache that is read */
    uint64_t now_ms;   /* of the message that is read */
    uint64_t began_ms; /* when numbers began at 0 last, and no new rkey followed; 0: none did */
    bool told_began;   /* the user, so that an rkey will follow */
    enum kv_role role;
    bool speaks;
    bool connected;
    bool news;        /* a message of now is read, not one of a replay, nor an engine's first one */
    uint64_t lost_ms; /* since when it is not */
    uint64_t connects;
    char from[KV_ENDPOINT_BYTES];
};

struct kv_readers_place {
    uint16_t feed;         /* the number behind it; 0: none */
    uint64_t again_ms;     /* not before then is it opened */
    uint64_t address;      /* as of the feed, that was wanted last, */
    bool named;            /* by an operator */
    struct kv_trust trust; /* of the last one */
};

struct kv_readers {
    const struct hash_secret *secret;
    const struct kv_readers_shell *shell;
    const struct kv_readers_user *user;
    unsigned slots;
    struct kv_readers_stats stats;
    struct kv_sizes sizes; /* open since the first feed was */
    struct kv_readers_feed feeds[KV_READERS_MAX];
    struct kv_readers_place *places; /* by slot */
    struct kv_kept kept;
};

#endif
