/* The identity of a prompt, as a list of checkpoints: what the skimmer makes, what the index keeps
 * and what the policies compare. A plain value without pointers.
 *
 * A prompt has up to three segments (tools, system, messages), each with checkpoints from its own
 * start; the ids of a later segment cover the earlier ones. Points stand in prompt order. So the
 * longest prefix that a replica holds ends at the last point that it holds, and `blocks` of that
 * point is the length of that prefix.
 *
 * A list of *chunks* is the same, but for what an id covers: the text back to the point before, and
 * nothing else. So a replica may hold any of them, wherever they stood when it saw them.
 */
#ifndef BASE_CHAIN_H
#define BASE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

enum { CHAIN_POINTS_MAX = 512 };

struct chain_point {
    uint64_t id;     /* keyed hash of everything up to here, or of the chunk; namespace included */
    uint32_t blocks; /* blocks of 256 bytes from the start of the prompt up to here, > 0 */
    uint8_t code;    /* weight code back to the point before (base/checkpoint.h) */
};

struct chain {
    uint64_t bytes;  /* canonical length of the whole prompt, the part beyond the last point too */
    uint16_t length; /* points in use */
    bool token_ids;  /* the prompt came as token ids: 4 bytes are exactly one token */
    bool chunks;     /* the points are chunks */
    struct chain_point points[CHAIN_POINTS_MAX];
};

#endif
