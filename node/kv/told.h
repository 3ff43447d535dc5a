/* Reports of all routers to the one that reads an engine's KV-cache events. From them it learns the
 * positions of prompts' checkpoints in the engine's tree of blocks: tidings (crdt/tidings.h).
 *
 *   PATH   checkpoints of a prompt, in order, behind one that was reported before
 *   TOLD   an answer: at which replica, of which prompt, when, and how many tokens
 *
 * Bodies on the wire; readers ignore bytes behind the known part:
 *
 *   PATH   parent 6, count varint, { id 6, code 1 } for each
 *   TOLD   rkey 4, end 6, tail varint, sent 8, first varint, ended varint, prompt varint,
 *          cached varint, output varint, flags 1, { block varint, chain 8 } if flag 2,
 *          count varint, { blocks varint, chain 8, digest 8 } for each if flag 4
 *
 * `first` and `ended` are ms since `sent`, `first` one more (0: there was no first token). Token
 * counts are one more, too (0: not given). Flag 1: the answer ended well. Flag 2: the engine was
 * asked for the prompt's tokens, and the chain of its whole blocks and their size follow (asked.h).
 * Flag 4: where the prompt went on behind its cached tokens, and where prompts parted before
 * (struct kv_fronts).
 */
#ifndef NODE_KV_TOLD_H
#define NODE_KV_TOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "base/wire.h"
#include "crdt/limits.h"
#include "node/kv/tree.h"

/* Kinds of tidings. */
enum kv_tiding { KV_TIDING_PATH = 1, KV_TIDING_TOLD };

enum {
    KV_TOLD_SLACK_MS = 250, /* tolerance for times of other routers, and of events */
    KV_PATH_POINTS_MAX = 128,
    KV_TOLD_BYTES_MAX = 4 + 6 + 5 + 8 + 10 + 10 + 5 + 5 + 5 + 1 + 5 + 8 + 1 +
                        KV_FRONTS_MAX * (2 + 8 + 8), /* of the body */
};
_Static_assert((int)KV_TOLD_BYTES_MAX <= (int)CRDT_TIDING_MAX, "an answer is one tiding");
#define KV_UNTOLD UINT32_MAX

struct kv_path {
    uint64_t parent; /* id48 of the checkpoint before the first one; 0: the prompt's beginning */
    unsigned count;
    uint64_t ids[KV_PATH_POINTS_MAX]; /* low 48 bits */
    uint8_t codes[KV_PATH_POINTS_MAX];
};

struct kv_told {
    unsigned slot;                        /* of the replica */
    uint64_t end;                         /* id48 of the prompt's last checkpoint */
    uint32_t tail_bytes;                  /* of the prompt beyond that, to half a block */
    uint64_t sent_ms, first_ms, ended_ms; /* cluster time: sent to the engine, first token or 0,
                                             end */
    uint32_t prompt_tokens, cached_tokens, output_tokens; /* KV_UNTOLD: not given */
    bool well;                                            /* the answer ended well */
    uint32_t asked_block;    /* tokens per block, if the engine gave the prompt's tokens; else 0 */
    uint64_t asked_chain;    /* of the prompt's whole blocks */
    struct kv_fronts fronts; /* none: unknown */
};

/* Writes as many points from `from` on as there is room for, behind the one before `from`; returns
 * their number, 0 if none fits. */
unsigned kv_path_write(const struct kv_path *path, unsigned from, struct wire_writer *w);
/* ERR_SYNTAX. */
MUST_USE int kv_path_read(struct slice body, struct kv_path *out);

/* On the wire the replica is identified by its cache's rkey (crdt/registry.h). `first_ms` and
 * `ended_ms` are not before `sent_ms`. */
void kv_told_write(const struct kv_told *told, uint32_t rkey, struct wire_writer *w);
/* ERR_SYNTAX. The caller sets `slot` from the rkey. */
MUST_USE int kv_told_read(struct slice body, uint32_t *rkey, struct kv_told *out);

#endif
