#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/prng.h"

static void test_keyed(void **state)
{
    (void)state;
    struct hash_secret a;
    struct hash_secret b;
    hash_secret_from_seed(&a, 1);
    hash_secret_from_seed(&b, 2);
    assert_memory_not_equal(a.bytes, b.bytes, sizeof a.bytes);
    /* XXH3 uses other code above 16, 128 and 240 bytes; each must use the secret. */
    static const size_t lengths[] = {0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 1024, 5000};
    static char text[5000];
    memset(text, 'x', sizeof text);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i];
        assert_true(hash64(&a, text, n) == hash64(&a, text, n));
        assert_true(hash64(&a, text, n) != hash64(&b, text, n));
        struct hash128 one = hash128(&a, text, n);
        struct hash128 two = hash128(&b, text, n);
        assert_true(one.low != two.low && one.high != two.high);
    }
}

static void test_every_byte_counts(void **state)
{
    (void)state;
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 3);
    for (size_t n = 1; n < 600; n += 7) {
        char text[600];
        memset(text, 'a', sizeof text);
        uint64_t before = hash64(&secret, text, n);
        for (size_t i = 0; i < n; i++) {
            text[i] ^= 1;
            assert_true(hash64(&secret, text, n) != before);
            text[i] ^= 1;
        }
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void test_mix_is_one_to_one(void **state)
{
    (void)state;
    enum { N = 100000 };
    uint64_t *out = malloc(N * sizeof *out);
    assert_non_null(out);
    unsigned high_bits = 0;
    for (uint64_t i = 0; i < N; i++) {
        out[i] = hash_mix(i);
        high_bits += (unsigned)(out[i] >> 63);
    }
    qsort(out, N, sizeof *out, compare);
    for (unsigned i = 1; i < N; i++)
        assert_true(out[i] != out[i - 1]);
    assert_in_range(high_bits, N * 49 / 100, N * 51 / 100);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keyed),
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_mix_is_one_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
