#include "tests/lib/test.h"

/* The simulator's files are no library: the tests include them whole. */
#include "tests/engine-sim/cache.c" // NOLINT(bugprone-suspicious-include)

#include "base/prng.h"

/* The same cache in the plainest form: an array of blocks with the time at which they became free.
 * Blocks freed first are reused first, nameless blocks before all others. */
enum { NAIVE_BLOCKS = 24, HELD_MAX = 6, REQUEST_BLOCKS_MAX = 8 };

struct naive_block {
    uint64_t name; /* 0: none */
    unsigned holders;
    int64_t freed_at;
};

struct naive {
    struct naive_block blocks[NAIVE_BLOCKS];
    int64_t newest;
    int64_t oldest;
};

static int naive_find(const struct naive *n, uint64_t name)
{
    for (int i = 0; i < NAIVE_BLOCKS; i++)
        if (n->blocks[i].name == name)
            return i;
    return -1;
}

static size_t naive_match(const struct naive *n, const uint64_t *names, size_t count)
{
    size_t i = 0;
    while (i < count && naive_find(n, names[i]) >= 0)
        i++;
    return i;
}

static int naive_oldest(const struct naive *n)
{
    int oldest = -1;
    for (int i = 0; i < NAIVE_BLOCKS; i++)
        if (n->blocks[i].holders == 0 &&
            (oldest < 0 || n->blocks[i].freed_at < n->blocks[oldest].freed_at))
            oldest = i;
    return oldest;
}

static int naive_take(struct naive *n, const uint64_t *names, size_t hits, size_t fresh,
                      uint32_t *blocks)
{
    struct naive before = *n;
    for (size_t i = 0; i < hits; i++) {
        blocks[i] = (uint32_t)naive_find(n, names[i]);
        n->blocks[blocks[i]].holders++;
    }
    for (size_t i = hits; i < hits + fresh; i++) {
        int oldest = naive_oldest(n);
        if (oldest < 0) {
            *n = before;
            return ERR_FULL;
        }
        blocks[i] = (uint32_t)oldest;
        n->blocks[oldest].name = 0;
        n->blocks[oldest].holders = 1;
    }
    return 0;
}

static void naive_release(struct naive *n, const uint32_t *blocks, size_t count)
{
    while (count-- > 0) {
        struct naive_block *b = &n->blocks[blocks[count]];
        if (--b->holders == 0)
            b->freed_at = b->name != 0 ? ++n->newest : --n->oldest;
    }
}

struct held {
    uint32_t blocks[REQUEST_BLOCKS_MAX];
    uint32_t naive_blocks[REQUEST_BLOCKS_MAX];
    size_t count;
};

static void test_against_naive_model(void **state)
{
    (void)state;
    struct prng random;
    prng_seed(&random, 1);
    struct sim_cache *c = sim_cache_create(NAIVE_BLOCKS);
    struct naive n = {.newest = 0};
    struct held held[HELD_MAX] = {{.count = 0}};
    size_t hits_seen = 0;
    size_t full_seen = 0;
    for (int i = 0; i < NAIVE_BLOCKS; i++)
        n.blocks[i].freed_at = ++n.newest;

    for (unsigned step = 0; step < 50000; step++) {
        struct held *h = &held[prng_below(&random, HELD_MAX)];
        if (h->count > 0) {
            sim_cache_release(c, h->blocks, h->count);
            naive_release(&n, h->naive_blocks, h->count);
            h->count = 0;
        } else {
            /* A few families of prompts with shared prefixes. */
            uint64_t names[REQUEST_BLOCKS_MAX];
            uint64_t family = prng_below(&random, 6);
            size_t count = 1 + prng_below(&random, REQUEST_BLOCKS_MAX);
            for (size_t i = 0; i < count; i++)
                names[i] = 1 + family * 100 + i;
            size_t hits = sim_cache_match(c, names, count);
            assert_int_equal(hits, naive_match(&n, names, count));
            int err = sim_cache_take(c, names, hits, count - hits, h->blocks);
            assert_int_equal(err, naive_take(&n, names, hits, count - hits, h->naive_blocks));
            full_seen += err != 0;
            hits_seen += hits;
            if (err == 0) {
                h->count = count;
                size_t named = prng_below(&random, count + 1);
                for (size_t i = hits; i < named; i++) {
                    (void)sim_cache_name(c, h->blocks[i], names[i]);
                    if (naive_find(&n, names[i]) < 0)
                        n.blocks[h->naive_blocks[i]].name = names[i];
                }
            }
        }
        sim_cache_check(c);
    }
    assert_true(hits_seen > 10000);
    assert_true(full_seen > 500);
    sim_cache_destroy(c);
}

