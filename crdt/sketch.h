/* The difference of two large sets, in bytes proportional to that difference.
 *
 * A folding sketch: an invertible Bloom lookup table (Goodrich and Mitzenmacher, 2011) of three
 * rows of CRDT_SKETCH_CELLS cells each. A cell is the XOR of its symbols, so cells are linear. The
 * XOR of two sketches is the sketch of the difference, and the XOR of several sets' sketches is
 * that of their union. XORing neighbouring cells gives the sketch of a smaller table, so a peer
 * sends as few cells as the estimated difference needs.
 *
 * A cell holds no count: a cell is pure if its check matches its symbol and the symbol belongs into
 * that cell. A decoded symbol that this router's index has is missing at the peer. Any other is
 * missing here. Sizes, load limits and the measured failure rates are in docs/adr/0007.
 *
 * The estimate is a tug-of-war sketch (Alon, Matias, Szegedy, 1996): each symbol adds +1 or -1 to
 * one of CRDT_ESTIMATE_COUNTERS counters; the sum of the squared differences of two routers'
 * counters estimates how many symbols differ, with a standard error of 6 %. Only differences count,
 * so one byte a counter, modulo 256, is enough.
 */
#ifndef CRDT_SKETCH_H
#define CRDT_SKETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
    CRDT_SKETCH_ROWS = 3,
    CRDT_SKETCH_CELLS = 1920,     /* per row; 2^7 * 3 * 5: folds to each of its divisors */
    CRDT_ESTIMATE_COUNTERS = 512, /* bytes */
    CRDT_CELL_BYTES = 14,         /* on the wire: 12 bytes of symbol, 2 bytes of check */
};

/* 96 bits: id48 | rkey31 | generation12 | code5. */
struct crdt_symbol {
    uint64_t id48;
    uint32_t rkey;
    uint16_t generation; /* modulo 4,096 */
    uint8_t code;
};

struct crdt_cell {
    uint64_t low, high; /* symbol in the lower 96 bits, check above */
};
_Static_assert(48 + 31 + 12 + 5 == 96, "id, rkey, generation and code fill a symbol");
_Static_assert(CRDT_CELL_BYTES * 8 == 96 + 16, "symbol and check");
_Static_assert((CRDT_ESTIMATE_COUNTERS & (CRDT_ESTIMATE_COUNTERS - 1)) == 0, "places are masked");
_Static_assert(CRDT_SKETCH_CELLS <= UINT16_MAX, "a width has two bytes on the wire");

struct crdt_sketch {
    struct crdt_cell cell[CRDT_SKETCH_ROWS][CRDT_SKETCH_CELLS];
    uint8_t estimate[CRDT_ESTIMATE_COUNTERS];
};

/* Adds a symbol (`sign` +1) or takes it out (-1). On the cells both are the same operation. */
void crdt_sketch_flip(struct crdt_sketch *s, const struct crdt_symbol *symbol, int sign);
/* The hash that digests sum up, of the whole symbol. */
uint64_t crdt_symbol_hash(const struct crdt_symbol *symbol);
/* Adds another sketch. Of two disjoint sets the result is the union's sketch, of two routers' sets
 * that of the difference. The counters of a difference are compared by crdt_sketch_estimate()
 * instead. */
void crdt_sketch_add(struct crdt_sketch *s, const struct crdt_sketch *other);
void crdt_cells_add(struct crdt_cell *cells, const struct crdt_cell *other, uint32_t count);

/* Estimated number of differing symbols, from both routers' counters. */
uint64_t crdt_sketch_estimate(const uint8_t a[CRDT_ESTIMATE_COUNTERS],
                              const uint8_t b[CRDT_ESTIMATE_COUNTERS]);
/* Cells per row that this number of differences needs, a divisor of CRDT_SKETCH_CELLS; 0: too many
 * differences. One decode in a hundred fails (docs/adr/0007), more if the estimate was too low.
 * Then double the width. */
uint32_t crdt_sketch_width(uint64_t differences);
/* True if a peer may ask for this width: a divisor of CRDT_SKETCH_CELLS. */
static inline bool crdt_sketch_width_is_valid(uint32_t width)
{
    return width > 0 && width <= CRDT_SKETCH_CELLS && CRDT_SKETCH_CELLS % width == 0;
}
/* out[CRDT_SKETCH_ROWS * width], row by row. */
void crdt_sketch_fold(const struct crdt_sketch *s, uint32_t width, struct crdt_cell *out);

/* Takes the differences out of folded cells (the XOR of two routers'), which it destroys. Returns
 * the number of symbols written, or ERR_LIMIT if the cells cannot be decoded or have more than
 * `max` symbols. Cells may come from anywhere: forged ones end in ERR_LIMIT or in symbols that
 * nobody holds. */
MUST_USE int crdt_sketch_decode(struct crdt_cell *cells, uint32_t width, struct crdt_symbol *out,
                                uint32_t max);

#endif
