/* The difference of two large sets, in bytes proportional to the number of differing elements.
 *
 * A folding sketch: an invertible Bloom lookup table (Goodrich and Mitzenmacher, 2011) of three
 * rows of CRDT_SKETCH_CELLS cells each. A cell is the XOR of the symbols in it, so cells are
 * linear. The XOR of two sketches is the sketch of the difference, and the XOR of several disjoint
 * sets' sketches is the sketch of the union. XORing neighbouring cells gives the sketch of a
 * smaller table, so a peer sends as few cells as the estimated difference needs.
 *
 * A cell holds no count. A cell is pure if the check matches the symbol and the symbol belongs into
 * the cell. A decoded symbol found in this router's index is missing at the peer. Any other decoded
 * symbol is missing here. Sizes, load limits and the measured failure rates are in docs/adr/0007.
 *
 * The estimate is a tug-of-war sketch (Alon, Matias, Szegedy, 1996): each symbol adds +1 or -1 to
 * one of CRDT_ESTIMATE_COUNTERS counters. The sum of the squared differences of two routers'
 * counters estimates how many symbols differ, with a standard error of 6 %. Only differences count,
 * so 1 byte per counter, modulo 256, is enough.
 */
#ifndef CRDT_SKETCH_H
#define CRDT_SKETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
    CRDT_SKETCH_ROWS = 3,
    CRDT_SKETCH_CELLS = 1920,     /* per row; 2^7 * 3 * 5: a row can be folded to any divisor */
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

/* Adds a symbol (`sign` +1) or removes it (-1). On the cells, which are XORs, both are the same
 * operation. */
void crdt_sketch_flip(struct crdt_sketch *s, const struct crdt_symbol *symbol, int sign);
/* The hash of the whole symbol; digests are sums of these hashes. */
uint64_t crdt_symbol_hash(const struct crdt_symbol *symbol);
/* Adds another sketch. For two disjoint sets, the result is the union's sketch; for two routers'
 * sets, the difference's sketch. The counters of a difference are compared by
 * crdt_sketch_estimate() instead. */
void crdt_sketch_add(struct crdt_sketch *s, const struct crdt_sketch *other);
void crdt_cells_add(struct crdt_cell *cells, const struct crdt_cell *other, uint32_t count);

/* Estimated number of differing symbols, from both routers' counters. */
uint64_t crdt_sketch_estimate(const uint8_t a[CRDT_ESTIMATE_COUNTERS],
                              const uint8_t b[CRDT_ESTIMATE_COUNTERS]);
/* Cells per row for this number of differences, a divisor of CRDT_SKETCH_CELLS; 0: too many
 * differences. About 1 in 100 decodes fails (docs/adr/0007), more if the estimate was too low.
 * After a failure, double the width. */
uint32_t crdt_sketch_width(uint64_t differences);
/* True if a peer may ask for this width: a divisor of CRDT_SKETCH_CELLS. */
static inline bool crdt_sketch_width_is_valid(uint32_t width)
{
    return width > 0 && width <= CRDT_SKETCH_CELLS && CRDT_SKETCH_CELLS % width == 0;
}
/* Folds each row of the sketch to `width` cells. `out` gets CRDT_SKETCH_ROWS * width cells, row by
 * row. */
void crdt_sketch_fold(const struct crdt_sketch *s, uint32_t width, struct crdt_cell *out);

/* Extracts the differences from folded cells (the XOR of two routers' cells), and destroys the
 * cells. Returns the number of symbols written, or ERR_LIMIT if the cells cannot be decoded or have
 * more than `max` symbols. Any cells are safe input: forged cells give ERR_LIMIT, or symbols that
 * no router has. */
MUST_USE int crdt_sketch_decode(struct crdt_cell *cells, uint32_t width, struct crdt_symbol *out,
                                uint32_t max);

#endif
