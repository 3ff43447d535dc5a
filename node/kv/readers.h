/* The feeds that this router reads, each with its reader (reader.h): which are open, which readers
 * speak, and how much memory they take.
 *
 * The user says of each replica, about once a second, what is to be read there:
 * kv_readers_want(). The shell opens and closes sockets, and brings messages. A feed is opened,
 * closed, or opened anew where its address changes. A router whose turn it is to speak does so
 * while its subscription stands.
 *
 * An engine that restarted is seen twice: by its feed, whose numbers begin anew, and by its new
 * life (rkey). Whichever comes later counts as the same restart if the other was seen lately. If
 * the feed shows it first the user hears of it, for nothing else may show it: the rkey that comes
 * of that is one more of the same restart.
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
    KV_READERS_MAX = KV_KEPT_MAX, /* feeds that a router has open */
    KV_BLOCKS_MIN = 1 << 12,      /* of one tree, */
    KV_BLOCKS_UNKNOWN = 1 << 16,  /* where nobody knows how large the cache is */
    KV_BLOCKS_MAX = 1 << 20,      /* at most: 64 MiB */
    KV_BLOCKS_ALL_MAX = 1 << 22,  /* of all trees of a router: 256 MiB */
    KV_POINTS_MAX = 1 << 19,      /* checkpoints of prompts, for each size of blocks: 36 MiB */
    KV_OPEN_AGAIN_MS = 10000,     /* after a feed could not be opened */
    KV_LOST_MS = 3000,            /* without a subscription: it no longer speaks */
    KV_RESTART_MS = 60000,        /* within which a restart is seen in both ways */
};

enum kv_role {
    KV_ROLE_NONE,      /* others read it, or it has no feed */
    KV_ROLE_STANDS_BY, /* follows, and says nothing */
    KV_ROLE_SPEAKS,
};

/* What is to be read of a replica. Slices are borrowed for the call. */
struct kv_wanted {
    enum kv_role role;
    uint32_t rkey;                 /* of its present cache (crdt/registry.h) */
    double blocks;                 /* of its cache; 0: not known */
    bool has_tier;                 /* it found blocks behind its own memory */
    bool connects;                 /* the engine does: `endpoint` is the address that it has */
    bool named;                    /* an operator says where it is */
    struct slice endpoint, replay; /* "tcp://host:port"; empty `replay`: there is none */
    struct slice topic;
};

/* Sockets (node/io/kv_feeds.h). `feed` is below KV_READERS_MAX. Nothing is called back from within.
 * An empty endpoint: nothing is subscribed to, for the engine connects.
 */
struct kv_readers_shell {
    int (*open)(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                struct slice topic); /* an error: it is closed */
    void (*close)(void *context, unsigned feed);
    int (*replay)(void *context, unsigned feed, uint64_t from);
    uint64_t (*malformed)(void *context, unsigned feed); /* messages that were no messages */
    void *context;
};

/* What readers say of a replica, as those of struct kv_reader_user. May be NULL. */
struct kv_readers_user {
    bool (*gone)(void *context, unsigned slot, uint64_t id, uint8_t code);
    void (*present)(void *context, unsigned slot, uint64_t id, uint8_t code);
    void (*cleared)(void *context, unsigned slot); /* now, while the engine runs */
    /* The engine that had that cache (rkey) restarted, by its feed. */
    void (*began)(void *context, unsigned slot, uint32_t rkey);
    void *context;
};

struct kv_readers;

/* All are borrowed; `slots`: replicas have numbers below it. ERR_NOMEM. */
MUST_USE int kv_readers_create(struct kv_readers **out, unsigned slots,
                               const struct hash_secret *secret,
                               const struct kv_readers_shell *shell,
                               const struct kv_readers_user *user);
/* Closes all feeds. */
void kv_readers_destroy(struct kv_readers *rs);
void kv_readers_check(const struct kv_readers *rs);

void kv_readers_want(struct kv_readers *rs, unsigned slot, const struct kv_wanted *want,
                     uint64_t now_ms);
/* Another replica will have that slot. Trust in events is the replica's: it outlives a feed that is
 * closed, or that the engine moves, and ends where an operator names another address. */
void kv_readers_trust_anew(struct kv_readers *rs, unsigned slot);
/* Closes all: the router ends. */
void kv_readers_close(struct kv_readers *rs);
/* A few times a second. */
void kv_readers_tick(struct kv_readers *rs, uint64_t now_ms);
/* What routers tell (told.h), this one too: checkpoints of a prompt, if any feed was open yet; and
 * an answer, for the reader of its replica, if this router has one. */
