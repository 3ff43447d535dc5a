/* For how long what a cache holds is wanted again: an agent's tools take a second, a chat's user
 * thinks for minutes. */
#include "tests/lib/router_help.h"

static double horizon(const struct node_router *r)
{
    return metric(r, "grapevine_reuse_horizon_seconds");
}

/* Conversations with so many turns, so far apart. */
static double after_turns(unsigned turns, unsigned every_ms)
{
    struct node_router *r = make("cache_aware", 1);
    uint64_t now = START_MS;
    assert_near(horizon(r), 120, 0.01);
    for (unsigned turn = 0; turn < turns; turn++) {
        for (unsigned user = 0; user < 5; user++)
            done(r, choose(r, prompt(user, 1000 + 10 * turn), now), now);
        now += every_ms;
        node_router_tick(r, now);
    }
    double learned = horizon(r);
    node_router_check(r);
    alone_destroy(r);
    return learned;
}

static void it_is_some_times_the_age_of_reuse(void **state)
{
    (void)state;
    assert_near(after_turns(100, 60000), 240, 0.25);
    assert_near(after_turns(100, 10000), 40, 0.25);
    assert_in_range(after_turns(100, 500), 2, 10);
}

/* The setting counts as twenty prompts: five of them, at twice its age, are a fifth of all. */
static void few_prompts_are_not_believed_alone(void **state)
{
    (void)state;
    assert_near(after_turns(2, 60000), 144, 0.05);
}

static void it_has_bounds(void **state)
{
    (void)state;
    assert_near(after_turns(100, 1800000), 3600, 0.001);
    assert_near(after_turns(1000, 50), 2, 0.001);
}

/* Prompts that find nothing say nothing of it. */
static void what_is_new_teaches_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t now = START_MS + i * 1000ull;
        done(r, choose(r, prompt(1000 + i, 1000), now), now);
        node_router_tick(r, now);
    }
    assert_near(horizon(r), 120, 0.01);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_some_times_the_age_of_reuse),
        cmocka_unit_test(few_prompts_are_not_believed_alone),
        cmocka_unit_test(it_has_bounds),
        cmocka_unit_test(what_is_new_teaches_nothing),
    };
    return cmocka_run_group_tests_name("route/horizon", tests, NULL, NULL);
}
