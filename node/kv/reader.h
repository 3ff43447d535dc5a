/* The reader of the KV events of an engine (or one rank): turns the feed into facts for routers.
 *
 * Routers infer what an engine's cache holds from the requests that they sent there. The reader
 * corrects these beliefs: a checkpoint of a prompt is *gone* from the cache, or is *present* though
 * routers believed otherwise. Events are about blocks of tokens, so the reader needs ties, which
 * give the positions of checkpoints in chains of tokens (node/kv/paths.h).
 *
 * A tie comes from an answer that a router reports (node/kv/told.h). The answer's usage says how
 * many tokens the prompt had and how many were cached. So the reader looks for a run of blocks
 * stored meanwhile (node/kv/runs.h) that begins and ends at these positions, and follows the known
 * part of the prompt. If several runs match, or none, there is no tie, because a wrong tie would
 * cause wrong reports. If the engine was asked for the prompt's token ids (node/kv/asked.h), the
 * answer gives the chain directly. Such answers also measure how often matching by structure is
 * wrong.
 *
 * Some engines always report 0 cached tokens. So cached_tokens of 0 means nothing until an answer
 * of the engine has reported more.
 *
 * The reader also checks the events by comparing them with answers (trust.h). While the answers
 * contradict the events, it reports nothing.
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
    /* Delay from an answer's end to the search for its blocks. Events come over another connection,
     * and other routers' reports come by gossip. */
    KV_TOLD_WAIT_MS = 500,
    KV_TOLD_MAX = 1024,    /* most answers that wait for their blocks; others count as unmatched */
    KV_TOLD_RETRIED = 16,  /* the latest waiting answers, which are retried with each message */
    KV_SWEEP_MS = 250,     /* interval between sweeps, which report present checkpoints again */
    KV_SWEEP_POINTS = 256, /* checkpoints in a sweep */
    /* Checkpoints in the first sweeps of a reader that begins to report: some 2 ms of work. */
    KV_CATCH_UP_POINTS = 4096,
    /* The limit on a feed's work, apart from that for its events' own blocks: KV_STEPS_MAX steps
     * from block to block (10 to 100 ns each) in KV_WINDOW_MS, and one walk over the whole tree. A
     * message costs KV_MESSAGE_STEPS (8 us without events), and one more step per KV_STEP_BYTES
     * bytes (32 MiB a second at most, decoded in 0.1 s). */
    KV_STEPS_MAX = 1 << 20,
    KV_MESSAGE_STEPS = 128,
    KV_STEP_BYTES = 32,
    /* In a replay, which the reader requested, this number of steps counts as one, because an
     * engine keeps 10,000 messages and sends them in a second. */
    KV_REPLAYED_STEPS = 16,
    KV_WALK_BLOCKS = 16, /* blocks that count as one step on the path from an answer to the root */
    KV_WINDOW_MS = 1000,
    KV_COVER_SHARE = 4, /* a reader covers the cache if at most 1/4 of stored blocks lack a place */
    KV_REFUSED_MAX = 256, /* refused reports that chains are gone, which are to be repeated */
    /* The fewest blocks that an answer must have been able to find for a comparison. Engines always
     * compute a prompt's last block, and some round their figures. */
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
    void (*began)(void *context);   /* the feed shows a restart that was not announced */
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
 * begins to report, the previous one may have been silent for a while. So the first sweeps report
 * everything that contradicts the routers' beliefs. */
void kv_reader_speaks(struct kv_reader *r, bool speaks);

/* Appends the saved state, for the same engine's next reader. Returns 1, or 0 if there is no state
 * from which to continue. ERR_NOMEM. */
MUST_USE int kv_reader_keep(const struct kv_reader *r, struct buf *out);
/* Continues from a saved state. The state is certain only after a replay of the messages since
 * then; without it, any cached block may be gone. Returns false if the state is invalid or of a
 * larger tree; then nothing has changed. */
bool kv_reader_resume(struct kv_reader *r, struct slice kept, uint64_t now_ms);

/* These do as the functions of node/kv/feed.h. */
void kv_reader_live(struct kv_reader *r, uint64_t number, struct slice payload, uint64_t now_ms);
void kv_reader_replayed(struct kv_reader *r, uint64_t number, struct slice payload,
                        uint64_t now_ms);
void kv_reader_replay_ended(struct kv_reader *r, uint64_t now_ms);
void kv_reader_connected(struct kv_reader *r, uint64_t now_ms);
void kv_reader_restarted(struct kv_reader *r, uint64_t now_ms);
/* Called after kv_reader_restarted() if not only the feed shows the restart (trust.h). */
void kv_reader_restart_is_seen(struct kv_reader *r);
/* Return and set the trust in the events, for the next reader of an engine that moved its feed. */
const struct kv_trust *kv_reader_trust(const struct kv_reader *r);
void kv_reader_trusts(struct kv_reader *r, const struct kv_trust *before);

/* Called when an answer of this engine has ended successfully. */
void kv_reader_told(struct kv_reader *r, const struct kv_told *told, uint64_t now_ms);

uint64_t kv_reader_due_ms(const struct kv_reader *r);
void kv_reader_tick(struct kv_reader *r, uint64_t now_ms);

enum kv_reader_state kv_reader_state(const struct kv_reader *r);
/* Returns true if the reader knows the cache about as well as any reader can: no message was missed
 * since the cache was empty or since all of its blocks were replaced, and most stored blocks had a
 * known place. A reader that joined late does not cover the cache even with a replay, because it
 * has few ties. */
bool kv_reader_covers(const struct kv_reader *r);
const struct kv_tree *kv_reader_tree(const struct kv_reader *r);
/* Returns the tokens per block; 0: no message has shown the number yet. */
uint32_t kv_reader_block_tokens(const struct kv_reader *r);
/* Returns true if there is no table for the engine's block size (sizes.h). */
bool kv_reader_is_odd(const struct kv_reader *r);
/* Notes if the engine's metrics show that it finds blocks in a tier beyond its own memory. */
void kv_reader_has_tier(struct kv_reader *r, bool has_tier);
/* Returns true if the events do not cover such a tier, or if the engine shares a pool with others.
 * Then blocks removed from its own memory may still be found, which is no contradiction. */
bool kv_reader_is_silent(const struct kv_reader *r);

struct kv_reader_stats {
    struct kv_feed_stats feed;
    struct kv_tree_stats tree;
    uint64_t told, tied; /* answers, and those that gave a tie */
    /* Answers without a tie, because no run of blocks matched, or because several did. Answers with
     * a checkpoint that no router reported count as unmatched. */
    uint64_t unmatched, unclear;
    uint64_t asked;                /* tied answers that gave the prompt's chain */
    uint64_t asked_wrong;          /* answers of `asked` for which structure gave other blocks */
    uint64_t gone, present;        /* reports of each kind */
    uint64_t agreed, contradicted; /* answers that could be compared with the cached blocks */
    uint64_t disbelieved;          /* times that trust in the events was lost */
    uint64_t believed_ms;          /* time at which events are trusted again; 0: they are trusted */
    uint64_t shed; /* times that the feed exceeded the limit on its work and was paused */
};
struct kv_reader_stats kv_reader_stats(const struct kv_reader *r);

#endif
