/* Checkpoints and their tables, shared by paths.c and by paths_keep.c, which copies them and saves
 * them over a restart. */
#ifndef NODE_KV_PATHS_INTERNAL_H
#define NODE_KV_PATHS_INTERNAL_H

#include "node/kv/paths.h"

enum { KV_NO_POINT = UINT32_MAX };

struct kv_point {
    uint64_t id;
    uint64_t chain; /* the anchor; 0: none */
    uint32_t depth; /* blocks of the anchor; at a prompt's last checkpoint, of the whole prompt */
    uint32_t parent, child, next, previous; /* KV_NO_POINT: none; `next` links also free points */
    uint32_t by_id, by_chain;               /* the next point in the same slot of a table */
    uint32_t at;                            /* position: blocks of text from the prompt's start */
    uint32_t tokens; /* tokens from the prompt's start, if there is an anchor */
    uint32_t surely; /* a lower bound of `tokens` */
    uint32_t by;     /* number of the only listener that reported the anchor; 0: several, or
                        unknown */
    uint8_t code;
    bool used;   /* used since the clock hand last passed */
    bool untied; /* an answer gave no tie, and no tie has set an anchor here since */
    bool in_use;
};

struct kv_paths {
    uint32_t max, ever; /* number of places, and of places ever used */
    uint32_t free, hand;
    uint32_t block_tokens; /* block size of all anchors; 0: none so far */
    struct kv_paths_stats stats;
    struct kv_anchor_user *listeners;
    uint32_t numbers; /* the highest number of a listener so far */
    uint32_t *by_id, *by_chain;
    struct kv_point *points;
};

/* Returns the checkpoint's place; KV_NO_POINT: unknown. */
uint32_t kv_points_find(const struct kv_paths *p, uint64_t id);
/* Adds a checkpoint that is not known yet, after `parent`; KV_NO_POINT as `parent`: at a prompt's
 * beginning. Returns KV_NO_POINT if the table is full. */
uint32_t kv_points_add(struct kv_paths *p, uint64_t id, uint8_t code, uint32_t parent);
/* Sets the anchor; `chain` 0 removes it. */
void kv_points_anchor(struct kv_paths *p, uint32_t at, uint64_t chain, uint32_t depth);

#endif
