/* Checkpoints: the positions in a prompt at which the chained hash is read.
 *
 * To choose a replica, the length of a shared 100,000-token prefix need not be known to 64 tokens.
 * So a prompt is indexed at checkpoints: every block of 256 bytes (about 64 tokens) at first, then
 * in steps of about 1/24 to 1/32 of the position. Boundaries depend on the position only, so two
 * prompts with a common prefix have the same checkpoints in it.
 *
 * A checkpoint's weight is the number of blocks back to the checkpoint before it. Weights come from
 * the set 1, 2, 3, 4, 6, 8, 12, ... (powers of 2 and 1.5 times them), so five bits encode a weight.
 * The index stores this code in each entry.
 */
#ifndef BASE_CHECKPOINT_H
#define BASE_CHECKPOINT_H

#include <stdint.h>

enum {
    CHECKPOINT_BLOCK_BYTES = 256, /* a block has about 64 tokens; a token id counts as 4 bytes */
    CHECKPOINT_MAX = 320,         /* checkpoints: they cover the first 144 MiB of a segment */
    CHECKPOINT_CODE_MAX = 30,     /* greatest code of a checkpoint */
    CHECKPOINT_CODE_BINDING = 31, /* code of index entries that are no checkpoint, such as a stored
                                   * response's replica; weight 0 */
};

/* Returns the position of the checkpoint with this ordinal (from 0), in blocks from the start of
 * the segment; at least 1. */
uint32_t checkpoint_blocks(unsigned ordinal);

/* checkpoint_code(): the weight code of the checkpoint with this ordinal. checkpoint_weight(): the
 * weight of a code in blocks; 0 for CHECKPOINT_CODE_BINDING. */
uint8_t checkpoint_code(unsigned ordinal);
uint32_t checkpoint_weight(uint8_t code);

#endif
