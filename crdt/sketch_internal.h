/* A symbol in the cells of a sketch: bits, check and places. */
#ifndef CRDT_SKETCH_INTERNAL_H
#define CRDT_SKETCH_INTERNAL_H

#include "crdt/sketch.h"

/* All data derived from a symbol, computed once for all cells and the digest. */
struct crdt_mark {
    struct crdt_cell cell; /* the symbol's bits and check, as in a cell with this symbol only */
    uint64_t hash;         /* used in the digest; check, counter and sign are parts of it */
    uint64_t places;       /* place in each of three rows, 21 bits each */
};

/* Two rounds of 64 x 64 -> 128 bits, folded (as in wyhash). The ids are already keyed hashes:
 * without the cluster's secret, no client can choose them. So this hash needs no key. */
static inline struct crdt_mark crdt_cell_mark(uint64_t low, uint32_t high)
{
    __extension__ typedef unsigned __int128 wide;
    wide first = (wide)(low ^ UINT64_C(0x2d358dccaa6c78a5)) * (high ^ UINT64_C(0x8bb84b93962eacc9));
    uint64_t a = (uint64_t)first;
    uint64_t b = (uint64_t)(first >> 64);
    wide hash = (wide)(a ^ UINT64_C(0x4b33a62ed433d4a3)) * (b ^ UINT64_C(0x4d5a2da51de1aa47));
    wide places = (wide)(a ^ UINT64_C(0xa0761d6478bd642f)) * (b ^ UINT64_C(0xe7037ed1a0b428db));
    struct crdt_mark mark;
    mark.hash = (uint64_t)hash ^ (uint64_t)(hash >> 64);
    mark.places = (uint64_t)places ^ (uint64_t)(places >> 64);
    mark.cell.low = low;
    mark.cell.high = high | (mark.hash & 0xffff) << 32;
    return mark;
}

static inline struct crdt_mark crdt_symbol_mark(const struct crdt_symbol *symbol)
{
    uint64_t id = symbol->id48 & UINT64_C(0xffffffffffff);
    uint32_t high = (symbol->rkey >> 16 & 0x7fff) | (symbol->generation & UINT32_C(0xfff)) << 15 |
                    (uint32_t)symbol->code << 27;
    return crdt_cell_mark(id | (uint64_t)symbol->rkey << 48, high);
}

static inline struct crdt_symbol crdt_cell_symbol(const struct crdt_cell *cell)
{
    uint32_t high = (uint32_t)cell->high;
    return (struct crdt_symbol){.id48 = cell->low & UINT64_C(0xffffffffffff),
                                .rkey = (high & 0x7fff) << 16 | (uint32_t)(cell->low >> 48),
                                .generation = high >> 15 & 0xfff,
                                .code = (uint8_t)(high >> 27)};
}

/* The symbol's cell in a row. The place is scaled, not taken modulo. So after folding f
 * neighbouring cells into a single cell, the symbol's cell is this / f. */
static inline uint32_t crdt_mark_place(const struct crdt_mark *mark, unsigned part)
{
    return (uint32_t)((mark->places >> 21 * part & 0x1fffff) * CRDT_SKETCH_CELLS >> 21);
}

static inline uint8_t *crdt_sketch_counter(struct crdt_sketch *s, const struct crdt_mark *mark)
{
    return &s->estimate[mark->hash >> 24 & (CRDT_ESTIMATE_COUNTERS - 1)];
}

static inline void crdt_sketch_flip_mark(struct crdt_sketch *s, const struct crdt_mark *mark,
                                         int sign)
{
    for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++) {
        struct crdt_cell *cell = &s->cell[part][crdt_mark_place(mark, part)];
        cell->low ^= mark->cell.low;
        cell->high ^= mark->cell.high;
    }
    uint8_t *counter = crdt_sketch_counter(s, mark);
    *counter = (uint8_t)(*counter + (mark->hash >> 63 != 0 ? sign : -sign));
}

#endif
