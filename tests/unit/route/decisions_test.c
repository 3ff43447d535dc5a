#include "node/route/decisions.h"

#include "base/check.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

static const uint64_t UNIX_MS = 1700000000000;

static struct node_decisions *kept_by(struct node_router *r)
{
    struct node_decisions *d;
    assert_int_equal(node_decisions_create(&d), ERR_OK);
    node_router_decisions(r, d);
    return d;
}

static struct node_decisions_query asks(enum node_decisions_order order, uint64_t beyond,
                                        unsigned count, bool ended)
{
    return (struct node_decisions_query){
        .order = order, .beyond = beyond, .count = count, .ended = ended};
}

static json_t *read(const struct node_decisions *d, const struct node_router *r,
                    struct node_decisions_query q, uint64_t *change)
{
    struct buf out;
    buf_init(&out, 0);
    struct json_writer w = json_writer_of(&out);
    uint64_t told = node_decisions_write(d, r, &q, START_MS, UNIX_MS, &w);
    assert_int_equal(json_writer_finish(&w), ERR_OK);
    json_t *array = json_loadb(out.at, out.len, 0, NULL);
    assert_non_null(array);
    buf_free(&out);
    if (change)
        *change = told;
    return array;
}

static int64_t number(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The ids that match the query, as "3 4 5". */
static void expect_ids(const struct node_decisions *d, const struct node_router *r,
                       struct node_decisions_query q, const char *expected)
{
    char ids[256] = "";
    json_t *array = read(d, r, q, NULL);
    for (size_t i = 0; i < json_array_size(array); i++)
        (void)snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%d", i > 0 ? " " : "",
                       (int)number(json_array_get(array, i), "id"));
    assert_string_equal(ids, expected);
    json_decref(array);
}

static void a_decision_is_kept_with_its_costs_and_result(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    struct node_decisions *d = kept_by(r);
    done(r, choose(r, prompt(1, 4000), START_MS), START_MS);
    struct node_request request = request_of(prompt(1, 4000));
    request.id = SLICE("req-7");
    request.model = SLICE("llama");
    request.attempt = 2;
    struct node_decision made;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS + 10, &made), ERR_OK);
    assert_int_equal(made.number, 2);
    json_t *array = read(d, r, asks(NODE_DECISIONS_ONE, 2, 1, false), NULL);
    json_t *e = json_array_get(array, 0);
    assert_string_equal(text(e, "request"), "req-7");
    assert_string_equal(text(e, "model"), "llama");
    assert_string_equal(text(e, "policy"), "cache_aware");
    assert_string_equal(text(e, "why"), "cached");
    assert_non_null(strstr(text(e, "why_text"), "; no other holds any"));
    assert_int_equal(number(e, "attempt"), 2);
    assert_int_equal(number(e, "candidates"), 3);
    assert_int_equal(number(e, "cached_tokens"), made.cached_tokens);
    assert_true(made.cached_tokens > 3000);
    assert_slice_equal(node_router_replica_name(r, made.replica), text(e, "choice"));
    assert_true(json_is_null(json_object_get(e, "outcome")));
    json_t *rows = json_object_get(e, "replicas");
    assert_int_equal(json_array_size(rows), 3);
    double least = 0;
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(rows, i);
        double cost = json_number_value(json_object_get(row, "cost_s"));
        double terms = json_number_value(json_object_get(row, "queue_s")) +
                       json_number_value(json_object_get(row, "uncached_s"));
        assert_true(cost >= least && cost + 1e-5 >= terms);
        least = cost;
    }
    assert_string_equal(text(json_array_get(rows, 0), "replica"), text(e, "choice"));
    json_decref(array);

    struct node_decision_end end = {NODE_OUTCOME_OK, 200, START_MS + 60, 4000, 3900, 12};
    node_decisions_end(d, 2, &end, START_MS + 100);
    node_decisions_end(d, 2, &(struct node_decision_end){.status = 500}, START_MS + 200);
    node_decisions_end(d, 99, &end, START_MS + 100); /* never was */
    assert_true(node_decisions_ended(d, 2) && !node_decisions_ended(d, 1));
    array = read(d, r, asks(NODE_DECISIONS_ONE, 2, 1, false), NULL);
    const json_t *outcome = json_object_get(json_array_get(array, 0), "outcome");
    assert_string_equal(text(outcome, "end"), "ok");
    assert_int_equal(number(outcome, "status"), 200);
    assert_int_equal(number(outcome, "ttft_ms"), 50);
    assert_int_equal(number(outcome, "ms"), 90);
    assert_int_equal(number(outcome, "cached_tokens"), 3900);
    assert_int_equal(number(json_array_get(array, 0), "time_ms"), UNIX_MS + 10);
    assert_string_equal(text(outcome, "result"), "retried"); /* until another result comes */
    json_decref(array);
    node_decisions_result(d, 2, NODE_RESULT_CUT);
    node_decisions_result(d, 2, NODE_RESULT_OK); /* it has a result already */
    node_decisions_result(d, 1, NODE_RESULT_OK); /* under way */
    array = read(d, r, asks(NODE_DECISIONS_ONE, 2, 1, false), NULL);
    outcome = json_object_get(json_array_get(array, 0), "outcome");
    assert_string_equal(text(outcome, "result"), "cut");
    json_decref(array);
    assert_false(node_decisions_ended(d, 1));
    done(r, made, START_MS + 100);
    node_decisions_check(d);
    alone_destroy(r);
    node_decisions_destroy(d);
}

