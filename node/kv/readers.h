/* This router's feeds of KV events, each with a reader (reader.h). Opens and closes the feeds,
 * decides which readers report, and limits their memory.
 *
 * About once a second the user says what to read of each replica (kv_readers_want()). Then feeds
 * are opened and closed, and reopened if their address has changed. The shell opens and closes the
 * sockets, and passes messages. If it is this router's turn to report, the reader reports while the
 * subscription lasts.
 *
 * There are two signs of an engine's restart: the feed's message numbers restart, and the cache
 * gets a new rkey. If both come within KV_RESTART_MS, they count as a single restart. If the feed
 * shows the restart first, the user is informed at once, because there may be no other sign. The
 * next rkey then belongs to the same restart.
 */
#ifndef NODE_KV_READERS_H
#define NODE_KV_READERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"
#include "node/kv/kept.h"
#include "node/kv/reader.h"
#include "node/kv/source.h"

enum {
    KV_READERS_MAX = KV_KEPT_MAX, /* most open feeds of a router */
    KV_BLOCKS_MIN = 1 << 12,      /* least size of a tree, in blocks */
    KV_BLOCKS_UNKNOWN = 1 << 16,  /* size of a tree if the cache's size is unknown */
    KV_BLOCKS_MAX = 1 << 20,      /* greatest size of a tree: 64 MiB */
    KV_BLOCKS_ALL_MAX = 1 << 22,  /* blocks of all trees of a router: 256 MiB */
    KV_POINTS_MAX = 1 << 19,      /* checkpoints for each block size: 36 MiB */
    KV_OPEN_AGAIN_MS = 10000,     /* wait before the next try if a feed could not be opened */
    KV_LOST_MS = 3000,            /* time without a subscription until a reader stops reporting */
    KV_RESTART_MS = 60000,        /* time within which both signs of a restart appear */
};

enum kv_role {
    KV_ROLE_NONE,      /* another router reads the feed, or there is no feed */
    KV_ROLE_STANDS_BY, /* this router reads, but does not report */
    KV_ROLE_SPEAKS,    /* this router reads and reports */
};

/* How to read a replica's events. The slices are borrowed for the call. */
struct kv_wanted {
    enum kv_role role;
    uint32_t rkey;                 /* the rkey of the replica's current cache (crdt/registry.h) */
    double blocks;                 /* the cache's size in blocks; 0: unknown */
    bool has_tier;                 /* blocks were found in a tier beyond the engine's own memory */
    bool connects;                 /* the engine connects to this router, from `endpoint` */
    bool named;                    /* an operator gave the endpoint */
    struct slice endpoint, replay; /* "tcp://host:port"; `replay` is empty if there is no replay */
    struct slice topic;
};

/* The sockets (node/io/kv_feeds.h). `feed` is below KV_READERS_MAX. These functions must not call
 * back. If `endpoint` is empty, there is no subscription, because the engine connects. */
struct kv_readers_shell {
    int (*open)(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                struct slice topic); /* after an error the feed is closed */
    void (*close)(void *context, unsigned feed);
    int (*replay)(void *context, unsigned feed, uint64_t from);
    uint64_t (*malformed)(void *context, unsigned feed); /* count of malformed messages */
    void *context;
};

/* Receives the readers' reports about replicas, as struct kv_reader_user does. May be NULL. */
struct kv_readers_user {
    bool (*gone)(void *context, unsigned slot, uint64_t id, uint8_t code);
    void (*present)(void *context, unsigned slot, uint64_t id, uint8_t code);
    void (*cleared)(void *context, unsigned slot); /* the running engine has just cleared the
                                                      cache */
    /* The feed shows that the engine restarted. The old cache had this rkey. */
    void (*began)(void *context, unsigned slot, uint32_t rkey);
    void *context;
};

struct kv_readers;

/* All arguments but `out` are borrowed. Replicas have numbers below `slots`. ERR_NOMEM. */
MUST_USE int kv_readers_create(struct kv_readers **out, unsigned slots,
                               const struct hash_secret *secret,
                               const struct kv_readers_shell *shell,
                               const struct kv_readers_user *user);
/* Closes all feeds. */
void kv_readers_destroy(struct kv_readers *rs);
void kv_readers_check(const struct kv_readers *rs);

void kv_readers_want(struct kv_readers *rs, unsigned slot, const struct kv_wanted *want,
                     uint64_t now_ms);
/* Resets the trust in a slot's events, because another replica gets the slot. Otherwise the trust
 * is kept when a feed is closed, or moved by the engine, until an operator gives another
 * address. */
void kv_readers_trust_anew(struct kv_readers *rs, unsigned slot);
/* Closes all feeds, because the router stops. */
void kv_readers_close(struct kv_readers *rs);
/* Must be called a few times a second. */
void kv_readers_tick(struct kv_readers *rs, uint64_t now_ms);
/* Handle routers' reports (told.h), this router's included. kv_readers_path(): checkpoints of a
 * prompt, which are stored if any feed has been opened so far. kv_readers_told(): an answer, passed
 * on to the replica's reader if this router reads the replica. */
