#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/prng.h"
#include "crdt/sketch_internal.h"

enum { SYMBOLS_MAX = CRDT_SKETCH_ROWS * CRDT_SKETCH_CELLS };

static struct crdt_symbol symbol_of(uint64_t n)
{
    uint64_t a = hash_mix(n * 2 + 1);
    uint64_t b = hash_mix(n * 2 + 2);
    return (struct crdt_symbol){.id48 = a & 0xffffffffffff,
                                .rkey = b & 0x7fffffff,
                                .generation = b >> 32 & 0xfff,
                                .code = b >> 44 & 31};
}

static bool equal(const struct crdt_symbol *a, const struct crdt_symbol *b)
{
    return a->id48 == b->id48 && a->rkey == b->rkey && a->generation == b->generation &&
           a->code == b->code;
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = ((const struct crdt_symbol *)a)->id48;
    uint64_t y = ((const struct crdt_symbol *)b)->id48;
    return (x > y) - (x < y);
}

static struct crdt_sketch a, b;
static struct crdt_cell cells[SYMBOLS_MAX], other[SYMBOLS_MAX];
static struct crdt_symbol out[SYMBOLS_MAX], expected[20000];

/* Sketches a and b have `common` symbols; `differences` more are in only one of the sketches. */
static void fill(uint64_t seed, unsigned common, unsigned differences)
{
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    for (unsigned i = 0; i < common; i++) {
        struct crdt_symbol s = symbol_of(seed << 32 | i);
        crdt_sketch_flip(&a, &s, 1);
        crdt_sketch_flip(&b, &s, 1);
    }
    for (unsigned i = 0; i < differences; i++) {
        expected[i] = symbol_of(seed << 32 | (common + i));
        crdt_sketch_flip(i % 3 == 0 ? &a : &b, &expected[i], 1);
    }
    qsort(expected, differences, sizeof *expected, by_id);
}

/* The exchange between two routers. */
static int exchange(uint32_t width, uint32_t max)
{
    crdt_sketch_fold(&a, width, cells);
    crdt_sketch_fold(&b, width, other);
    crdt_cells_add(cells, other, CRDT_SKETCH_ROWS * width);
    return crdt_sketch_decode(cells, width, out, max);
}

static void test_symbols_survive_a_cell(void **state)
{
    (void)state;
    struct crdt_symbol extreme[] = {
        {0},
        {.id48 = 0xffffffffffff, .rkey = 0x7fffffff, .generation = 4095, .code = 31},
        {.id48 = 1},
        {.rkey = 0x8000},
        {.rkey = 0x10000},
        {.generation = 1},
        {.code = 1},
    };
    for (unsigned i = 0; i < sizeof extreme / sizeof *extreme; i++) {
        struct crdt_mark mark = crdt_symbol_mark(&extreme[i]);
        struct crdt_symbol back = crdt_cell_symbol(&mark.cell);
        assert_true(equal(&back, &extreme[i]));
        assert_true(mark.cell.high >> 56 == 0); /* 15 bytes on the wire */
        assert_true((mark.cell.low | mark.cell.high) != 0);
        for (unsigned j = 0; j < i; j++)
            assert_true(crdt_symbol_hash(&extreme[i]) != crdt_symbol_hash(&extreme[j]));
    }
    for (unsigned i = 0; i < 100000; i++) {
        struct crdt_symbol s = symbol_of(i);
        struct crdt_mark mark = crdt_symbol_mark(&s);
        struct crdt_symbol back = crdt_cell_symbol(&mark.cell);
        assert_true(equal(&back, &s));
    }
}