static void decisions_are_queried_by_number_or_change(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decisions *d = kept_by(r);
    struct node_decision_end end = {NODE_OUTCOME_OK, 200, 0, -1, -1, -1};
    for (unsigned i = 0; i < 5; i++)
        done(r, choose(r, prompt(i, 100), START_MS), START_MS);
    node_decisions_end(d, 2, &end, START_MS);
    expect_ids(d, r, asks(NODE_DECISIONS_LAST, 0, 3, false), "3 4 5");
    expect_ids(d, r, asks(NODE_DECISIONS_LAST, 0, 9, true), "2");
    expect_ids(d, r, asks(NODE_DECISIONS_AFTER, 1, 2, false), "2 3");
    expect_ids(d, r, asks(NODE_DECISIONS_AFTER, 5, 2, false), "");
    expect_ids(d, r, asks(NODE_DECISIONS_CHANGES, 3, 9, false), "4 5 2");
    expect_ids(d, r, asks(NODE_DECISIONS_ONE, 4, 9, false), "4");
    expect_ids(d, r, asks(NODE_DECISIONS_ONE, 4, 9, true), "");
    static const uint64_t none[] = {0, 6, UINT64_MAX}; /* the last decision never ended */
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        expect_ids(d, r, asks(NODE_DECISIONS_ONE, none[i], 9, false), "");
    expect_ids(d, r, asks(NODE_DECISIONS_AFTER, UINT64_MAX, 9, false), "");
    /* Step by step: each change comes once. */
    uint64_t change = 0;
    json_t *array;
    unsigned told = 0;
    for (;;) {
        array = read(d, r, asks(NODE_DECISIONS_CHANGES, change, 2, false), &change);
        unsigned count = (unsigned)json_array_size(array);
        json_decref(array);
        told += count;
        if (count == 0)
            break;
    }
    assert_int_equal(told, 5);
    assert_int_equal(change, 6);
    node_decisions_end(d, 1, &end, START_MS);
    expect_ids(d, r, asks(NODE_DECISIONS_CHANGES, change, 9, true), "1");
    alone_destroy(r);
    node_decisions_destroy(d);
}

