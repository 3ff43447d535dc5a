/* Checkpoints and their tables, for the two files of paths.h: paths.c, and paths_keep.c, which
 * copies them and saves them over a restart. */
#ifndef NODE_KV_PATHS_INTERNAL_H
#define NODE_KV_PATHS_INTERNAL_H

#include "node/kv/paths.h"

enum { KV_NO_POINT = UINT32_MAX };

struct kv_point {
    uint64_t id;
    uint64_t chain; /* of its anchor; 0: none */
    uint32_t depth; /* blocks of its anchor; for a prompt's last checkpoint, those of the whole
                       prompt */
    uint32_t parent, child, next, previous; /* KV_NO_POINT: none; `next` also links free points */
    uint32_t by_id, by_chain;               /* the next point in the same slot of a table */
    uint32_t at;                            /* blocks of text from the prompt's beginning */
    uint32_t tokens;                        /* from the prompt's beginning, if it has an anchor, */
    uint32_t surely;                        /* and the lower bound; */
    uint32_t by; /* number of the only listener that reported it; 0: several, or long
                                 ago */
    uint8_t code;
    bool used;   /* since the clock hand passed it */
    bool untied; /* an answer found no tie, and none did since */
    bool in_use;
};

struct kv_paths {
    uint32_t max, ever; /* places; places that were ever used */
    uint32_t free, hand;
    uint32_t block_tokens; /* of all anchors; 0: none so far */
    struct kv_paths_stats stats;
    struct kv_anchor_user *listeners;
    uint32_t numbers; /* that listeners have got */
    uint32_t *by_id, *by_chain;
    struct kv_point *points;
};

/* KV_NO_POINT: unknown. */
uint32_t kv_points_find(const struct kv_paths *p, uint64_t id);
/* Adds an unknown point behind `parent` (KV_NO_POINT: at the front). KV_NO_POINT: no room. */
uint32_t kv_points_add(struct kv_paths *p, uint64_t id, uint8_t code, uint32_t parent);
/* Sets the anchor; `chain` 0 removes it. */
void kv_points_anchor(struct kv_paths *p, uint32_t at, uint64_t chain, uint32_t depth);

#endif
