/* The sums of node/replica/evidence.c, with this machine's vectors and with every machine's
 * vectors: equal to the last bit. */
#include "tests/lib/test.h"

#include "base/prng.h"

/* The same code again, as on a machine without wide vectors. */
#define WIDE_NONE
#define node_reach_sum     narrow_reach_sum
#define node_evidence_init narrow_evidence_init
#define node_evidence_add  narrow_evidence_add
#define node_evidence_fade narrow_evidence_fade
#define node_evidence_size narrow_evidence_size
#include "node/replica/evidence.c" // NOLINT(bugprone-suspicious-include)
#undef node_reach_sum
#undef node_evidence_add
#undef node_evidence_fade

void node_reach_sum(const struct node_reach *reach, double times, float sums[NODE_SIZES]);
void node_evidence_add(struct node_evidence *e, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight, double head_start);
void node_evidence_fade(struct node_evidence *e, double seconds, double head_start);

/* All NaNs count as equal. */
static void floats_equal(const float *a, const float *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(isnan(a[i]) && isnan(b[i])))
            assert_memory_equal(&a[i], &b[i], sizeof *a);
}

static void evidence_equal(const struct node_evidence *a, const struct node_evidence *b)
{
    floats_equal(a->expected2, b->expected2, NODE_SIZES);
    floats_equal(a->product, b->product, NODE_SIZES);
    floats_equal(&a->cached2, &b->cached2, 2);
    assert_true(a->size == b->size || (isnan(a->size) && isnan(b->size)));
    assert_true(a->weight == b->weight || (isnan(a->weight) && isnan(b->weight)));
    assert_true(a->share == b->share || (isnan(a->share) && isnan(b->share)));
}

/* Values not from engines and clocks, but possible after a fault: edges among ordinary numbers. */
static float drawn(struct prng *prng, double most)
{
    static const float edges[] = {0, -0.0F, 1, 1e-45F, 1e-38F, 3e38F, -1, INFINITY, NAN};
    if (prng_below(prng, 20) == 0)
        return edges[prng_below(prng, sizeof edges / sizeof edges[0])];
    return (float)(prng_unit(prng) * most);
}

static void sums_over_parts(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 1);
    for (unsigned round = 0; round < 20000; round++) {
        struct node_reach reach = {.count = (unsigned)prng_below(&prng, NODE_PARTS_MAX + 1)};
        float wide[NODE_SIZES], narrow[NODE_SIZES];
        for (unsigned i = 0; i < reach.count; i++) {
            float from = drawn(&prng, 70), width = drawn(&prng, 2);
            reach.parts[i] = (struct node_part){drawn(&prng, 100000), from,
                                                round % 7 == 0 ? from : from + width};
        }
        for (unsigned i = 0; i < NODE_SIZES; i++)
            wide[i] = narrow[i] = drawn(&prng, 1000);
        double times = prng_below(&prng, 2) != 0 ? 1 : -1;
        node_reach_sum(&reach, times, wide);
        narrow_reach_sum(&reach, times, narrow);
        floats_equal(wide, narrow, NODE_SIZES);
    }
}

static void evidence_over_requests(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 2);
    for (unsigned round = 0; round < 300; round++) {
        struct node_evidence wide, narrow;
        bool odd = round % 3 == 0; /* few rounds have edges, because edges stay in the sums */
        narrow_evidence_init(&wide);
        narrow_evidence_init(&narrow);
        for (unsigned request = 0; request < 60; request++) {
            float expected[NODE_SIZES];
            double prompt = 1 + prng_unit(&prng) * 100000;
            for (unsigned i = 0; i < NODE_SIZES; i++)
                expected[i] = odd ? drawn(&prng, prompt) : (float)(prng_unit(&prng) * prompt);
            double cached = prng_unit(&prng) * prompt, weight = prng_unit(&prng) * 3;
            node_evidence_add(&wide, expected, cached, prompt, weight, RULE(FEW));
            narrow_evidence_add(&narrow, expected, cached, prompt, weight, RULE(FEW));
            evidence_equal(&wide, &narrow);
            double seconds = prng_unit(&prng) * (request % 10 == 0 ? 20000 : 60);
            node_evidence_fade(&wide, seconds, RULE(FEW));
            narrow_evidence_fade(&narrow, seconds, RULE(FEW));
            evidence_equal(&wide, &narrow);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_parts),
        cmocka_unit_test(evidence_over_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