/* A flood: the ring is full, has a sample, and gives the total. */
static void a_flood_is_sampled_and_retries_are_kept(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decisions *d = kept_by(r);
    for (unsigned i = 0; i < 1000; i++)
        done(r, choose(r, prompt(i, 100), START_MS), START_MS);
    assert_int_equal(node_decisions_made(d), 1000);
    assert_int_equal(node_decisions_newest(d), NODE_DECISIONS_BURST);
    struct node_request request = request_of(prompt(1, 100));
    struct node_decision made;
    request.attempt = 2;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &made), ERR_OK);
    assert_int_equal(made.number, NODE_DECISIONS_BURST + 1);
    done(r, made, START_MS);
    for (unsigned s = 1; s <= 10; s++) {
        for (unsigned i = 0; i < 200; i++)
            done(r, choose(r, prompt(i, 100), START_MS + s * 1000), START_MS + s * 1000);
    }
    assert_int_equal(node_decisions_newest(d),
                     NODE_DECISIONS_BURST + 1 + 10 * NODE_DECISIONS_PER_S);
    json_t *array = read(d, r, asks(NODE_DECISIONS_AFTER, 0, 10000, false), NULL);
    assert_int_equal(json_array_size(array), NODE_DECISIONS_MAX);
    json_decref(array);
    node_decisions_check(d);
    alone_destroy(r);
    node_decisions_destroy(d);
}

/* From many replicas the cheapest are kept, and the chosen replica, which may not be among them. */
static void a_decision_keeps_the_cheapest_and_the_chosen(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 20);
    struct node_decisions *d = kept_by(r);
    struct node_request request = request_of(prompt(1, 100));
    struct node_size size;
    struct node_need need = node_router_need(r, &request);
    assert_int_equal(node_router_evaluate(r, &request, &need, NULL, true, START_MS, &size), ERR_OK);
    (void)node_router_choose(r, &request, r->policy);
    for (unsigned i = 0; i < r->candidate_count; i++)
        r->candidates[i].cost.total_s = 100 - i; /* the last is the cheapest */
    struct node_decision made = {0};
    node_router_decision_keep(r, &request, &size, r->policy, 3, START_MS, &made);
    json_t *array = read(d, r, asks(NODE_DECISIONS_LAST, 0, 1, false), NULL);
    const json_t *rows = json_object_get(json_array_get(array, 0), "replicas");
    assert_int_equal(json_array_size(rows), NODE_DECISION_ROWS_MAX);
    assert_string_equal(text(json_array_get(rows, 0), "replica"), "host-19:8000");
    assert_string_equal(text(json_array_get(rows, 6), "replica"), "host-13:8000");
    assert_string_equal(text(json_array_get(rows, 7), "replica"), "host-3:8000");
    assert_string_equal(text(json_array_get(array, 0), "choice"), "host-3:8000");
    json_decref(array);
    alone_destroy(r);
    node_decisions_destroy(d);
}

static void policies_without_costs_and_long_names_are_kept(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 2);
    struct node_decisions *d = kept_by(r);
    char name[200];
    memset(name, 'x', sizeof name);
    struct node_request request = request_of(prompt(1, 100));
    request.id = slice_of(name, sizeof name);
    request.model = slice_of("\xff\"", 2); /* no UTF-8 */
    struct node_decision made;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &made), ERR_OK);
    done(r, made, START_MS);
    json_t *array = read(d, r, asks(NODE_DECISIONS_LAST, 0, 1, false), NULL);
    const json_t *e = json_array_get(array, 0);
    assert_int_equal(strlen(text(e, "request")), NODE_DECISION_ID_BYTES + 3);
    assert_string_equal(text(e, "model"), "\xef\xbf\xbd\"");
    const json_t *row = json_array_get(json_object_get(e, "replicas"), 0);
    assert_true(json_is_null(json_object_get(row, "cost_s")));
    json_decref(array);
    alone_destroy(r);
    node_decisions_destroy(d);
}

/* Decision 1 is under way. 2 went well, for another model. 3 was retried, 4 cut, 5 left by the
 * client. 6 got the 429 of a full engine, 7 a 400. */