static void test_differences_are_decoded_whatever_is_common(void **state)
{
    (void)state;
    unsigned failed = 0;
    unsigned runs = 0;
    static const unsigned common[] = {0, 1, 1000, 100000};
    static const unsigned differences[] = {0, 1, 2, 3, 9, 20, 63, 180, 300, 850, 1000, 2000, 4500};
    for (unsigned c = 0; c < 4; c++) {
        for (unsigned d = 0; d < sizeof differences / sizeof *differences; d++) {
            unsigned n = differences[d];
            uint32_t width = crdt_sketch_width(n);
            assert_true(crdt_sketch_width_is_valid(width));
            fill(c * 100 + d, common[c], n);
            int got = exchange(width, SYMBOLS_MAX);
            runs++;
            if (got == ERR_LIMIT) { /* happens with a small chance at each width, docs/adr/0007 */
                failed++;
                continue;
            }
            assert_int_equal(got, n);
            qsort(out, n, sizeof *out, by_id);
            for (unsigned i = 0; i < n; i++)
                assert_true(equal(&out[i], &expected[i]));
        }
    }
    assert_true(failed * 20 <= runs);
    assert_int_equal(crdt_sketch_width(1000), 480); /* 21,600 bytes */
    assert_int_equal(crdt_sketch_width(1000000), 0);
}

/* The promised failure rates in the table of widths. */
static void test_widths_suffice(void **state)
{
    (void)state;
    static const unsigned differences[] = {1, 3, 9, 16, 36, 63, 96, 180, 300, 480, 690, 850, 1100};
    for (unsigned d = 0; d < sizeof differences / sizeof *differences; d++) {
        unsigned n = differences[d];
        uint32_t width = crdt_sketch_width(n);
        unsigned trials = 200000 / (n + 3 * width) + 100;
        unsigned failed = 0;
        for (unsigned t = 0; t < trials; t++) {
            memset(cells, 0, sizeof *cells * CRDT_SKETCH_ROWS * width);
            for (unsigned i = 0; i < n; i++) {
                struct crdt_symbol s = symbol_of(UINT64_C(1) << 60 | t << 16 | i);
                struct crdt_mark mark = crdt_symbol_mark(&s);
                for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++) {
                    uint32_t at = crdt_mark_place(&mark, part) / (CRDT_SKETCH_CELLS / width);
                    crdt_cells_add(&cells[part * width + at], &mark.cell, 1);
                }
            }
            failed += crdt_sketch_decode(cells, width, out, SYMBOLS_MAX) != (int)n;
        }
        assert_true(failed * 100 <= trials * 3);
    }
}

/* Folding a sketch gives the sketch of a smaller table, at every width. */
static void test_folding_is_linear_and_exact(void **state)
{
    (void)state;
    fill(7, 5000, 4);
    for (uint32_t width = 1; width <= CRDT_SKETCH_CELLS; width++) {
        if (!crdt_sketch_width_is_valid(width))
            continue;
        crdt_sketch_fold(&a, width, cells);
        memset(other, 0, sizeof other);
        for (unsigned part = 0; part < CRDT_SKETCH_ROWS; part++) {
            for (unsigned i = 0; i < CRDT_SKETCH_CELLS; i++)
                crdt_cells_add(&other[part * width + i * width / CRDT_SKETCH_CELLS],
                               &a.cell[part][i], 1);
        }
        assert_memory_equal(cells, other, sizeof *cells * CRDT_SKETCH_ROWS * width);
        if (width >= 40)
            assert_int_equal(exchange(width, 10), 4);
    }
    assert_false(crdt_sketch_width_is_valid(0));
    assert_false(crdt_sketch_width_is_valid(7));
    assert_false(crdt_sketch_width_is_valid(2 * CRDT_SKETCH_CELLS));
}

/* The sketches of two parts of a set add up to the set's sketch; removal undoes insertion. */
static void test_sketches_add_up(void **state)
{
    (void)state;
    static struct crdt_sketch whole, zero;
    fill(8, 0, 500); /* a and b are two parts of the same set */
    memset(&whole, 0, sizeof whole);
    for (unsigned i = 0; i < 500; i++)
        crdt_sketch_flip(&whole, &expected[i], 1);
    crdt_sketch_add(&a, &b);
    assert_memory_equal(&a, &whole, sizeof whole);
    for (unsigned i = 0; i < 500; i++)
        crdt_sketch_flip(&a, &expected[i], -1);
    assert_memory_equal(&a, &zero, sizeof zero);
}

