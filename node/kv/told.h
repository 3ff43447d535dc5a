/* All routers' reports to the reader of an engine's KV-cache events (reader.h). By the reports the
 * reader finds the positions of prompts' checkpoints in the engine's tree of blocks. The reports
 * are tidings (crdt/tidings.h):
 *
 *   PATH   checkpoints of a prompt, in order, after a checkpoint reported before
 *   TOLD   an answer: the replica, the prompt, the times, and the numbers of tokens
 *
 * The bodies on the wire, with lengths in bytes; readers ignore bytes after the known part:
 *
 *   PATH   parent 6, count varint, { id 6, code 1 } for each
 *   TOLD   rkey 4, end 6, tail varint, sent 8, first varint, ended varint, prompt varint,
 *          cached varint, output varint, flags 1, { block varint, chain 8 } if flag 2,
 *          count varint, { blocks varint, chain 8, digest 8 } for each if flag 4
 *
 * `first` and `ended` are ms since `sent`. To `first` and the numbers of tokens 1 is added; 0 means
 * no first token, or no number from the engine. Flag 1: the answer ended successfully. Flag 2: the
 * engine returned the prompt's token ids; the block size and the chain of the whole blocks follow
 * (asked.h). Flag 4: the prompt's fronts follow (struct kv_fronts).
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
    KV_TOLD_SLACK_MS = 250, /* tolerance in comparisons of times in routers' reports with times of
                             * events */
    KV_PATH_POINTS_MAX = 128,
    KV_TOLD_BYTES_MAX = 4 + 6 + 5 + 8 + 10 + 10 + 5 + 5 + 5 + 1 + 5 + 8 + 1 +
                        KV_FRONTS_MAX * (2 + 8 + 8), /* longest body of a TOLD */
};
_Static_assert((int)KV_TOLD_BYTES_MAX <= (int)CRDT_TIDING_MAX, "an answer is one tiding");
#define KV_UNTOLD UINT32_MAX

struct kv_path {
    uint64_t parent; /* id48 of the checkpoint before ids[0]; 0: the prompt's beginning */
    unsigned count;
    uint64_t ids[KV_PATH_POINTS_MAX]; /* low 48 bits */
    uint8_t codes[KV_PATH_POINTS_MAX];
};

struct kv_told {
    unsigned slot;                        /* the replica's slot */
    uint64_t end;                         /* id48 of the prompt's last checkpoint */
    uint32_t tail_bytes;                  /* bytes of the prompt after `end` */
    uint64_t sent_ms, first_ms, ended_ms; /* cluster times; `first_ms` is 0 without a first token */
    uint32_t prompt_tokens, cached_tokens, output_tokens; /* KV_UNTOLD: not reported */
    bool well;                                            /* the answer ended successfully */
    uint32_t asked_block;    /* tokens per block; 0: the engine returned no token ids */
    uint64_t asked_chain;    /* chain of the prompt's whole blocks, if asked_block is not 0 */
    struct kv_fronts fronts; /* none: unknown */
};

/* Writes the checkpoints from index `from` on, as many as fit. Returns their number; 0: none
 * fits. */
unsigned kv_path_write(const struct kv_path *path, unsigned from, struct wire_writer *w);
/* ERR_SYNTAX. */
MUST_USE int kv_path_read(struct slice body, struct kv_path *out);

/* On the wire the cache's rkey identifies the replica (crdt/registry.h). `first_ms` and `ended_ms`
 * are not before `sent_ms`. */
void kv_told_write(const struct kv_told *told, uint32_t rkey, struct wire_writer *w);
/* ERR_SYNTAX. The caller sets `slot` from the rkey. */
MUST_USE int kv_told_read(struct slice body, uint32_t *rkey, struct kv_told *out);

#endif
