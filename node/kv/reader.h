/* The reader of one engine's (one rank's) KV events: from the feed to what routers have to know.
 *
 * Routers infer what an engine holds from what they sent there. Whoever reads its events says where
 * that is wrong: a checkpoint of a prompt is *gone* there, or *present* though nobody would think
 * so. Events speak of blocks of tokens, so the reader has to know where checkpoints stand in chains
 * of tokens: by ties (node/kv/paths.h).
 *
 * A tie comes from an answer that a router tells of (node/kv/told.h). Its usage says how many
 * tokens the prompt had and how many were cached; so of the blocks that were stored meanwhile
 * (node/kv/runs.h) those are its own that begin and end where it does, and that follow what its
 * text is already known to be. If several do, or none, there is no tie: a wrong one would be a
 * wrong certainty. An answer whose engine was asked for the prompt's tokens (node/kv/asked.h) needs
 * none of that: it says the chain. Such answers also measure how often structure is wrong.
 *
 * An engine of which no answer found anything yet, by its usage, may not tell at all: some say 0
 * then.
 *
 * Answers check events, too (trust.h). While they contradict, the reader says nothing.
 *
 * A reader that *stands by* does the same and says nothing, so it can go on at once.
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
    /* From an answer's end until its blocks are looked for: events come by another connection, and
     * what another router tells takes as long as gossip. */
    KV_TOLD_WAIT_MS = 500,
    KV_TOLD_MAX = 1024,    /* answers that wait; more count as unmatched */
    KV_TOLD_RETRIED = 16,  /* of these, the last ones are looked at with each message */
    KV_SWEEP_MS = 250,     /* between two looks at some checkpoints that are there, */
    KV_SWEEP_POINTS = 256, /* so many */
    /* The same in the first sweeps of a reader that begins to speak: some 2 ms of work. */
    KV_CATCH_UP_POINTS = 4096,
    /* What a feed may cost beside its blocks: steps of its tree (10 to 100 ns) in a second, and one
     * walk over all of it in as long. A message costs as much as so many steps (8 us without
     * events), and one more for so many bytes (32 MiB a second at most, decoded in 0.1 s). */
    KV_STEPS_MAX = 1 << 20,
    KV_MESSAGE_STEPS = 128,
    KV_STEP_BYTES = 32,
    /* Of a replay, which the reader asked for, so many count as one: an engine keeps 10,000
     * messages, and sends them in a second. */
    KV_REPLAYED_STEPS = 16,
    KV_WALK_BLOCKS =
        16, /* and so many blocks on an answer's way to the root, which are only read */
    KV_WINDOW_MS = 1000,
    KV_COVER_SHARE = 4,   /* of the blocks that were stored may have no known place */
    KV_REFUSED_MAX = 256, /* checkpoints that were refused as gone, and wait */
    /* Of what an answer could have found at least: less says nothing. Engines compute a prompt's
     * last block, and some round what they tell. */
    KV_STOOD_MIN = 4,
};

struct kv_reader_user {
    /* Where ties of its blocks stand: those of blocks of that size (paths.h). NULL: there is no
     * room for that size, so nothing is tied, and nothing said. */
    struct kv_paths *(*paths)(void *context, uint32_t block_tokens, uint64_t now_ms);
    void (*replay)(void *context, uint64_t from);
    bool (*gone)(void *context, uint64_t id, uint8_t code); /* false: not now, say it again */
    void (*present)(void *context, uint64_t id, uint8_t code);
    void (*cleared)(void *context); /* all of the cache, */
    void (*began)(void *context);   /* for its feed began anew, and nobody said so before */
    void *context;
};

enum kv_reader_state {
    KV_READER_BEGINS, /* nothing came yet */
    KV_READER_LIVE,
    KV_READER_DOUBTS,      /* waits for what is missing */
    KV_READER_CONTRADICTS, /* answers contradict its events: they are not believed for a while */
};

struct kv_reader;

/* All but `out` is borrowed. `blocks_max`: of its tree. ERR_NOMEM. */
MUST_USE int kv_reader_create(struct kv_reader **out, const struct kv_reader_user *user,
                              const struct hash_secret *secret, uint32_t blocks_max,
                              bool has_replay);
