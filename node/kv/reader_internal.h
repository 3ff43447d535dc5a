/* A reader, for its two files: reader.c takes messages and time, reader_ties.c finds the blocks of
 * answers and judges by them. */
#ifndef NODE_KV_READER_INTERNAL_H
#define NODE_KV_READER_INTERNAL_H

#include "node/kv/batch.h"
#include "node/kv/reader.h"
#include "node/kv/runs.h"

/* An answer that waits for its blocks' events. */
struct kv_waiting {
    struct kv_told told;
    uint64_t due_ms;
    bool done;
    bool outlived_zero;
    bool placed, wrong; /* by the chain that it said; structure said another one, */
    uint64_t text;      /* by what was known up to this checkpoint before */
};

struct kv_reader {
    const struct kv_reader_user *user;
    struct kv_paths *paths; /* NULL: no message told the size of its blocks, or it has none */
    uint32_t block_tokens;  /* of these */
    bool has_tier;          /* by the engine's metrics */
    struct kv_tree *tree;
    struct kv_feed *feed;
    struct kv_decoder *decoder;
    struct kv_tree_user tree_user;
    struct kv_feed_user feed_user;
    struct kv_anchor_user listener, sayer, changed, sweeper;
    bool speaks;
    uint64_t now_ms;       /* of the call under way */
    uint64_t window_ms;    /* when the next one begins, for what the feed may cost */
    uint64_t settle_ms;    /* when what was missed matters no more; 0: nothing was */
    uint64_t whole_ms;     /* since when nothing was missed */
    uint64_t placeless_ms; /* when blocks were stored last whose place is not known, */
    uint64_t live_ms;      /* when a message came last that was no replay's, */
    uint64_t zero_ms;      /* when one with number 0 did, one in a window, */
    uint64_t former_ms;    /* and the last one before it; 0: none */
    uint64_t roomless_ms;  /* and such as begin a prompt: without room for them; 0: never */
    uint32_t turnover;     /* blocks: as many as the cache has, or more */
    uint32_t stored;       /* blocks, of those that will be as many, */
    uint32_t placed;       /* and of these in a known place */
    bool covers;           /* most of what is there has a known place */
    bool walked;           /* in this window, over all of the tree */
    uint64_t full;         /* blocks that had found no room when it was made last */
    bool doubtful;         /* more was missed since */
    bool tells_cached;     /* some answer found something, so 0 of another one is nothing */
    bool sheds;            /* it cost too much: nothing is read until the next one */
    uint32_t cursor;       /* of the sweep, */
    uint64_t sweep_ms;     /* which goes on then, */
    uint32_t catch_up;     /* and says of so many places of the paths what is gone there, too */
    unsigned first, count; /* of those that wait */
    struct kv_trust trust;
    struct kv_reader_stats stats;
    uint64_t refused[KV_REFUSED_MAX]; /* chains */
    unsigned refused_count;
    struct kv_waiting waiting[KV_TOLD_MAX];
    struct kv_runs runs;
    struct kv_paths_later reached; /* of these nothing is said yet, */
    bool in_message;               /* while one is being read */
};

/* What is known may be wrong; and nothing is known. */
void kv_reader_doubt(struct kv_reader *r);
void kv_reader_forget(struct kv_reader *r);
/* All that is gone is said once more. */
void kv_reader_catch_up(struct kv_reader *r);
/* Goes on with the paths of blocks of the size that they have now. */
void kv_reader_size(struct kv_reader *r);
/* Whether its feed cost too much: then nothing more of it is read in this window. */
bool kv_reader_sheds(struct kv_reader *r);

/* Whether there is no more to do for that answer; `last_time`: it does not wait any longer. */
bool kv_reader_tie(struct kv_reader *r, struct kv_waiting *w, bool last_time);

#endif
