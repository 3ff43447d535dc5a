/* Load not booked by any router, and missing room (foreign.h). */
#include "node/replica/foreign.h"

#include "node/replica/booking.h"
#include "node/replica/scrape.h"
#include "tests/lib/test.h"

struct reading {
    struct node_foreign foreign;
    struct node_load load;
    struct node_scrape scrape;
    uint64_t now_ms;
};

static struct reading reading_new(void)
{
    struct reading r = {.scrape = node_scrape_unknown, .now_ms = 1000};
    node_load_init(&r.load);
    r.scrape.generation_tokens = 0;
    r.scrape.cache_tokens = 100000;
    r.scrape.cache_usage = 0.1;
    return r;
}

static void read_gauges(struct reading *r, double running, double waiting, double made)
{
    struct node_scrape before = r->scrape;
    r->now_ms += 1000;
    r->scrape.running = running;
    r->scrape.waiting = waiting;
    r->scrape.generation_tokens += made;
    node_foreign_scraped(&r->foreign, &r->load, 0, &before, &r->scrape, r->now_ms);
}

static struct node_under_way all_of(const struct reading *r, uint64_t later_ms)
{
    return node_under_way(&r->foreign, &r->load, r->now_ms + later_ms);
}

/* A batch job of 12 requests at the engine itself, in addition to 3 requests of this router and 5
 * of others. */
static void load_from_batch_jobs_counts(void **state)
{
    (void)state;
    struct reading r = reading_new();
    r.load.requests = 3;
    r.load.remote.requests = 5;
    read_gauges(&r, 16, 4, 500);
    read_gauges(&r, 16, 4, 500);
    assert_true(all_of(&r, 0).requests == 20);
    assert_true(all_of(&r, 0).foreign_waiting == 4);
    r.load.requests = 4; /* a new own request leaves the others' */
    assert_true(all_of(&r, 0).requests == 21);
    read_gauges(&r, 9, 0, 500); /* the job is over */
    assert_true(all_of(&r, 0).requests == 9);
}

/* A request not yet given up by the engine, or not yet there, makes a difference for a moment. */
static void a_single_reading_changes_nothing(void **state)
{
    (void)state;
    struct reading r = reading_new();
    r.load.requests = 2;
    read_gauges(&r, 9, 0, 100);
    assert_true(all_of(&r, 0).requests == 2);
    read_gauges(&r, 2, 0, 100);
    assert_true(all_of(&r, 0).requests == 2);
    read_gauges(&r, 1, 0, 100);
    assert_true(all_of(&r, 0).requests == 2);
}

static void a_gauge_without_progress_counts_as_idle(void **state)
{
    (void)state;
    struct reading r = reading_new();
    for (unsigned i = 0; i < 5; i++)
        read_gauges(&r, 9, 0, 100);
    assert_true(all_of(&r, 0).requests == 9);
    read_gauges(&r, 9, 0, 0); /* a gauge not written since */
    assert_true(all_of(&r, 0).requests == 0);
}

static void foreign_load_fades_without_readings(void **state)
{
    (void)state;
    struct reading r = reading_new();
    read_gauges(&r, 8, 0, 100);
    read_gauges(&r, 8, 0, 100);
    assert_true(all_of(&r, 9000).requests == 8);
    assert_true(all_of(&r, 32000).requests == 4);
    assert_true(all_of(&r, 200000).requests < 0.1);
}

static double wait_s(const struct reading *r, double new_tokens)
{
    struct node_under_way all = all_of(r, 0);
    return node_foreign_wait_s(&r->foreign, &r->load, &all, new_tokens, 10, 100000);
}

/* No metric gives max_num_seqs. */
static void a_full_engine_costs_the_time_until_a_slot_is_free(void **state)
{
    (void)state;
    struct reading r = reading_new();
    r.load.requests = 8;
    for (unsigned i = 0; i < 10; i++)
        read_gauges(&r, 8, 0, 100);
    assert_true(wait_s(&r, 1000) == 0);
    r.load.requests = 11;
    for (unsigned i = 0; i < 3; i++)
        read_gauges(&r, 8, 3, 100);
    assert_true(wait_s(&r, 1000) == 0); /* perhaps others' prompts are computed */
    read_gauges(&r, 8, 3, 100);
    assert_true(wait_s(&r, 1000) == 5); /* four of eight have to end */
    r.load.requests = 7;
    assert_true(wait_s(&r, 1000) == 0);
    r.load.requests = 11;
    read_gauges(&r, 9, 2, 100); /* so 8 was no limit */
    assert_true(wait_s(&r, 1000) == 0);
}

static void full_memory_costs_the_time_until_some_is_free(void **state)
{
    (void)state;
    struct reading r = reading_new();
    r.load.requests = 4;
    r.load.context_tokens = 80000;
    r.scrape.cache_usage = 0.8;
    read_gauges(&r, 4, 0, 100);
    assert_true(wait_s(&r, 19000) == 0);
    assert_true(wait_s(&r, 40000) == 2.5); /* a quarter of the tokens in use */
    r.load.context_tokens = 100000;        /* 1 more request since */
    assert_true(wait_s(&r, 20000) == 2);
    r.load.context_tokens = 320000; /* shared four times: no more than in a reading */
    read_gauges(&r, 4, 0, 100);
    assert_true(wait_s(&r, 19000) == 0);
    r.scrape.cache_usage = -1; /* an engine without this metric */
    read_gauges(&r, 4, 0, 100);
    assert_true(wait_s(&r, 90000) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load_from_batch_jobs_counts),
        cmocka_unit_test(a_single_reading_changes_nothing),
        cmocka_unit_test(a_gauge_without_progress_counts_as_idle),
        cmocka_unit_test(foreign_load_fades_without_readings),
        cmocka_unit_test(a_full_engine_costs_the_time_until_a_slot_is_free),
        cmocka_unit_test(full_memory_costs_the_time_until_some_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
