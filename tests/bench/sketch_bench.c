/* Differences that a folding sketch of each width gives back: the table in docs/adr/0007. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "crdt/sketch_internal.h"

enum { CELLS_MAX = CRDT_SKETCH_ROWS * CRDT_SKETCH_CELLS, WORK = 4000000 };

static struct crdt_cell cells[CELLS_MAX];
static struct crdt_symbol symbols[CELLS_MAX];

/* Percent of `trials` random differences that cannot be decoded. */
static double failures(uint32_t width, unsigned differences, unsigned trials)
{
    static uint64_t n;
    unsigned failed = 0;
    for (unsigned t = 0; t < trials; t++) {
        memset(cells, 0, sizeof *cells * CRDT_SKETCH_ROWS * width);
        for (unsigned i = 0; i < differences; i++) {
            struct crdt_symbol s = {.id48 = hash_mix(++n) & 0xffffffffffff,
                                    .rkey = hash_mix(~n) & 0x7fffffff,
                                    .generation = n >> 8 & 0xfff};
            struct crdt_mark mark = crdt_symbol_mark(&s);
            for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++) {
                uint32_t at = crdt_mark_place(&mark, part) / (CRDT_SKETCH_CELLS / width);
                crdt_cells_add(&cells[part * width + at], &mark.cell, 1);
            }
        }
        failed += crdt_sketch_decode(cells, width, symbols, CELLS_MAX) != (int)differences;
    }
    return 100.0 * failed / trials;
}

int main(void)
{
    /* The share of the width that crdt_sketch_width() takes as the limit, and shares around it. */
    static const unsigned percent[] = {80, 90, 100, 104, 108, 112};
    printf("percent of decodes that fail, by differences in percent of what the width is for\n");
    printf("%6s %6s %8s", "width", "bytes", "for");
    for (unsigned i = 0; i < sizeof percent / sizeof *percent; i++)
        printf(" %7u%%", percent[i]);
    uint32_t width = 0;
    for (unsigned d = 1; d <= CELLS_MAX; d++) {
        if (crdt_sketch_width(d) == width)
            continue;
        width = crdt_sketch_width(d);
        if (width == 0)
            break;
        unsigned limit = d;
        while (crdt_sketch_width(limit + 1) == width)
            limit++;
        printf("\n%6u %6u %8u", width, CRDT_SKETCH_ROWS * width * CRDT_CELL_BYTES, limit);
        for (unsigned i = 0; i < sizeof percent / sizeof *percent; i++) {
            unsigned n = (limit * percent[i] + 50) / 100;
            printf(" %8.2f", failures(width, n, WORK / (n + CRDT_SKETCH_ROWS * width)));
        }
        (void)fflush(stdout);
    }
    printf("\n");
    return 0;
}
