/* The reader of the KV events of an engine, or of a rank: turns the feed into facts for routers.
 *
 * Routers infer the contents of an engine's cache from the requests sent there. The reader corrects
 * these beliefs: a prompt's checkpoint is *gone* from the cache, or is *present* though routers
 * believed otherwise. Events are about blocks of tokens, so the reader needs ties, which give the
 * positions of checkpoints in chains of tokens (node/kv/paths.h).
 *
 * A tie comes from an answer reported by a router (node/kv/told.h). The answer's usage says how
 * many tokens the prompt had and how many were cached. So the reader looks for a run of blocks
 * stored meanwhile (node/kv/runs.h). The run must begin and end at these positions, and follow the
 * known part of the prompt. If several runs match, or none, there is no tie, because a wrong tie
 * would cause wrong reports. If the engine was asked for the prompt's token ids (node/kv/asked.h),
 * the answer gives the chain directly. Such answers also measure how often matching by structure is
 * wrong.
 *
 * Some engines always report 0 cached tokens. So cached_tokens of 0 means nothing until an answer
 * of the engine has reported more.
 *
 * The reader also checks the events by comparing them with answers (trust.h). While the answers
 * contradict the events, it reports nothing.
 *
 * A reader *standing by* does all this without reporting, and so can take over at once.
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
    /* Delay from an answer's end to the search for the answer's blocks. Events come over another
     * connection, and other routers' reports come by gossip. */
    KV_TOLD_WAIT_MS = 500,
    KV_TOLD_MAX = 1024,    /* most answers waiting for their blocks; others count as unmatched */
    KV_TOLD_RETRIED = 16,  /* the latest waiting answers, which are retried with each message */
    KV_SWEEP_MS = 250,     /* interval between sweeps, which report present checkpoints again */
    KV_SWEEP_POINTS = 256, /* checkpoints in a sweep */
    /* Checkpoints in each of the first sweeps after a reader begins to report: some 2 ms of
     * work. */
    KV_CATCH_UP_POINTS = 4096,
    /* The limit on a feed's work in KV_WINDOW_MS: KV_STEPS_MAX steps from block to block (10 to 100
     * ns each), and 1 walk over the whole tree. Work for the events' own blocks does not count. A
     * message costs KV_MESSAGE_STEPS (8 us without events), and 1 more step per KV_STEP_BYTES bytes
     * (32 MiB a second at most, decoded in 0.1 s). */
    KV_STEPS_MAX = 1 << 20,
    KV_MESSAGE_STEPS = 128,
    KV_STEP_BYTES = 32,
    /* In a replay this number of steps counts as 1. The reader requested the replay, and an engine
     * keeps 10,000 messages and sends them in a second. */
    KV_REPLAYED_STEPS = 16,
    KV_WALK_BLOCKS = 16, /* blocks per step on the path from an answer to the root */
    KV_WINDOW_MS = 1000,
    KV_COVER_SHARE = 4,   /* a reader covers the cache if at most 1/4 of the stored blocks lack a
                           * known place in the tree */
    KV_REFUSED_MAX = 256, /* refused reports of gone chains, to be repeated later */
    /* Fewest cached blocks of a prompt for a comparison with the answer. Engines always compute a
     * prompt's last block, and some round the reported numbers. */
    KV_STOOD_MIN = 4,
};

struct kv_reader_user {
    /* Returns the paths for ties of this block size (paths.h). NULL: there is no table for the
     * size, so the reader adds no ties and reports nothing. */
    struct kv_paths *(*paths)(void *context, uint32_t block_tokens, uint64_t now_ms);
    void (*replay)(void *context, uint64_t from);
    bool (*gone)(void *context, uint64_t id, uint8_t code); /* false: repeat the report later */
    void (*present)(void *context, uint64_t id, uint8_t code);
    void (*cleared)(void *context); /* the whole cache is empty */
    void (*began)(void *context);   /* the feed shows an unannounced restart */
    void *context;
};

enum kv_reader_state {
    KV_READER_BEGINS, /* no message yet */
    KV_READER_LIVE,
    KV_READER_DOUBTS,      /* waits for a replay of missing messages */
    KV_READER_CONTRADICTS, /* answers contradicted the events, which are not trusted for a while */
};

struct kv_reader;

/* All arguments but `out` are borrowed. `blocks_max`: the most blocks of the tree. ERR_NOMEM. */
MUST_USE int kv_reader_create(struct kv_reader **out, const struct kv_reader_user *user,
                              const struct hash_secret *secret, uint32_t blocks_max,
                              bool has_replay);