void kv_reader_destroy(struct kv_reader *r);
void kv_reader_check(const struct kv_reader *r);
/* Whether it says what it finds, or stands by (as it does at first). When it begins to, the one
 * that spoke before may have been silent for a while, so the next sweeps say all that contradicts
 * what routers believe. */
void kv_reader_speaks(struct kv_reader *r, bool speaks);

/* What is known, for the same engine's next reader: appends 1 and it, or 0 and nothing, if there is
 * nothing that could be gone on with. ERR_NOMEM. */
MUST_USE int kv_reader_keep(const struct kv_reader *r, struct buf *out);
/* A new one goes on with that: with certainty if a replay brings what came since, else all that is
 * held may be gone. False: it is of a larger tree, or none; nothing changed. */
bool kv_reader_resume(struct kv_reader *r, struct slice kept, uint64_t now_ms);

/* As node/kv/feed.h. */
void kv_reader_live(struct kv_reader *r, uint64_t number, struct slice payload, uint64_t now_ms);
void kv_reader_replayed(struct kv_reader *r, uint64_t number, struct slice payload,
                        uint64_t now_ms);
void kv_reader_replay_ended(struct kv_reader *r, uint64_t now_ms);
void kv_reader_connected(struct kv_reader *r, uint64_t now_ms);
void kv_reader_restarted(struct kv_reader *r, uint64_t now_ms);
/* A restart that not only its feed shows (trust.h), beside the call above. */
void kv_reader_restart_is_seen(struct kv_reader *r);
/* For the next reader of an engine that may have moved its feed. */
const struct kv_trust *kv_reader_trust(const struct kv_reader *r);
void kv_reader_trusts(struct kv_reader *r, const struct kv_trust *before);

/* An answer of this engine has ended, well. */
void kv_reader_told(struct kv_reader *r, const struct kv_told *told, uint64_t now_ms);

uint64_t kv_reader_due_ms(const struct kv_reader *r);
void kv_reader_tick(struct kv_reader *r, uint64_t now_ms);

enum kv_reader_state kv_reader_state(const struct kv_reader *r);
/* Whether it knows what is there about as well as any reader can: nothing was missed since the
 * cache was empty, or since it turned over, and most of what came had a place. One that joined
 * late, or missed something, does not, and with a replay neither: it has the blocks, but few ties.
 */
bool kv_reader_covers(const struct kv_reader *r);
const struct kv_tree *kv_reader_tree(const struct kv_reader *r);
/* Tokens of its blocks, as far as was seen; 0: no message told yet. */
uint32_t kv_reader_block_tokens(const struct kv_reader *r);
/* Whether there is no room for that size. */
bool kv_reader_is_odd(const struct kv_reader *r);
/* The engine finds blocks behind its own memory, by its metrics. */
void kv_reader_has_tier(struct kv_reader *r, bool has_tier);
/* Whether its events do not tell of such a tier, or it shares a pool: what goes from its memory may
 * be there, and an answer that found it contradicts nothing. */
bool kv_reader_is_silent(const struct kv_reader *r);

struct kv_reader_stats {
    struct kv_feed_stats feed;
    struct kv_tree_stats tree;
    uint64_t told, tied; /* answers; with a tie */
    /* Without: no blocks, or several, could be theirs. Unmatched are also those whose checkpoint
     * nobody told of. */
    uint64_t unmatched, unclear;
    uint64_t asked;                /* of the tied ones: those that said the prompt's chain, */
    uint64_t asked_wrong;          /* and for which structure had other blocks */
    uint64_t gone, present;        /* said */
    uint64_t agreed, contradicted; /* answers that could be compared with what stood there */
    uint64_t disbelieved;          /* times that events were no longer believed */
    uint64_t believed_ms;          /* not before then are they believed; 0: they are */
    uint64_t shed; /* times that the feed cost too much, and was not read for a while */
};
struct kv_reader_stats kv_reader_stats(const struct kv_reader *r);

#endif
