/* The reader of one engine's (one rank's) KV events: turns the feed into facts for routers.
 *
 * Routers infer an engine's cache from the requests that they sent there. The reader of the
 * engine's events corrects that: a checkpoint of a prompt is *gone* there, or *present* against
 * expectation. Events are about blocks of tokens, so the reader needs the positions of checkpoints
 * in chains of tokens: ties (node/kv/paths.h).
 *
 * A tie comes from an answer that a router reports (node/kv/told.h). Its usage says how many tokens
 * the prompt had and how many were cached. So among the blocks stored meanwhile (node/kv/runs.h)
 * the answer's own begin and end at these positions, and follow the known part of its text. If
 * several runs match, or none, there is no tie: a wrong tie would be a wrong certainty. If the
 * engine was asked for the prompt's tokens (node/kv/asked.h), the answer gives the chain directly.
 * Such answers also measure how often structure is wrong.
 *
 * If no answer of an engine has found anything in the cache so far, by its usage, the engine may
 * not report it at all: some then say 0.
 *
 * Answers check events, too (trust.h). While they contradict the events, the reader reports
 * nothing.
 *
 * A reader that *stands by* does all this without reporting, so it can take over at once.
 */
#ifndef NODE_KV_READER_H
#define NODE_KV_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/kv/feed.h"
#include "node/kv/paths.h"
#include "node/kv/told.h"
#include "node/kv/tree.h"
#include "node/kv/trust.h"

enum {
    /* Delay from an answer's end to the search for its blocks: events come over another connection,
     * and reports of other routers take as long as gossip. */
    KV_TOLD_WAIT_MS = 500,
    KV_TOLD_MAX = 1024,    /* answers that wait; more count as unmatched */
    KV_TOLD_RETRIED = 16,  /* of these, the last ones are retried with each message */
    KV_SWEEP_MS = 250,     /* interval at which some checkpoints that are present are checked, */
    KV_SWEEP_POINTS = 256, /* so many each time */
    /* The same in the first sweeps of a reader that begins to report: some 2 ms of work. */
    KV_CATCH_UP_POINTS = 4096,
    /* The cost limit of a feed beside its blocks: steps of its tree (10 to 100 ns) per second, and
     * one walk over all of it in that time. A message costs so many steps (8 us without events),
     * and one more per KV_STEP_BYTES bytes (32 MiB a second at most, decoded in 0.1 s). */
    KV_STEPS_MAX = 1 << 20,
    KV_MESSAGE_STEPS = 128,
    KV_STEP_BYTES = 32,
    /* For a replay, which the reader requested, so many steps count as one: an engine keeps 10,000
     * messages, and sends them in a second. */
    KV_REPLAYED_STEPS = 16,
    KV_WALK_BLOCKS = 16, /* blocks per step on an answer's path to the root */
    KV_WINDOW_MS = 1000,
    KV_COVER_SHARE = 4,   /* one in so many of the stored blocks may have no known place */
    KV_REFUSED_MAX = 256, /* checkpoints that wait after a refused report that they are gone */
    /* Least number of blocks that an answer could have found: fewer tell nothing. Engines compute a
     * prompt's last block, and some round their figures. */
    KV_STOOD_MIN = 4,
};

struct kv_reader_user {
    /* Returns the paths for ties of that block size (paths.h). NULL: there is no room for the size,
     * so the reader ties and reports nothing. */
    struct kv_paths *(*paths)(void *context, uint32_t block_tokens, uint64_t now_ms);
    void (*replay)(void *context, uint64_t from);
    bool (*gone)(void *context, uint64_t id, uint8_t code); /* false: not now, repeat the report */
    void (*present)(void *context, uint64_t id, uint8_t code);
    void (*cleared)(void *context); /* the whole cache is empty, */
    void (*began)(void *context);   /* because the feed restarted without an announcement */
    void *context;
};

enum kv_reader_state {
    KV_READER_BEGINS, /* no message yet */
    KV_READER_LIVE,
    KV_READER_DOUBTS,      /* waits for missing messages */
    KV_READER_CONTRADICTS, /* answers contradict the events, which are not trusted for a while */
};

struct kv_reader;

