#include "crdt/sketch_internal.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"

void crdt_sketch_flip(struct crdt_sketch *s, const struct crdt_symbol *symbol, int sign)
{
    struct crdt_mark mark = crdt_symbol_mark(symbol);
    crdt_sketch_flip_mark(s, &mark, sign);
}

uint64_t crdt_symbol_hash(const struct crdt_symbol *symbol)
{
    return crdt_symbol_mark(symbol).hash;
}

void crdt_sketch_add(struct crdt_sketch *s, const struct crdt_sketch *other)
{
    for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++)
        crdt_cells_add(s->cell[part], other->cell[part], CRDT_SKETCH_CELLS);
    for (unsigned i = 0; i < CRDT_ESTIMATE_COUNTERS; i++)
        s->estimate[i] = (uint8_t)(s->estimate[i] + other->estimate[i]);
}

void crdt_cells_add(struct crdt_cell *cells, const struct crdt_cell *other, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cells[i].low ^= other[i].low;
        cells[i].high ^= other[i].high;
    }
}

/* --- the number of differences ---------------------------------------------------------------- */

uint64_t crdt_sketch_estimate(const uint8_t a[CRDT_ESTIMATE_COUNTERS],
                              const uint8_t b[CRDT_ESTIMATE_COUNTERS])
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CRDT_ESTIMATE_COUNTERS; i++) {
        int difference = (uint8_t)(a[i] - b[i]);
        if (difference > 127)
            difference -= 256;
        sum += (uint64_t)(difference * difference);
    }
    return sum;
}

/* For each width, the most differences with a successful decode in 99 of 100 tries: measured,
 * docs/adr/0007. */
static const struct {
    uint16_t width;
    uint16_t differences;
} capacity[] = {
    {8, 3},     {16, 9},     {24, 16},    {40, 36},    {60, 63},
    {80, 96},   {120, 180},  {160, 300},  {240, 480},  {320, 690},
    {384, 850}, {480, 1100}, {640, 1500}, {960, 2270}, {1920, 4550},
};

uint32_t crdt_sketch_width(uint64_t differences)
{
    for (unsigned i = 0; i < sizeof capacity / sizeof *capacity; i++) {
        if (differences <= capacity[i].differences)
            return capacity[i].width;
    }
    return 0;
}

void crdt_sketch_fold(const struct crdt_sketch *s, uint32_t width, struct crdt_cell *out)
{
    CHECK(crdt_sketch_width_is_valid(width));
    uint32_t factor = CRDT_SKETCH_CELLS / width;
    for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++) {
        const struct crdt_cell *cell = s->cell[part];
        for (uint32_t i = 0; i < width; i++, out++, cell += factor) {
            *out = cell[0];
            for (uint32_t j = 1; j < factor; j++) {
                out->low ^= cell[j].low;
                out->high ^= cell[j].high;
            }
        }
    }
}

/* --- the differing symbols -------------------------------------------------------------------- */

/* A stack of cells that may contain a single symbol. Taking a symbol out can leave a single symbol
 * in two other cells. */
struct peeling {
    struct crdt_cell *cells;
    uint32_t width;
    uint32_t length;
    uint16_t stack[CRDT_SKETCH_ROWS * CRDT_SKETCH_CELLS];
};

static uint32_t place_in(const struct peeling *p, const struct crdt_mark *mark, unsigned part)
{
    uint32_t factor = CRDT_SKETCH_CELLS / p->width;
    return part * p->width + crdt_mark_place(mark, part) / factor;
}

/* True if the cell contains exactly 1 symbol. */
static bool is_pure(const struct peeling *p, uint32_t at, struct crdt_mark *mark)
{
    const struct crdt_cell *cell = &p->cells[at];
    if ((cell->low | cell->high) == 0)
        return false;
    *mark = crdt_cell_mark(cell->low, (uint32_t)cell->high);
    return mark->cell.high == cell->high && place_in(p, mark, at / p->width) == at;
}

/* Takes the symbol out of three cells; two of them may be pure now. */
static void peel(struct peeling *p, const struct crdt_mark *mark)
{
    for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++) {
        uint32_t at = place_in(p, mark, part);
        struct crdt_mark other;
        crdt_cells_add(&p->cells[at], &mark->cell, 1);
        if (is_pure(p, at, &other) && p->length < sizeof p->stack / sizeof *p->stack)
            p->stack[p->length++] = (uint16_t)at;
    }
}

int crdt_sketch_decode(struct crdt_cell *cells, uint32_t width, struct crdt_symbol *out,
                       uint32_t max)
{
    CHECK(crdt_sketch_width_is_valid(width));
    struct peeling p = {.cells = cells, .width = width, .length = 0};
    uint32_t count = 0;
    uint32_t total = CRDT_SKETCH_ROWS * width;
    struct crdt_mark mark;
    if (max > total)
        max = total; /* never more symbols than cells: with forged cells decoding might not end */
    for (uint32_t i = 0; i < total; i++) {
        if (is_pure(&p, i, &mark))
            p.stack[p.length++] = (uint16_t)i;
    }
    while (p.length > 0) {
        uint32_t at = p.stack[--p.length];
        if (!is_pure(&p, at, &mark))
            continue; /* already taken out through another cell */
        if (count == max)
            return ERR_LIMIT;
        out[count++] = crdt_cell_symbol(&mark.cell);
        peel(&p, &mark);
    }
    for (uint32_t i = 0; i < total; i++) {
        if ((cells[i].low | cells[i].high) != 0)
            return ERR_LIMIT;
    }
    return (int)count;
}
