#include "base/body.h"
#include "base/err.h"
#include "base/prng.h"
#include "base/segment.h"
#include "tests/lib/test.h"

static void a_body_keeps_its_bytes_in_order(void **state)
{
    (void)state;
    struct segment_pool pool;
    segment_pool_init(&pool, 64 << 20);
    struct prng prng;
    prng_seed(&prng, 1);
    for (int round = 0; round < 20; round++) {
        struct body *b = body_new();
        static char sent[600000];
        size_t total = 0;
        while (total < sizeof sent) {
            char piece[70000];
            size_t n = 1 + prng_below(&prng, sizeof piece);
            if (n > sizeof sent - total)
                n = sizeof sent - total;
            for (size_t i = 0; i < n; i++)
                piece[i] = (char)prng_next(&prng);
            memcpy(sent + total, piece, n);
            total += n;
            assert_int_equal(body_append(&pool, b, slice_of(piece, n), n), 0);
        }
        assert_int_equal(b->bytes, total);
        size_t at = 0;
        for (const struct segment *s = b->first; s != NULL; s = s->next) {
            assert_memory_equal(s->data, sent + at, s->len);
            at += s->len;
        }
        assert_int_equal(at, total);
        body_unref(&pool, b);
    }
    assert_int_equal(pool.bytes, 0);
    segment_pool_free(&pool);
}

static void a_write_in_flight_keeps_the_body_alive(void **state)
{
    (void)state;
    struct segment_pool pool;
    segment_pool_init(&pool, 1 << 20);
    struct body *b = body_new();
    assert_int_equal(body_append(&pool, b, SLICE("hello"), 5), 0);
    struct body *write = body_ref(b);
    body_unref(&pool, b);
    assert_int_equal(pool.bytes, 4096);
    assert_memory_equal(write->first->data, "hello", 5);
    body_unref(&pool, write);
    assert_int_equal(pool.bytes, 0);
    segment_pool_free(&pool);
}

static void allocations_beyond_the_limit_are_refused_and_counted(void **state)
{
    (void)state;
    struct segment_pool pool;
    segment_pool_init(&pool, 20000);
    struct segment *a = segment_new(&pool, 10000); /* 16 KiB */
    assert_non_null(a);
    assert_null(segment_new(&pool, 10000));
    assert_int_equal(pool.refused, 1);
    segment_release(&pool, a);
    a = segment_new(&pool, 100);
    assert_non_null(a);
    assert_int_equal(a->cap, 4096);
    segment_release(&pool, a);
    segment_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_keeps_its_bytes_in_order),
        cmocka_unit_test(a_write_in_flight_keeps_the_body_alive),
        cmocka_unit_test(allocations_beyond_the_limit_are_refused_and_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
