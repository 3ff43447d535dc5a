/* An engine's metrics, read by two routers for a third. */
#include "node/replica/replica.h"

#include "crdt/learned.h"
#include "tests/lib/test.h"

enum { INTERVAL_MS = 1000 };

static struct node_replica make(unsigned others, unsigned ahead)
{
    static const struct node_replica_config config = {
        .prefill_tokens_per_s = 1000, .decode_step_ms = 20, .bytes_per_token = 4};
    struct node_replica k;
    node_replica_init(&k, SLICE("r"), NODE_ENGINE_VLLM, 1, &config);
    k.turn.others = others;
    k.turn.ahead = ahead;
    return k;
}

static struct node_scrape scrape_of(double tokens, double started_s)
{
    struct node_scrape s = node_scrape_unknown;
    s.running = 3;
    s.waiting = 0;
    s.cache_usage = 0.25;
    s.prefix_queries = tokens;
    s.prefix_hits = tokens / 2;
    s.prompt_tokens = tokens + 1;
    s.generation_tokens = tokens + 2;
    s.start_time_s = started_s;
    s.sleeping = 0;
    return s;
}

static struct crdt_learned reads(struct node_replica *k, struct node_scrape *s, uint64_t now)
{
    struct crdt_learned out = {0};
    node_scraped_own(k, s, now);
    (void)node_replica_scraped(k, s, now);
    node_scraped_report(k, now, &out);
    return out;
}

static void two_routers_read_for_all(void **state)
{
    (void)state;
    uint64_t now = 100000;
    struct node_replica first = make(2, 0), second = make(2, 1), third = make(2, 2);
    assert_true(node_scraped_due(&third, INTERVAL_MS, now)); /* knows nothing */
    struct node_scrape s = scrape_of(1000, 1700000000.125);
    struct crdt_learned told = reads(&first, &s, now);
    node_scraped_hear(&third, 1, &told, false, now);
    assert_memory_equal(&third.scrape, &first.scrape, sizeof s);
    assert_true(node_scraped_due(&first, INTERVAL_MS, now));
    assert_true(node_scraped_due(&second, INTERVAL_MS, now));
    assert_false(node_scraped_due(&third, INTERVAL_MS, now));
    struct crdt_learned nothing = {0};
    node_scraped_report(&third, now, &nothing);
    assert_int_equal(nothing.scrapes, 0); /* read nothing */
    assert_false(node_scraped_due(&third, INTERVAL_MS, now + NODE_SCRAPE_STALE_MS - 1));
    assert_true(node_scraped_due(&third, INTERVAL_MS, now + NODE_SCRAPE_STALE_MS));
    assert_false(node_scraped_due(&third, 10000, now + 29999));
}

/* A repeated report is no news: otherwise figures of a hanging router would stay fresh. */
static void a_report_counts_once(void **state)
{
    (void)state;
    uint64_t now = 100000;
    struct node_replica first = make(2, 0), third = make(2, 2);
    struct node_scrape s = scrape_of(1000, 1700000000);
    struct crdt_learned told = reads(&first, &s, now);
    for (; now < 110000; now += 500)
        node_scraped_hear(&third, 1, &told, false, now);
    assert_true(node_scraped_due(&third, INTERVAL_MS, now));
}

/* SGLang counts tokens when a request ends. Only the reading router sees the schedulers' counts in
 * between; the third router learns of each move. */
static void work_seen_by_the_reader_counts_for_all(void **state)
{
    (void)state;
    uint64_t now = 100000;
    struct node_replica first = make(2, 0), third = make(2, 2);
    struct node_scrape s = scrape_of(1000, 1700000000);
    for (unsigned i = 0; i < 5; i++, now += 1000) {
        s.work.value[10] = 100 + i; /* sglang:realtime_tokens_total */
        struct crdt_learned told = reads(&first, &s, now);
        assert_int_equal(told.engine_work, 0); /* with all other learned values: learned.c */
        told.engine_work = first.cache.sums.work;
        node_scraped_hear(&third, 1, &told, false, now + 100);
    }
    assert_int_equal(first.cache.sums.work, 4);
    assert_int_equal(third.cache.sums.work, 0); /* has seen nothing itself */
    assert_int_equal(third.signs.moved_ms, now - 900);
    assert_true(node_signs_tells_steps(&third));
    struct crdt_learned told = reads(&first, &s, now); /* stands still */
    told.engine_work = first.cache.sums.work;
    node_scraped_hear(&third, 1, &told, false, now + 100);
    assert_int_equal(third.signs.moved_ms, now - 900);
    assert_int_equal(third.signs.still_ms, now + 100);
    told.engine_work = 900; /* another router's: only changes count */
    told.scrapes = 77;
    node_scraped_hear(&third, 2, &told, false, now + 200);
    assert_int_equal(third.signs.moved_ms, now - 900);
}

