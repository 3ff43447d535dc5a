/* What routers tell whoever reads an engine's events: which prompts there are, and what became of
 * them. */
#ifndef NODE_KV_TOLD_H
#define NODE_KV_TOLD_H

#include <stdint.h>

enum { KV_PATH_POINTS_MAX = 128 };
#define KV_UNTOLD UINT32_MAX

struct kv_path {
    uint64_t parent; /* the checkpoint before the first one; 0: none is */
    unsigned count;
    uint64_t ids[KV_PATH_POINTS_MAX]; /* low 48 bits */
    uint8_t codes[KV_PATH_POINTS_MAX];
};

struct kv_told {
    unsigned slot;
    uint64_t end; /* the prompt's last checkpoint */
    uint32_t tail_bytes;
    uint64_t sent_ms, first_ms, ended_ms; /* on the clock of this router */
    uint32_t prompt_tokens, cached_tokens, output_tokens;
};

#endif