/* Everything but `out` is borrowed. `blocks_max`: of the tree. ERR_NOMEM. */
MUST_USE int kv_reader_create(struct kv_reader **out, const struct kv_reader_user *user,
                              const struct hash_secret *secret, uint32_t blocks_max,
                              bool has_replay);
void kv_reader_destroy(struct kv_reader *r);
void kv_reader_check(const struct kv_reader *r);
/* Switches between reporting and standing by (the initial state). When a reader begins to report,
 * the one before may have been silent for a while. So the next sweeps report everything that
 * contradicts the routers' beliefs. */
void kv_reader_speaks(struct kv_reader *r, bool speaks);

/* Saves the state for the same engine's next reader: appends it and returns 1, or 0 if there is
 * nothing to continue from. ERR_NOMEM. */
MUST_USE int kv_reader_keep(const struct kv_reader *r, struct buf *out);
/* Continues from that state: with certainty if a replay brings what came since, otherwise all
 * cached blocks may be gone. False: a larger tree's, or not valid; nothing changed. */
bool kv_reader_resume(struct kv_reader *r, struct slice kept, uint64_t now_ms);

/* As in node/kv/feed.h. */
void kv_reader_live(struct kv_reader *r, uint64_t number, struct slice payload, uint64_t now_ms);
void kv_reader_replayed(struct kv_reader *r, uint64_t number, struct slice payload,
                        uint64_t now_ms);
void kv_reader_replay_ended(struct kv_reader *r, uint64_t now_ms);
void kv_reader_connected(struct kv_reader *r, uint64_t now_ms);
void kv_reader_restarted(struct kv_reader *r, uint64_t now_ms);
/* A restart that others than the feed show (trust.h), in addition to the call above. */
void kv_reader_restart_is_seen(struct kv_reader *r);
/* For the next reader of an engine that may have moved its feed. */
const struct kv_trust *kv_reader_trust(const struct kv_reader *r);
void kv_reader_trusts(struct kv_reader *r, const struct kv_trust *before);

/* An answer of this engine ended successfully. */
void kv_reader_told(struct kv_reader *r, const struct kv_told *told, uint64_t now_ms);

uint64_t kv_reader_due_ms(const struct kv_reader *r);
void kv_reader_tick(struct kv_reader *r, uint64_t now_ms);

enum kv_reader_state kv_reader_state(const struct kv_reader *r);
/* True if the reader knows the cache about as well as any reader can. Then nothing was missed since
 * the cache was empty, or since it turned over, and most stored blocks had a place. A reader that
 * joined late or missed something does not, even with a replay: it has the blocks, but few ties. */
bool kv_reader_covers(const struct kv_reader *r);
const struct kv_tree *kv_reader_tree(const struct kv_reader *r);
/* Tokens per block, as far as seen; 0: no message said so yet. */
uint32_t kv_reader_block_tokens(const struct kv_reader *r);
/* True if there is no room for that block size. */
bool kv_reader_is_odd(const struct kv_reader *r);
/* The engine finds blocks in a tier beyond its own memory, by its metrics. */
void kv_reader_has_tier(struct kv_reader *r, bool has_tier);
/* True if the events do not cover such a tier, or the engine shares a pool. Blocks that leave its
 * memory may be there, and an answer that finds them is no contradiction. */
bool kv_reader_is_silent(const struct kv_reader *r);

struct kv_reader_stats {
    struct kv_feed_stats feed;
    struct kv_tree_stats tree;
    uint64_t told, tied; /* answers; with a tie */
    /* Without a tie: none, or several, of the blocks matched. Answers with a checkpoint that no
     * router reported are unmatched, too. */
    uint64_t unmatched, unclear;
    uint64_t asked;                /* of the tied answers: with the prompt's chain, */
    uint64_t asked_wrong;          /* and where structure gave other blocks */
    uint64_t gone, present;        /* reports */
    uint64_t agreed, contradicted; /* answers that could be compared with the cached blocks */
    uint64_t disbelieved;          /* times that trust in the events was lost */
    uint64_t believed_ms;          /* when events are trusted again; 0: they are trusted */
    uint64_t shed; /* times that the feed cost too much, and was not read for a while */
};
struct kv_reader_stats kv_reader_stats(const struct kv_reader *r);

#endif