static void test_the_last_block_is_evicted_first(void **state)
{
    (void)state;
    struct sim_cache *c = sim_cache_create(4);
    const uint64_t names[] = {11, 12, 13};
    uint32_t blocks[3] = {0};
    uint32_t other[2] = {0};
    assert_int_equal(sim_cache_take(c, names, 0, 3, blocks), 0);
    for (int i = 0; i < 3; i++)
        (void)sim_cache_name(c, blocks[i], names[i]);
    sim_cache_release(c, blocks, 3);
    assert_int_equal(sim_cache_used(c), 0);
    assert_int_equal(sim_cache_take(c, NULL, 0, 2, other), 0);
    assert_int_equal(sim_cache_match(c, names, 3), 2);
    sim_cache_release(c, other, 2);
    sim_cache_reset(c);
    assert_int_equal(sim_cache_match(c, names, 3), 0);
    sim_cache_check(c);
    sim_cache_destroy(c);
}

/* Fills the cache with blocks of the given names, a request each, and releases them. */
static void fill(struct sim_cache *c, const uint64_t *names, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t block;
        size_t known = sim_cache_match(c, &names[i], 1);
        assert_int_equal(sim_cache_take(c, &names[i], known, 1 - known, &block), 0);
        (void)sim_cache_name(c, block, names[i]);
        sim_cache_release(c, &block, 1);
        sim_cache_check(c);
    }
}

static void test_lfu(void **state)
{
    (void)state;
    struct sim_cache *c = sim_cache_create(4);
    sim_cache_evicts(c, SIM_EVICT_LFU);
    fill(c, (const uint64_t[]){1, 1, 2, 2, 2, 3, 4, 4}, 8);
    fill(c, (const uint64_t[]){5}, 1); /* replaces 3, the only block used just once */
    for (uint64_t name = 1; name <= 5; name++)
        assert_int_equal(sim_cache_match(c, &name, 1), name != 3);
    fill(c, (const uint64_t[]){5, 5, 6}, 3); /* replaces the older of 1 and 4, used twice */
    for (uint64_t name = 1; name <= 6; name++)
        assert_int_equal(sim_cache_match(c, &name, 1), name != 1 && name != 3);
    sim_cache_destroy(c);
}

/* Any block may be evicted, except a block in use; a block without a name goes first. */
static void test_random(void **state)
{
    enum { BLOCKS = 8, ROUNDS = 400 };
    const uint64_t held_name = 1;
    uint32_t held, nameless;
    unsigned survived = 0;
    (void)state;
    struct sim_cache *c = sim_cache_create(BLOCKS);
    sim_cache_evicts(c, SIM_EVICT_RANDOM);
    assert_int_equal(sim_cache_take(c, NULL, 0, 1, &held), 0);
    assert_true(sim_cache_name(c, held, held_name));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        uint64_t last = 100 + i - 1;
        fill(c, (const uint64_t[]){100 + i}, 1);
        survived += i > 0 && sim_cache_match(c, &last, 1);
        assert_int_equal(sim_cache_match(c, &held_name, 1), 1);
    }
    assert_true(survived < ROUNDS - 1 && survived > ROUNDS / 2);
    assert_int_equal(sim_cache_named(c), BLOCKS);
    assert_int_equal(sim_cache_take(c, NULL, 0, 1, &nameless), 0);
    sim_cache_release(c, &nameless, 1);
    assert_int_equal(sim_cache_named(c), BLOCKS - 1);
    fill(c, (const uint64_t[]){50}, 1);
    assert_int_equal(sim_cache_named(c), BLOCKS);
    sim_cache_release(c, &held, 1);
    sim_cache_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_naive_model),
        cmocka_unit_test(test_the_last_block_is_evicted_first),
        cmocka_unit_test(test_lfu),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
