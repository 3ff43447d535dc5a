/* The state of a reader, shared by reader.c, which handles messages and time, and reader_ties.c,
 * which finds the blocks of answers and compares answers with events. */
#ifndef NODE_KV_READER_INTERNAL_H
#define NODE_KV_READER_INTERNAL_H

#include "node/kv/batch.h"
#include "node/kv/reader.h"
#include "node/kv/runs.h"

/* An answer waiting for the events of the answer's blocks. */
struct kv_waiting {
    struct kv_told told;
    uint64_t due_ms;
    bool done;
    bool outlived_zero;
    bool placed, wrong; /* placed: the answer's chain gave the place; wrong: structure had given
                         * another place */
    uint64_t text;      /* the prompt's last checkpoint with an anchor, as it was before the chain
                         * gave the place */
};

struct kv_reader {
    const struct kv_reader_user *user;
    struct kv_paths *paths; /* NULL: the block size is unknown, or has no table */
    uint32_t block_tokens;  /* tokens per block */
    bool has_tier;          /* the metrics show a tier beyond the engine's own memory */
    struct kv_tree *tree;
    struct kv_feed *feed;
    struct kv_decoder *decoder;
    struct kv_tree_user tree_user;
    struct kv_feed_user feed_user;
    struct kv_anchor_user listener, sayer, changed, sweeper;
    bool speaks;
    uint64_t now_ms;       /* time of the current call */
    uint64_t window_ms;    /* start of the next window of the limit on work */
    uint64_t settle_ms;    /* time at which kv_tree_settle() is due; 0: no events were missed */
    uint64_t whole_ms;     /* time since which no message was missed */
    uint64_t placeless_ms; /* last store of blocks without a known place in the tree */
    uint64_t live_ms;      /* time of the subscription's last message */
    uint64_t zero_ms;      /* last time that number 0 came; at most once per window */
    uint64_t former_ms;    /* time of the last message before number 0; 0: none */
    uint64_t
        roomless_ms;   /* last time that a prompt's first blocks did not fit the tree; 0: never */
    uint32_t turnover; /* blocks after which the cache has turned over: at least the cache's size */
    uint32_t stored;   /* blocks stored since the last turnover */
    uint32_t placed;   /* blocks of `stored` with a known place in the tree */
    bool covers;       /* most cached blocks have a known place in the tree */
    bool walked;       /* the whole tree was walked over in this window */
    uint64_t full;     /* count of blocks that did not fit, when room was last made */
    bool doubtful;     /* messages were missed: kv_reader_doubt() is due in the next window */
    bool tells_cached; /* an answer reported cached tokens, so the engine does report them */
    bool sheds;        /* the limit on work is exceeded: nothing is read until the next window */
    uint32_t cursor;   /* the sweep's place in the paths */
    uint64_t sweep_ms; /* time of the next sweep */
    uint32_t catch_up; /* number of places that sweeps still have to visit to report gone
                        * checkpoints */
    unsigned first, count; /* the ring of waiting answers: index of the first, and number */
    struct kv_trust trust;
    struct kv_reader_stats stats;
    uint64_t refused[KV_REFUSED_MAX]; /* chains for which `gone` returned false */
    unsigned refused_count;
    struct kv_waiting waiting[KV_TOLD_MAX];
    struct kv_runs runs;
    struct kv_paths_later reached; /* chains to be reported soon */
    bool in_message;               /* a message is being read */
};

/* kv_reader_doubt(): messages were missed, so any block may be gone. kv_reader_forget(): empties
 * the tree, as after the engine's start with an empty cache. */
void kv_reader_doubt(struct kv_reader *r);
void kv_reader_forget(struct kv_reader *r);
/* Lets the next sweeps report all gone checkpoints, once more. */
void kv_reader_catch_up(struct kv_reader *r);
/* Switches to the paths for the current block size. */
void kv_reader_size(struct kv_reader *r);
/* Returns true if the feed has exceeded the limit on work, and is not read until the next
 * window. */
bool kv_reader_sheds(struct kv_reader *r);

/* Tries to find the answer's blocks. Returns true if the answer need not wait any longer.
 * `last_time`: the answer must not wait. */
bool kv_reader_tie(struct kv_reader *r, struct kv_waiting *w, bool last_time);

#endif
