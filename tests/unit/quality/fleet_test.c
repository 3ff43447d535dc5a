/* Several requests compete for the same thing at the same moment (docs/adr/0034). Many adapters of
 * skewed popularity compete for the few slots of engines. Bursts compete for engines, with several
 * routers, each aware only of its own requests. */
#include <math.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/report.h"
#include "tests/lib/test.h"

enum { ENGINES = 8, SLOTS = 16, ADAPTERS = 200, UNIT = 32 };

struct fleet {
    unsigned routers, engines, requests;
    unsigned burst;        /* requests at the same moment */
    double per_s;          /* requests */
    double skew;           /* adapters' popularity: Zipf's exponent; 0: no adapters */
    double load_s;         /* to load an adapter */
    double delay_ms, loss; /* between routers */
};

/* Prompts with nothing in common. */
static void workload_of(struct workload *out, const struct fleet *f)
{
    enum { TOKENS_MAX = 800 };
    struct prng prng;
    double weights[ADAPTERS], sum = 0, at_s = 0;
    prng_seed(&prng, 7);
    for (unsigned i = 0; i < ADAPTERS; i++)
        sum += weights[i] = pow(i + 1, -f->skew);
    uint32_t *units = malloc((size_t)f->requests * (TOKENS_MAX / UNIT) * sizeof *units), next = 0;
    struct talk *talks = calloc(f->requests, sizeof *talks);
    CHECK(units != NULL && talks != NULL);
    for (unsigned i = 0; i < f->requests; i++) {
        struct ask *a = calloc(1, sizeof *a);
        CHECK(a != NULL);
        if (i % f->burst == 0)
            at_s += -log(1 - prng_unit(&prng)) * f->burst / f->per_s;
        double draw = prng_unit(&prng) * sum;
        uint32_t adapter = 0;
        while (adapter + 1 < ADAPTERS && (draw -= weights[adapter]) > 0)
            adapter++;
        uint32_t tokens = 200 + i * 7919 % 600;
        a->adapter = f->skew > 0 ? adapter + 1 : 0;
        a->output_tokens = 20 + i * 31 % 80;
        a->prompt = (struct prompt){.unit_tokens = UNIT,
                                    .count = tokens / UNIT,
                                    .units = units + next,
                                    .tail_tokens = tokens % UNIT};
        for (uint32_t k = 0; k < tokens / UNIT; k++, next++)
            units[next] = next;
        talks[i] = (struct talk){.start_s = at_s, .count = 1, .asks = a};
    }
    *out = (struct workload){
        .open = true, .count = f->requests, .talks = talks, .units = units, .units_free = free};
}

static struct figures run(const struct fleet *f, const struct workload *w, struct outcome *out)
{
    const struct engine_spec engine = {
        .model = {.prefill_tokens_per_s = 8000,
                  .decode_base_ns = 15e6,
                  .decode_context_token_ns = 30,
                  .running_max = 64,
                  .block_tokens = 16,
                  .cache_blocks = 20000,
                  .adapters_max = f->skew > 0 ? SLOTS : 0,
                  .adapter_load_ns = (uint64_t)(f->load_s * 1e9)},
        .metrics = f->skew > 0 ? ENGINE_METRICS_ALL : ENGINE_METRICS_NONE,
    };
    struct quality_case c = case_plain(w, f->engines, f->routers, engine);
    c.delay_ms = f->delay_ms;
    c.loss = f->loss;
    play(&c, &chooser_cache_aware, out);
    assert_int_equal(out->count, f->requests);
    return figures_of(out, &c);
}

/* The most popular of 200 has a sixth of the requests, or more. */
static void adapters_are_rarely_reloaded(void **state)
{
    (void)state;
    const struct {
        struct fleet fleet;
        double most; /* most loads, relative to the best */
    } cases[] = {
        {{1, ENGINES, 10000, 1, 20, 1.0, 0.5, 1, 0}, 1.1}, /* busy */
        {{1, ENGINES, 6000, 1, 3, 1.2, 1, 1, 0}, 1.1},     /* nearly idle */
        {{4, ENGINES, 10000, 1, 3, 1.0, 0.5, 1, 0}, 1.2},  /* each router sees a quarter */
        {{4, ENGINES, 10000, 1, 20, 1.0, 0.5, 1, 0}, 1.2},
        /* Queues differ by more than a load: popular adapters were everywhere (1.46). With 60/s the
         * engines have to load more than they can, in two seeds of three. */
        {{4, ENGINES, 10000, 1, 54, 1.0, 0.3, 1, 0}, 1.25},
        {{8, ENGINES, 10000, 1, 40, 1.0, 0.3, 1, 0}, 1.2},
    };
    for (size_t i = 0; i < TEST_ROUNDS(ARRAY_LEN(cases)); i++) {
        const struct fleet *f = &cases[i].fleet;
        struct workload w;
        struct outcome o;
        workload_of(&w, f);
        struct figures r = run(f, &w, &o);
        double ratio =
            (double)o.adapter_loads / (double)workload_loads_at_best(&w, ENGINES * SLOTS);
        print_message("%u routers, %g/s, skew %g, %g s a load: %llu loads of %u, %.2f of the best; "
                      "first token after %.3f s\n",
                      f->routers, f->per_s, f->skew, f->load_s, (unsigned long long)o.adapter_loads,
                      f->requests, ratio, r.ttft_s);
        assert_true(ratio <= cases[i].most);
        outcome_free(&o);
        workload_free(&w);
    }
}

static struct figures burst(const struct fleet *f)
{
    struct workload w;
    struct outcome o;
    workload_of(&w, f);
    struct figures r = run(f, &w, &o);
    outcome_free(&o);
    workload_free(&w);
    return r;
}

/* First tokens come hardly later than with a single router, which sees everything, and no engine
 * has more work than the others. */
static void bursts_are_spread(void **state)
{
    (void)state;
    struct fleet f = {1, 64, 16000, 32, 400, 0, 0, 1, 0};
    struct figures alone = burst(&f);
    const struct {
        unsigned burst;
        double delay_ms, loss;
        double later; /* than with a single router */
    } cases[] = {{1, 20, 0, 1.2}, {32, 20, 0, 1.3}, {32, 500, 0.05, 1.3}};
    f.routers = 8;
    for (size_t i = 0; i < TEST_ROUNDS(ARRAY_LEN(cases)); i++) {
        f.burst = cases[i].burst;
        f.delay_ms = cases[i].delay_ms;
        f.loss = cases[i].loss;
        struct figures r = burst(&f);
        print_message("%u routers, bursts of %u, %g ms late, %g lost: first token after %.4f s "
                      "(one router: %.4f s), spread %.3f\n",
                      f.routers, f.burst, f.delay_ms, f.loss, r.ttft_s, alone.ttft_s, r.deviation);
        assert_true(r.ttft_s <= cases[i].later * alone.ttft_s);
        assert_true(r.deviation <= 0.06);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_are_rarely_reloaded),
        cmocka_unit_test(bursts_are_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
