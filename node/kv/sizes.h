/* Which size of blocks the ties of a router are of (paths.h), where engines differ.
 *
 * Ties are of one size, for chains of blocks of different sizes have nothing in common. The size is
 * that of the feeds that are open: when none of them has it any more, or more than twice as many
 * have another one, that one takes its place. A majority alone changes nothing, for with the size
 * go all anchors: where about as many engines have the one as the other, each that comes or goes
 * would cost what is known of all.
 */
#ifndef NODE_KV_SIZES_H
#define NODE_KV_SIZES_H

#include <stdint.h>

/* The size of ties from now on, in tokens: `current`, or another one of those of the feeds; 0: not
 * known. Of two that as many have, the first one. */
uint32_t kv_sizes_choose(const uint32_t *sizes, unsigned count, uint32_t current);

#endif
