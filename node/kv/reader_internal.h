/* A reader, for its two files: reader.c handles messages and time, reader_ties.c finds the blocks
 * of answers and judges by them. */
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
    bool placed, wrong; /* placed by the chain in it; structure gave another one, */
    uint64_t text;      /* from the text up to this checkpoint, which was known before */
};

struct kv_reader {
    const struct kv_reader_user *user;
    struct kv_paths *paths; /* NULL: block size unknown, or without room */
    uint32_t block_tokens;  /* per block */
    bool has_tier;          /* by the engine's metrics */
    struct kv_tree *tree;
    struct kv_feed *feed;
    struct kv_decoder *decoder;
    struct kv_tree_user tree_user;
    struct kv_feed_user feed_user;
    struct kv_anchor_user listener, sayer, changed, sweeper;
    bool speaks;
    uint64_t now_ms;       /* of the current call */
    uint64_t window_ms;    /* start of the next window of the cost limit */
    uint64_t settle_ms;    /* when missed events no longer matter; 0: none were missed */
    uint64_t whole_ms;     /* since when nothing was missed */
    uint64_t placeless_ms; /* when blocks without a known place were last stored, */
    uint64_t live_ms;      /* when a message from outside a replay last came, */
    uint64_t zero_ms;      /* when number 0 last came, at most one per window, */
    uint64_t former_ms;    /* and the last message before that; 0: none */
    uint64_t roomless_ms;  /* as placeless_ms, of blocks that begin a prompt and found no room; 0:
                              never */
    uint32_t turnover;     /* blocks: the cache's size, or more */
    uint32_t stored;       /* blocks towards `turnover`, */
    uint32_t placed;       /* and of these the ones with a known place */
    bool covers;           /* most cached blocks have a known place */
    bool walked;           /* in this window, over the whole tree */
    uint64_t full;         /* blocks without room, when room was last made */
    bool doubtful;         /* more was missed since */
    bool tells_cached;     /* an answer found something in the cache, so 0 in another one means
                              nothing */
    bool sheds;            /* the feed cost too much: nothing is read until the next window */
    uint32_t cursor;       /* of the sweep, */
    uint64_t sweep_ms;     /* and the time of the next sweep, */
    uint32_t catch_up;     /* of so many more places of the paths, report also what is gone */
    unsigned first, count; /* of the waiting answers */
    struct kv_trust trust;
    struct kv_reader_stats stats;
    uint64_t refused[KV_REFUSED_MAX]; /* chains */
    unsigned refused_count;
    struct kv_waiting waiting[KV_TOLD_MAX];
    struct kv_runs runs;
    struct kv_paths_later reached; /* chains with reports to be made, */
    bool in_message;               /* while a message is being read */
};

/* _doubt(): the state may be wrong; _forget(): the state is unknown. */
void kv_reader_doubt(struct kv_reader *r);
void kv_reader_forget(struct kv_reader *r);
/* Reports everything that is gone once more. */
void kv_reader_catch_up(struct kv_reader *r);
/* Switches to the paths for the current block size. */
void kv_reader_size(struct kv_reader *r);
/* True if the feed cost too much: then it is not read any more in this window. */
bool kv_reader_sheds(struct kv_reader *r);

/* True if the answer is done; `last_time`: it does not wait any longer. */
bool kv_reader_tie(struct kv_reader *r, struct kv_waiting *w, bool last_time);

#endif