/* The router scraped by itself once, for lack of reports or because own requests got no token. For
 * a while the reading counts: an older report would look like a later token. */
static void own_readings_count_for_a_while(void **state)
{
    (void)state;
    uint64_t now = 100000;
    struct node_replica first = make(2, 0), third = make(2, 2);
    struct node_scrape s = scrape_of(1000, 1700000000);
    (void)reads(&third, &s, now);
    s = scrape_of(2000, 1700000000);
    struct crdt_learned told = reads(&first, &s, now + 100);
    node_scraped_hear(&third, 1, &told, false, now + 100);
    assert_true(third.scrape.prefix_queries == 1000);
    assert_int_equal(third.signs.moved_ms, 0);
    now += NODE_SCRAPE_STALE_MS;
    node_scraped_hear(&third, 1, &told, false, now);
    assert_true(third.scrape.prefix_queries == 2000);
    third.turn.ahead = 1; /* now `third` reads the metrics, too */
    s = scrape_of(3000, 1700000000);
    (void)reads(&third, &s, now + 200);
    told = reads(&first, &s, now + 300);
    told.engine_queries = 2501;
    node_scraped_hear(&third, 1, &told, false, now + 300);
    assert_true(third.scrape.prefix_queries == 3000);
}

static void a_change_of_reader_is_no_restart(void **state)
{
    (void)state;
    uint64_t now = 100000;
    struct node_replica first = make(2, 0), second = make(2, 1), third = make(2, 2);
    struct node_scrape s = scrape_of(1000, 1700000000);
    struct crdt_learned told = reads(&first, &s, now);
    node_scraped_hear(&third, 1, &told, false, now);
    s = scrape_of(900, 1700000000); /* read a little earlier, and received later */
    told = reads(&second, &s, now);
    node_scraped_hear(&third, 2, &told, true, now + 1000);
    assert_int_equal(third.restarts, 0);
    assert_true(third.asleep);
    s = scrape_of(10, 1700000500);
    told = reads(&second, &s, now + 2000);
    node_scraped_hear(&third, 2, &told, false, now + 2000);
    assert_int_equal(third.restarts, 1);
    assert_false(third.asleep);
    assert_true(third.scrape.prefix_queries == 10);
}

/* A packet of an answer was lost and repeated; meanwhile the router used another router's reports.
 * The late answer was once taken for a restarted engine's, and all routers forgot the engine's
 * prefixes. */
static void a_late_answer_is_no_restart(void **state)
{
    (void)state;
    uint64_t now = 100000;
    struct node_replica first = make(2, 0), second = make(2, 1);
    struct node_scrape s = scrape_of(1000, 1700000000);
    (void)reads(&first, &s, now);
    s = scrape_of(1500, 1700000000);
    struct crdt_learned told = reads(&second, &s, now + 4000);
    node_scraped_hear(&first, 2, &told, false, now + 4000);
    assert_true(first.scrape.prefix_queries == 1500);
    s = scrape_of(1100, 1700000000);
    (void)reads(&first, &s, now + 4500);
    assert_int_equal(first.restarts, 0);
    s = scrape_of(1600, 1700000000);
    (void)reads(&first, &s, now + 5000);
    assert_int_equal(first.restarts, 0);
    told = reads(&second, &s, now + 9000);
    node_scraped_hear(&first, 2, &told, false, now + 9000);
    s = scrape_of(10, 1700000500);
    (void)reads(&first, &s, now + 9100);
    assert_int_equal(first.restarts, 1);
}

static void nothing_is_reported_if_all_routers_read(void **state)
{
    (void)state;
    struct node_replica only = make(1, 0);
    struct node_scrape s = scrape_of(1000, 1700000000);
    assert_int_equal(reads(&only, &s, 100000).scrapes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_routers_read_for_all),
        cmocka_unit_test(a_report_counts_once),
        cmocka_unit_test(work_seen_by_the_reader_counts_for_all),
        cmocka_unit_test(own_readings_count_for_a_while),
        cmocka_unit_test(a_change_of_reader_is_no_restart),
        cmocka_unit_test(a_late_answer_is_no_restart),
        cmocka_unit_test(nothing_is_reported_if_all_routers_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