void kv_readers_path(struct kv_readers *rs, const struct kv_path *path);
void kv_readers_told(struct kv_readers *rs, const struct kv_told *told, uint64_t now_ms);
/* Returns how useful it is to ask the engine for the token ids of a prompt with these checkpoints
 * (kv_paths_want()). Without a feed there is no use. */
enum kv_want kv_readers_want_asked(const struct kv_readers *rs, const uint64_t *ids,
                                   unsigned count);

/* --- saved over a restart (node/cluster/keep.h) --- */

/* The next piece to save. Begins zeroed. */
struct kv_keep {
    unsigned size;
    uint32_t point;
    unsigned feed;
};
/* Both append the next piece and return 1, or return 0 if none is left. ERR_NOMEM. A tree is a
 * single piece, which takes some 5 ms for a million blocks. */
MUST_USE int kv_readers_keep_paths(const struct kv_readers *rs, struct kv_keep *k, struct buf *out);
MUST_USE int kv_readers_keep_feed(const struct kv_readers *rs, struct kv_keep *k, struct buf *out);
/* Take a saved piece, before the first feed is opened. A feed opened within KV_KEPT_MS continues
 * from the saved state, if the rkey of the cache and the address are the same. If there is no
 * memory, the piece is lost. kv_readers_recall_paths() returns true if checkpoints of other pieces
 * may have known parents now. */
bool kv_readers_recall_paths(struct kv_readers *rs, struct slice kept);
void kv_readers_recall_feed(struct kv_readers *rs, struct slice kept);

/* Returns the number of the replica's feed; -1: it is not open. */
MUST_USE int kv_readers_feed(const struct kv_readers *rs, unsigned slot);

/* --- from the shell, for an open feed, or from the owner of the engine's connection --- */

void kv_readers_connected(struct kv_readers *rs, unsigned feed, uint64_t now_ms);
/* Called when the subscription ended. The shell opens it again. */
void kv_readers_lost(struct kv_readers *rs, unsigned feed, uint64_t now_ms);
void kv_readers_live(struct kv_readers *rs, unsigned feed, uint64_t number, struct slice payload,
                     uint64_t now_ms);
void kv_readers_replayed(struct kv_readers *rs, unsigned feed, uint64_t number,
                         struct slice payload, uint64_t now_ms);
void kv_readers_replay_ended(struct kv_readers *rs, unsigned feed, uint64_t now_ms);

/* --- for operators --- */

enum kv_reading {
    KV_READING_NOT,    /* this router does not read the feed */
    KV_READING_AWAY,   /* there is no subscription now */
    KV_READING_BEGINS, /* no message yet */
    KV_READING_LIVE,
    KV_READING_DOUBTS,
    KV_READING_CONTRADICTS,
    /* Messages come in order, but the reader can report nothing: */
    KV_READING_BLOCK_SIZE,  /* there is no table for the block size (sizes.h) */
    KV_READING_SILENT_TIER, /* removed blocks may be in a tier without events, or in a pool shared
                               with other engines */
};
/* For logs and the admin port: "off", "away", "begins", "live", "doubts", "contradicts",
 * "block_size", "silent_tier". */
const char *kv_reading_text(enum kv_reading reading);
/* Returns the end of a sentence about the replica's KV-cache events, for the page and gvctl: "are
 * read". */
const char *kv_reading_phrase(enum kv_reading reading);

struct kv_reading_row {
    const char *from; /* the endpoint, borrowed until the feed is closed */
    enum kv_reading reading;
    enum kv_role role;
    bool may_speak; /* it is this router's turn to report, and the subscription lasts */
    bool speaks;    /* the result of kv_readers_speak() */
    uint64_t connects, malformed;
    uint32_t blocks_max;
    uint32_t block_tokens; /* tokens per block; 0: unknown */
    struct kv_reader_stats stats;
};
/* Fills the row of a replica. Returns false if this router does not read the replica's events. */
bool kv_readers_row(const struct kv_readers *rs, unsigned slot, struct kv_reading_row *out);
enum kv_reading kv_readers_reading(const struct kv_readers *rs, unsigned slot);
/* Returns true if the reader is live, and this router reports for the replica. */
bool kv_readers_speak(const struct kv_readers *rs, unsigned slot);

/* Returns true if this router's reader covers the replica's cache (kv_reader_covers()) and the
 * subscription lasts. */
bool kv_readers_cover(const struct kv_readers *rs, unsigned slot, uint64_t now_ms);

struct kv_readers_stats {
    unsigned feeds;   /* number of open feeds */
    uint32_t blocks;  /* sizes of all feeds' trees together, in blocks */
    uint64_t refused; /* times that a feed was not opened, for lack of blocks, feeds or files */
    uint64_t odd;     /* answers of engines with a block size without a table */
    struct kv_paths_stats paths;
};
struct kv_readers_stats kv_readers_stats(const struct kv_readers *rs);

#endif