static void filters_combine(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decisions *d = kept_by(r);
    static const struct {
        enum node_outcome outcome;
        enum node_result result; /* NODE_RESULTS: another attempt has it */
        uint64_t first_token_ms;
    } ends[] = {{NODE_OUTCOME_OK, NODE_RESULT_OK, 900},
                {NODE_OUTCOME_BROKEN, NODE_RESULTS, 0},
                {NODE_OUTCOME_BROKEN, NODE_RESULT_CUT, 100},
                {NODE_OUTCOME_CLIENT_GONE, NODE_RESULT_CLIENT_GONE, 0},
                {NODE_OUTCOME_ENGINE_BUSY, NODE_RESULT_CLIENT_ERROR, 900},
                {NODE_OUTCOME_REJECTED, NODE_RESULT_CLIENT_ERROR, 900}};
    uint64_t begun = START_MS - 5000; /* read() asks at START_MS */
    for (unsigned i = 0; i < 7; i++) {
        struct node_request request = request_of(prompt(i, 100));
        struct node_decision made;
        request.model = i == 1 ? SLICE("llama") : SLICE("qwen");
        request.alias = i == 1 ? SLICE("fast") : SLICE("");
        assert_int_equal(node_router_place(r, &request, NULL, begun, &made), ERR_OK);
        if (i == 0)
            continue;
        struct node_decision_end end = {
            ends[i - 1].outcome, 200, begun + ends[i - 1].first_token_ms, -1, -1, -1};
        if (ends[i - 1].first_token_ms == 0)
            end.first_token_ms = 0;
        node_decisions_end(d, made.number, &end, begun + 1000);
        if (ends[i - 1].result != NODE_RESULTS)
            node_decisions_result(d, made.number, ends[i - 1].result);
    }
    struct node_decisions_query q = asks(NODE_DECISIONS_LAST, 0, 9, false);
    q.failed = true;
    expect_ids(d, r, q, "3 4 6");
    q.count = 1;
    expect_ids(d, r, q, "6");
    q.count = 9;
    q.slow_ms = 500;
    expect_ids(d, r, q, "3 6"); /* 4 had a first token before the cut */
    q.failed = false;
    expect_ids(d, r, q, "1 2 3 5 6 7");
    q.slow_ms = 999;
    expect_ids(d, r, q, "1 3 5");
    q.slow_ms = 4999;
    expect_ids(d, r, q, "1");
    q.slow_ms = 0;
    q.model = SLICE("llama");
    expect_ids(d, r, q, "2");
    q.model = SLICE("fast"); /* the model's alias */
    expect_ids(d, r, q, "2");
    q.model = SLICE("");
    q.has_reason = true;
    q.reason = NODE_REASON_CACHED;
    expect_ids(d, r, q, "");
    q.reason = NODE_REASON_COLD;
    expect_ids(d, r, q, "1 2 3 4 5 6 7");
    q.replica = SLICE("host-7:8000");
    expect_ids(d, r, q, "");
    json_t *array = read(d, r, asks(NODE_DECISIONS_ONE, 3, 1, false), NULL);
    char chosen[64];
    (void)snprintf(chosen, sizeof chosen, "%s", text(json_array_get(array, 0), "choice"));
    json_decref(array);
    q.replica = slice_of_cstr(chosen);
    q.order = NODE_DECISIONS_AFTER;
    q.beyond = 2;
    q.count = 1;
    expect_ids(d, r, q, "3");
    alone_destroy(r);
    node_decisions_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decision_is_kept_with_its_costs_and_result),
        cmocka_unit_test(decisions_are_queried_by_number_or_change),
        cmocka_unit_test(filters_combine),
        cmocka_unit_test(a_flood_is_sampled_and_retries_are_kept),
        cmocka_unit_test(a_decision_keeps_the_cheapest_and_the_chosen),
        cmocka_unit_test(policies_without_costs_and_long_names_are_kept),
    };
    return cmocka_run_group_tests_name("decisions", tests, NULL, NULL);
}