static void test_the_estimate_is_close(void **state)
{
    (void)state;
    fill(9, 10000, 0);
    assert_int_equal(crdt_sketch_estimate(a.estimate, b.estimate), 0);
    static const unsigned differences[] = {1, 10, 100, 1000, 4000, 20000};
    for (unsigned d = 0; d < sizeof differences / sizeof *differences; d++) {
        unsigned n = differences[d];
        double error = 0;
        enum { RUNS = 100 };
        for (unsigned run = 0; run < RUNS; run++) {
            memset(&a, 0, sizeof a);
            memset(&b, 0, sizeof b);
            for (unsigned i = 0; i < n; i++) {
                struct crdt_symbol s = symbol_of((uint64_t)(d * RUNS + run) << 20 | i);
                crdt_sketch_flip(i % 2 == 0 ? &a : &b, &s, 1);
            }
            double off = (double)crdt_sketch_estimate(a.estimate, b.estimate) / n - 1;
            error += off * off / RUNS;
        }
        assert_true(error < 0.08 * 0.08); /* squared standard error; 1 / 256 by theory */
    }
    /* A difference beyond all counters is never called small. */
    fill(10, 0, 0);
    for (unsigned i = 0; i < 3000000; i++) {
        struct crdt_symbol s = symbol_of(UINT64_C(1) << 50 | i);
        crdt_sketch_flip(&a, &s, 1);
    }
    assert_int_equal(crdt_sketch_width(crdt_sketch_estimate(a.estimate, b.estimate)), 0);
}

static void test_too_many_differences_are_detected(void **state)
{
    (void)state;
    fill(11, 100, 600);
    assert_int_equal(exchange(160, SYMBOLS_MAX), ERR_LIMIT);
    assert_int_equal(exchange(480, 599), ERR_LIMIT);
    assert_int_equal(exchange(480, 600), 600);
    fill(12, 0, 20000);
    assert_int_equal(exchange(CRDT_SKETCH_CELLS, SYMBOLS_MAX), ERR_LIMIT);
}

/* Cells come from the network. */
static void test_decoding_of_forged_cells_terminates(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 5);
    for (unsigned run = 0; run < 300; run++) {
        uint32_t width = run % 2 == 0 ? 8 : 480;
        for (unsigned i = 0; i < CRDT_SKETCH_ROWS * width; i++) {
            struct crdt_symbol s = symbol_of(prng_below(&p, 4));
            cells[i] = crdt_symbol_mark(&s).cell; /* all seem pure; a removal makes others */
            if (run % 3 == 0)
                cells[i] = (struct crdt_cell){prng_next(&p), prng_next(&p)};
        }
        int got = crdt_sketch_decode(cells, width, out, SYMBOLS_MAX);
        assert_true(got == ERR_LIMIT || (got >= 0 && got <= (int)(CRDT_SKETCH_ROWS * width)));
    }
    /* A symbol in a single cell: decoding moves it from there to the two others, for ever. */
    memset(cells, 0, sizeof cells);
    struct crdt_symbol s = symbol_of(1);
    struct crdt_mark mark = crdt_symbol_mark(&s);
    cells[crdt_mark_place(&mark, 0)] = mark.cell;
    assert_int_equal(crdt_sketch_decode(cells, CRDT_SKETCH_CELLS, out, SYMBOLS_MAX), ERR_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols_survive_a_cell),
        cmocka_unit_test(test_differences_are_decoded_whatever_is_common),
        cmocka_unit_test(test_widths_suffice),
        cmocka_unit_test(test_folding_is_linear_and_exact),
        cmocka_unit_test(test_sketches_add_up),
        cmocka_unit_test(test_the_estimate_is_close),
        cmocka_unit_test(test_too_many_differences_are_detected),
        cmocka_unit_test(test_decoding_of_forged_cells_terminates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
