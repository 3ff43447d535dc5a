/* The feeds that this router reads, each with a reader (reader.h): opens and closes them, decides
 * which readers report, and limits their memory.
 *
 * About once a second the user says what to read of each replica: kv_readers_want(). The shell
 * opens and closes sockets, and passes messages. A feed is opened, closed, or reopened if its
 * address changes. A router with the turn to report does so while its subscription lasts.
 *
 * A restart of an engine shows twice: the feed's numbers restart, and the cache gets a new rkey.
 * The later sign counts as the same restart if the other came recently. If the feed shows the
 * restart first, the user is informed, because there may be no other sign: the rkey that follows is
 * a part of the same restart.
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
    KV_READERS_MAX = KV_KEPT_MAX, /* feeds that a router opens */
    KV_BLOCKS_MIN = 1 << 12,      /* of one tree, */
    KV_BLOCKS_UNKNOWN = 1 << 16,  /* if the cache's size is unknown */
    KV_BLOCKS_MAX = 1 << 20,      /* at most: 64 MiB */
    KV_BLOCKS_ALL_MAX = 1 << 22,  /* of all trees of a router: 256 MiB */
    KV_POINTS_MAX = 1 << 19,      /* checkpoints of prompts, for each block size: 36 MiB */
    KV_OPEN_AGAIN_MS = 10000,     /* after a feed could not be opened */
    KV_LOST_MS = 3000,            /* without a subscription: the reader stops reporting */
    KV_RESTART_MS = 60000,        /* in which both signs of a restart appear */
};

enum kv_role {
    KV_ROLE_NONE,      /* another router reads the feed, or there is none */
    KV_ROLE_STANDS_BY, /* reads, and does not report */
    KV_ROLE_SPEAKS,
};

/* The contents to read of a replica. Slices are borrowed for the call. */
struct kv_wanted {
    enum kv_role role;
    uint32_t rkey;                 /* of its current cache (crdt/registry.h) */
    double blocks;                 /* of its cache; 0: unknown */
    bool has_tier;                 /* the engine found blocks beyond its own memory */
    bool connects;                 /* the engine connects to the router: `endpoint` is its
                                      address */
    bool named;                    /* an operator gave the address */
    struct slice endpoint, replay; /* "tcp://host:port"; empty `replay`: none */
    struct slice topic;
};

/* Sockets (node/io/kv_feeds.h). `feed` is below KV_READERS_MAX. These functions must not call back.
 * An empty endpoint: no subscription, because the engine connects. */
struct kv_readers_shell {
    int (*open)(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                struct slice topic); /* an error: the feed is closed */
    void (*close)(void *context, unsigned feed);
    int (*replay)(void *context, unsigned feed, uint64_t from);
    uint64_t (*malformed)(void *context, unsigned feed); /* messages of an invalid shape */
    void *context;
};

/* Reports of readers about a replica, as in struct kv_reader_user. May be NULL. */
struct kv_readers_user {
    bool (*gone)(void *context, unsigned slot, uint64_t id, uint8_t code);
    void (*present)(void *context, unsigned slot, uint64_t id, uint8_t code);
    void (*cleared)(void *context, unsigned slot); /* just now, while the engine runs */
    /* The engine with that cache (rkey) restarted, by its feed. */
    void (*began)(void *context, unsigned slot, uint32_t rkey);
    void *context;
};

struct kv_readers;

/* All are borrowed; replicas have numbers below `slots`. ERR_NOMEM. */
MUST_USE int kv_readers_create(struct kv_readers **out, unsigned slots,
                               const struct hash_secret *secret,
                               const struct kv_readers_shell *shell,
                               const struct kv_readers_user *user);
/* Closes all feeds. */
void kv_readers_destroy(struct kv_readers *rs);
void kv_readers_check(const struct kv_readers *rs);

void kv_readers_want(struct kv_readers *rs, unsigned slot, const struct kv_wanted *want,
                     uint64_t now_ms);
/* The slot goes to another replica. Trust in events belongs to the replica. It outlives a feed that
 * is closed or that the engine moves, and ends when an operator gives another address. */
void kv_readers_trust_anew(struct kv_readers *rs, unsigned slot);
/* Closes all feeds: the router stops. */
void kv_readers_close(struct kv_readers *rs);
/* Call it a few times a second. */
void kv_readers_tick(struct kv_readers *rs, uint64_t now_ms);
/* Reports of routers (told.h), including this one: checkpoints of a prompt, if any feed was opened
 * so far; and an answer, for its replica's reader, if this router has it. */