void kv_readers_path(struct kv_readers *rs, const struct kv_path *path);
void kv_readers_told(struct kv_readers *rs, const struct kv_told *told, uint64_t now_ms);
/* How much a prompt with these checkpoints (as of paths.h) wants to be asked for its tokens, by
 * what this router knows: nothing, if it reads no feed. */
enum kv_want kv_readers_want_asked(const struct kv_readers *rs, const uint64_t *ids,
                                   unsigned count);

/* --- to keep over a restart (node/cluster/keep.h) --- */

/* Begins zeroed. */
struct kv_keep {
    unsigned size;
    uint32_t point;
    unsigned feed;
};
/* Each appends the next piece: 1, or 0: there is none left. ERR_NOMEM. A tree is one piece: some 5
 * ms for a million blocks. */
MUST_USE int kv_readers_keep_paths(const struct kv_readers *rs, struct kv_keep *k, struct buf *out);
MUST_USE int kv_readers_keep_feed(const struct kv_readers *rs, struct kv_keep *k, struct buf *out);
/* A piece of an earlier life's, before the first feed is opened. Without memory for it that engine
 * is read as if for the first time. A feed that is opened within KV_KEPT_MS goes on with it, if the
 * cache (rkey) and its address are the same. Paths: true: others may find their parents now. */
bool kv_readers_recall_paths(struct kv_readers *rs, struct slice kept);
void kv_readers_recall_feed(struct kv_readers *rs, struct slice kept);

/* The feed of a replica; -1: none is open. */
MUST_USE int kv_readers_feed(const struct kv_readers *rs, unsigned slot);

/* --- from the shell, of a feed that is open, or from whoever took the engine's connection --- */

void kv_readers_connected(struct kv_readers *rs, unsigned feed, uint64_t now_ms);
/* The subscription ended; it is opened again by itself. */
void kv_readers_lost(struct kv_readers *rs, unsigned feed, uint64_t now_ms);
void kv_readers_live(struct kv_readers *rs, unsigned feed, uint64_t number, struct slice payload,
                     uint64_t now_ms);
void kv_readers_replayed(struct kv_readers *rs, unsigned feed, uint64_t number,
                         struct slice payload, uint64_t now_ms);
void kv_readers_replay_ended(struct kv_readers *rs, unsigned feed, uint64_t now_ms);

/* --- what is to be seen --- */

enum kv_reading {
    KV_READING_NOT,    /* this router does not read it */
    KV_READING_AWAY,   /* no subscription stands, or not yet */
    KV_READING_BEGINS, /* no message came yet */
    KV_READING_LIVE,
    KV_READING_DOUBTS,
    KV_READING_CONTRADICTS,
    /* Messages come in order, and nothing can be said by them: */
    KV_READING_BLOCK_SIZE,  /* there is no room for the size of its blocks (sizes.h) */
    KV_READING_SILENT_TIER, /* it finds blocks in a tier of which its events do not tell, or not
                               all (a shared pool): what goes from its own memory may be there */
};
/* For logs and the admin port: "off", "away", "begins", "live", "doubts", "contradicts",
 * "block_size", "silent_tier". */
const char *kv_reading_text(enum kv_reading reading);

struct kv_reading_row {
    const char *from; /* the endpoint; borrowed until it is closed */
    enum kv_reading reading;
    enum kv_role role;
    bool may_speak; /* it is its turn, and its subscription stands */
    bool speaks;    /* kv_readers_speak() */
    uint64_t connects, malformed;
    uint32_t blocks_max;
    uint32_t block_tokens; /* of its blocks; 0: not known */
    struct kv_reader_stats stats;
};
/* Of a replica; false: this router does not read it. */
bool kv_readers_row(const struct kv_readers *rs, unsigned slot, struct kv_reading_row *out);
enum kv_reading kv_readers_reading(const struct kv_readers *rs, unsigned slot);
/* Whether it is live, and this router speaks of it. */
bool kv_readers_speak(const struct kv_readers *rs, unsigned slot);

/* Whether this router's reader covers what is there (reader.h), while its subscription stands. */
bool kv_readers_cover(const struct kv_readers *rs, unsigned slot, uint64_t now_ms);

struct kv_readers_stats {
    unsigned feeds;   /* that are open */
    uint32_t blocks;  /* for which their trees have room */
    uint64_t refused; /* times that a feed was not opened, for want of room or files */
    uint64_t odd;     /* answers of engines for whose size of blocks there was no room */
    struct kv_paths_stats paths;
};
struct kv_readers_stats kv_readers_stats(const struct kv_readers *rs);

#endif
