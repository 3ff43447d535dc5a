/* Empty lists, failing lists, and the time for which they change nothing. */
#include "node/discover/discover_internal.h"
#include "tests/lib/discover_host.h"

static void an_empty_list_counts_after_a_while(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    told("use a:1");
    uint64_t from = now;
    for (; now < from + DISCOVER_EMPTY_MS; at(now + 5000)) {
        assert_int_equal(list(s, ""), ERR_OK);
        told("");
    }
    told("drain a:1"); /* the tick drains it, because a watch may be silent */
    said("discovered discovery_empty discovered ");
    at(now + DISCOVER_KEEP_MS);
    told("forget a:1");
}

static void a_non_empty_list_restarts_the_wait(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    assert_int_equal(list(s, ""), ERR_OK);
    at(now + DISCOVER_EMPTY_MS - 1);
    assert_int_equal(list(s, "a:1"), ERR_OK);
    at(now + DISCOVER_EMPTY_MS);
    assert_int_equal(list(s, ""), ERR_OK);
    at(now + DISCOVER_EMPTY_MS - 1);
    discover_failed(d, s, "timeout", now); /* a failure too: lists must stay empty */
    at(now + 1);
    assert_int_equal(list(s, ""), ERR_OK);
    at(now + DISCOVER_EMPTY_MS - 1);
    told("use a:1");
    at(now + 1);
    told("drain a:1");
}

/* A watch breaks once and goes on: no list comes, because nothing changed. */
static void an_empty_list_still_counts_after_a_failure(void **state)
{
    (void)state;
    unsigned s = source("kubernetes", "ns/x");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    assert_int_equal(list(s, ""), ERR_OK);
    at(now + 5000);
    discover_failed(d, s, "connection refused", now);
    at(now + 2 * DISCOVER_EMPTY_MS); /* a failure changes nothing, as long as it lasts */
    discover_same(d, s, now);
    at(now + DISCOVER_EMPTY_MS - 1);
    discover_same(d, s, now);
    told("use a:1");
    at(now + 1);
    told("drain a:1");
    /* A refused list does not count as empty. */
    assert_int_equal(list(s, "b:1"), ERR_OK);
    assert_int_equal(list(s, ""), ERR_OK);
    struct discover_entry nameless = {0};
    assert_int_equal(discover_list(d, s, &nameless, 1, now), ERR_RANGE);
    discover_same(d, s, now);
    at(now + 2 * DISCOVER_EMPTY_MS);
    told("use b:1; forget a:1");
}

static void an_unchanged_list_ends_the_warning(void **state)
{
    (void)state;
    unsigned s = source("kubernetes", "ns/x");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    discover_hint(d, s, "no EndpointSlice");
    assert_int_equal(list(s, ""), ERR_OK);
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    discover_sources_write(d, now, NULL, NULL, &w);
    assert_int_equal(json_writer_finish(&w), ERR_OK);
    assert_slice_equal(buf_slice(&out),
                       "[{\"kind\":\"kubernetes\",\"name\":\"ns/x\",\"entries\":1,\"draining\":0,"
                       "\"failures\":0,\"age_s\":0,\"error\":null,\"lacks\":null,\"empty\":\"no "
                       "EndpointSlice\",\"removed\":[]}]");
    buf_free(&out);
    assert_int_equal(list(s, "a:1"), ERR_OK);
    assert_int_equal(list(s, "a:1"), ERR_OK);
    said("discovered discovery_empty discovery_works ");
    assert_false(discover_says_empty(&d->sources[s]));
    told("use a:1");
}

static void the_first_list_may_be_empty(void **state)
{
    (void)state;
    unsigned s = source("file", "x");
    const struct discover_origin *origin = &d->sources[s];
    assert_false(origin->listed);
    assert_int_equal(list(s, ""), ERR_OK);
    assert_true(origin->listed && origin->list.count == 0 && discover_says_empty(origin));
    told("");
    said("discovery_empty "); /* the source's name may be wrong */
    assert_int_equal(list(s, ""), ERR_OK);
    said(""); /* once */
    assert_int_equal(list(s, "a:1"), ERR_OK);
    said("discovered ");
    assert_false(discover_says_empty(origin));
}

static void a_failing_source_changes_nothing(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    discover_failed(d, s, "timeout", now);
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK);
    told("use a:1; use b:1");
    said("discovery_failed discovery_works discovered ");
    for (unsigned i = 0; i < 100; i++) {
        discover_failed(d, s, "timeout", now);
        at(now + DISCOVER_KEEP_MS);
    }
    discover_failed(d, s, "refused", now);
    told("");
    said("discovery_failed discovery_failed "); /* once for each reason */
    const struct discover_origin *origin = &d->sources[s];
    assert_true(origin->failing && origin->failures == 102 && origin->list.count == 2);
    discover_same(d, s, now);
    said("discovery_works ");
    assert_true(!origin->failing && origin->success_ms == now);
    told("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_empty_list_counts_after_a_while),
        TEST(a_non_empty_list_restarts_the_wait),
        TEST(an_empty_list_still_counts_after_a_failure),
        TEST(an_unchanged_list_ends_the_warning),
        TEST(the_first_list_may_be_empty),
        TEST(a_failing_source_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
