/* KV-cache events through real routers, in virtual time. One router reads an engine and another
 * stands by; the reader's reports reach the others, and their beliefs about checkpoints are
 * right. */
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/chooser.h"
#include "tests/lib/test.h"

enum { ENGINES = 3, ASKS = 240 };

struct fleet {
    unsigned routers, past; /* 1 conversation in `past` bypasses the routers; 0: none */
    uint32_t block;
    enum sim_evict evict;
    unsigned groups;
};

static struct events_seen play_fleet(const struct fleet *f)
{
    struct workload w;
    struct outcome o;
    workload_tenants(&w, 7, ASKS);
    for (unsigned i = 0; f->past > 0 && i < w.count; i += f->past) {
        for (unsigned j = 0; j < w.talks[i].count; j++)
            w.talks[i].asks[j].bypasses = (uint8_t)(1 + i % ENGINES);
    }
    struct engine_spec spec = engine_plain(1, 12000, f->block);
    spec.publishes = "vllm-0.24";
    spec.groups = f->groups;
    spec.model.evict = f->evict;
    struct quality_case c = case_plain(&w, ENGINES, f->routers, spec);
    c.events = true;
    c.belief_each = 2;
    c.events_delay_ms = 1;
    c.pace = 4;
    play(&c, &chooser_cache_aware, &o);
    struct events_seen seen = o.events;
    assert_true(o.gossip_bytes > 0 || f->routers == 1);
    outcome_free(&o);
    workload_free(&w);
    return seen;
}

static double right_share(const struct events_seen *s)
{
    uint64_t all = s->right + s->unsure + s->wrong_gone + s->wrong_held;
    assert_true(all > 200);
    return 100.0 * (double)s->right / (double)all;
}

/* If traffic bypasses the routers, perhaps no answer has reported a text of an engine. With random
 * eviction, second copies outlast the first copies, which leaves doubt. */
static void test_beliefs_about_checkpoints_are_right(void **state)
{
    static const struct {
        struct fleet fleet;
        double right_least;
    } cases[] = {
        {{.routers = 1, .block = 16}, 99.5},
        {{.routers = 1, .block = 64, .past = 4}, 99},
        {{.routers = 4, .block = 32, .past = 4}, 95},
        {{.routers = 3, .block = 16, .evict = SIM_EVICT_RANDOM}, 96},
        {{.routers = 1, .block = 16, .evict = SIM_EVICT_LFU}, 99.5},
        {{.routers = 3, .block = 16, .groups = 3}, 99},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct events_seen seen = play_fleet(&cases[i].fleet);
        assert_true(right_share(&seen) >= cases[i].right_least);
        assert_int_equal(seen.certain_wrong, 0);
        assert_int_equal(seen.shed, 0);
    }
}

/* Each engine has a reader and a standby, and no other router has a subscription. */
static void test_each_engine_has_a_reader_and_a_standby(void **state)
{
    static const struct {
        unsigned routers, readers;
    } cases[] = {{1, 1}, {2, 2}, {16, 2}};
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct events_seen seen =
            play_fleet(&(struct fleet){.routers = cases[i].routers, .block = 16});
        assert_int_equal(seen.feeds, cases[i].readers * ENGINES);
        assert_int_equal(seen.live, cases[i].readers * ENGINES);
        assert_int_equal(seen.speak, ENGINES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_beliefs_about_checkpoints_are_right),
        cmocka_unit_test(test_each_engine_has_a_reader_and_a_standby),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