void kv_reader_destroy(struct kv_reader *r);
void kv_reader_check(const struct kv_reader *r);
/* Switches between reporting (`speaks`) and standing by, which is the initial state. When a reader
 * begins to report, the previous reader may have been silent for a while. So the first sweeps
 * report gone checkpoints too. */
void kv_reader_speaks(struct kv_reader *r, bool speaks);

/* Appends the saved state, for the same engine's next reader. Returns 1, or 0 if there is no state
 * from which to continue. ERR_NOMEM. */
MUST_USE int kv_reader_keep(const struct kv_reader *r, struct buf *out);
/* Continues from a saved state. The state is certain only after a replay of the messages since
 * then; without it, any cached block may be gone. Returns false if the state is invalid or of a
 * larger tree; then nothing has changed. */
bool kv_reader_resume(struct kv_reader *r, struct slice kept, uint64_t now_ms);

/* These pass messages and events on to the functions of the same name in node/kv/feed.h. */
void kv_reader_live(struct kv_reader *r, uint64_t number, struct slice payload, uint64_t now_ms);
void kv_reader_replayed(struct kv_reader *r, uint64_t number, struct slice payload,
                        uint64_t now_ms);
void kv_reader_replay_ended(struct kv_reader *r, uint64_t now_ms);
void kv_reader_connected(struct kv_reader *r, uint64_t now_ms);
void kv_reader_restarted(struct kv_reader *r, uint64_t now_ms);
/* Called after kv_reader_restarted() if there are other signs of the restart than the feed
 * (trust.h). */
void kv_reader_restart_is_seen(struct kv_reader *r);
/* Return and set the trust in the events, for an engine's next reader, after the engine moved the
 * feed. */
const struct kv_trust *kv_reader_trust(const struct kv_reader *r);
void kv_reader_trusts(struct kv_reader *r, const struct kv_trust *before);

/* Called when an answer of this engine has ended successfully. */
void kv_reader_told(struct kv_reader *r, const struct kv_told *told, uint64_t now_ms);

uint64_t kv_reader_due_ms(const struct kv_reader *r);
void kv_reader_tick(struct kv_reader *r, uint64_t now_ms);

enum kv_reader_state kv_reader_state(const struct kv_reader *r);
/* Returns true if the reader knows the cache about as well as any reader can. No message was missed
 * since the cache was empty, or since all blocks were replaced; and most stored blocks had a known
 * place. A reader which joined late does not cover the cache even after a replay, because it has
 * few ties. */
bool kv_reader_covers(const struct kv_reader *r);
const struct kv_tree *kv_reader_tree(const struct kv_reader *r);
/* Returns the tokens per block; 0: no message has shown the number yet. */
uint32_t kv_reader_block_tokens(const struct kv_reader *r);
/* Returns true if there is no table for the engine's block size (sizes.h). */
bool kv_reader_is_odd(const struct kv_reader *r);
/* Notes if the engine's metrics show cache hits in a tier beyond the engine's own memory. */
void kv_reader_has_tier(struct kv_reader *r, bool has_tier);
/* Returns true if the events leave out a tier beyond the engine's own memory, or if the engine
 * shares a pool with others. Then removed blocks may still be found, which is no contradiction. */
bool kv_reader_is_silent(const struct kv_reader *r);

struct kv_reader_stats {
    struct kv_feed_stats feed;
    struct kv_tree_stats tree;
    uint64_t told, tied; /* answers, and answers with a tie */
    /* Answers without a tie, because no run of blocks matched, or because several did. Answers with
     * an unreported checkpoint count as unmatched. */
    uint64_t unmatched, unclear;
    uint64_t asked;                /* answers tied by the prompt's chain, from token ids that the
                                    * engine returned */
    uint64_t asked_wrong;          /* answers of `asked` for which structure gave other blocks */
    uint64_t gone, present;        /* reports of gone and of present checkpoints */
    uint64_t agreed, contradicted; /* answers that could be compared with the cached blocks, by
                                    * result */
    uint64_t disbelieved;          /* times that trust in the events was lost */
    uint64_t believed_ms;          /* time at which events are trusted again; 0: they are trusted */
    uint64_t shed; /* times that the feed exceeded the limit on work and was paused */
};
struct kv_reader_stats kv_reader_stats(const struct kv_reader *r);

#endif