void kv_readers_path(struct kv_readers *rs, const struct kv_path *path);
void kv_readers_told(struct kv_readers *rs, const struct kv_told *told, uint64_t now_ms);
/* How useful it is to ask for the tokens of a prompt with these checkpoints (as in paths.h), by
 * this router's knowledge: no use without a feed. */
enum kv_want kv_readers_want_asked(const struct kv_readers *rs, const uint64_t *ids,
                                   unsigned count);

/* --- saved over a restart (node/cluster/keep.h) --- */

/* Begins zeroed. */
struct kv_keep {
    unsigned size;
    uint32_t point;
    unsigned feed;
};
/* Each appends the next piece: 1, or 0: none is left. ERR_NOMEM. A tree is one piece: some 5 ms for
 * a million blocks. */
MUST_USE int kv_readers_keep_paths(const struct kv_readers *rs, struct kv_keep *k, struct buf *out);
MUST_USE int kv_readers_keep_feed(const struct kv_readers *rs, struct kv_keep *k, struct buf *out);
/* A piece of an earlier life's state, before the first feed is opened. Without memory for it the
 * engine is read as for the first time. A feed that is opened within KV_KEPT_MS continues from it,
 * if the cache (rkey) and the address are the same. Paths: true: other points may find their
 * parents now. */
bool kv_readers_recall_paths(struct kv_readers *rs, struct slice kept);
void kv_readers_recall_feed(struct kv_readers *rs, struct slice kept);

/* The feed of a replica; -1: not open. */
MUST_USE int kv_readers_feed(const struct kv_readers *rs, unsigned slot);

/* --- from the shell, for an open feed, or from the owner of the engine's connection --- */

void kv_readers_connected(struct kv_readers *rs, unsigned feed, uint64_t now_ms);
/* The subscription ended; the shell opens it again. */
void kv_readers_lost(struct kv_readers *rs, unsigned feed, uint64_t now_ms);
void kv_readers_live(struct kv_readers *rs, unsigned feed, uint64_t number, struct slice payload,
                     uint64_t now_ms);
void kv_readers_replayed(struct kv_readers *rs, unsigned feed, uint64_t number,
                         struct slice payload, uint64_t now_ms);
void kv_readers_replay_ended(struct kv_readers *rs, unsigned feed, uint64_t now_ms);

/* --- for operators --- */

enum kv_reading {
    KV_READING_NOT,    /* this router does not read the feed */
    KV_READING_AWAY,   /* no subscription, or not yet */
    KV_READING_BEGINS, /* no message yet */
    KV_READING_LIVE,
    KV_READING_DOUBTS,
    KV_READING_CONTRADICTS,
    /* Messages come in order, but the reader can report nothing: */
    KV_READING_BLOCK_SIZE,  /* no room for the block size (sizes.h) */
    KV_READING_SILENT_TIER, /* the engine finds blocks in a tier that its events do not cover, or
                               not fully (a shared pool): what leaves its own memory may be there */
};
/* For logs and the admin port: "off", "away", "begins", "live", "doubts", "contradicts",
 * "block_size", "silent_tier". */
const char *kv_reading_text(enum kv_reading reading);
/* The same as the end of a sentence about the replica's KV-cache events, for the page and gvctl:
 * "are read". */
const char *kv_reading_phrase(enum kv_reading reading);

struct kv_reading_row {
    const char *from; /* the endpoint; borrowed until the feed is closed */
    enum kv_reading reading;
    enum kv_role role;
    bool may_speak; /* this router has the turn, and its subscription lasts */
    bool speaks;    /* kv_readers_speak() */
    uint64_t connects, malformed;
    uint32_t blocks_max;
    uint32_t block_tokens; /* per block; 0: unknown */
    struct kv_reader_stats stats;
};
/* Fills the row of a replica; false: this router does not read it. */
bool kv_readers_row(const struct kv_readers *rs, unsigned slot, struct kv_reading_row *out);
enum kv_reading kv_readers_reading(const struct kv_readers *rs, unsigned slot);
/* True if the reader is live, and this router reports for the replica. */
bool kv_readers_speak(const struct kv_readers *rs, unsigned slot);

/* True if this router's reader covers the replica's cache (reader.h), while its subscription
 * lasts. */
bool kv_readers_cover(const struct kv_readers *rs, unsigned slot, uint64_t now_ms);

struct kv_readers_stats {
    unsigned feeds;   /* that are open */
    uint32_t blocks;  /* room in their trees */
    uint64_t refused; /* times that a feed was not opened, for lack of room or files */
    uint64_t odd;     /* answers of engines with a block size without room */
    struct kv_paths_stats paths;
};
struct kv_readers_stats kv_readers_stats(const struct kv_readers *rs);

#endif
