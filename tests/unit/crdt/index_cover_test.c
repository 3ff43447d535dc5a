/* The cached chunks of a prompt, at any replica and at any place in the prompt. */
#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/index_help.h"

enum { REPLICAS = 40, CHUNKS = 60, NOW = 100, TTL = 50 };

static const uint8_t codes[] = {0, 1, 3, 5};

static struct chain_point chunk(unsigned n)
{
    return (struct chain_point){.id = id_of(n), .code = codes[n % 4]};
}

/* Compares with a plain table; chunks with a single holder, with many (sets), and expired. */
static void a_cover_finds_cached_chunks(void **state)
{
    (void)state;
    static uint32_t held[CHUNKS][REPLICAS];
    static uint32_t floors[REPLICAS], blocks[REPLICAS], generations[REPLICAS];
    static struct chain chain;
    struct crdt_index *x = make(8 << 20, REPLICAS, TTL, NOW);
    for (unsigned r = 0; r < REPLICAS; r++)
        crdt_index_forget(x, r, 1000 + r);
    struct prng prng;
    prng_seed(&prng, 3);
    for (unsigned i = 0; i < CHUNKS; i++) {
        for (unsigned r = 0; r < REPLICAS; r++) {
            if (prng_below(&prng, CHUNKS) > i) /* nearly all replicas hold the first chunks */
                continue;
            held[i][r] = NOW - (uint32_t)prng_below(&prng, 10);
            struct chain_point p = chunk(i);
            assert_int_equal(crdt_index_observe(x, p.id, r, p.code, held[i][r]), 1);
        }
    }
    for (unsigned r = 0; r < REPLICAS; r++)
        floors[r] = r % 3 == 0 ? NOW - 5 : 0;
    for (unsigned round = 0; round < 50; round++) {
        uint32_t want[REPLICAS] = {0}, oldest[REPLICAS] = {0};
        chain = (struct chain){.chunks = true, .length = (uint16_t)(1 + prng_below(&prng, 40))};
        for (unsigned i = 0; i < chain.length; i++) {
            unsigned n = (unsigned)prng_below(&prng, CHUNKS);
            chain.points[i] = chunk(n);
            for (unsigned r = 0; r < REPLICAS; r++) {
                uint32_t generation = held[n][r];
                if (generation == 0 || generation < floors[r])
                    continue;
                oldest[r] = want[r] == 0 || generation < oldest[r] ? generation : oldest[r];
                want[r] += checkpoint_weight(chain.points[i].code);
            }
        }
        crdt_index_cover(x, &chain, floors, REPLICAS, blocks, generations);
        assert_memory_equal(blocks, want, sizeof want);
        assert_memory_equal(generations, oldest, sizeof oldest);
    }
    crdt_index_forget(x, 1, 5000);
    crdt_index_cover(x, &chain, NULL, REPLICAS, blocks, generations);
    assert_int_equal(blocks[1], 0);
    crdt_index_destroy(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cover_finds_cached_chunks)};
    return cmocka_run_group_tests_name("crdt/index_cover", tests, NULL, NULL);
}
