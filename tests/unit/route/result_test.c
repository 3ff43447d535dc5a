#include "node/route/result.h"

#include "tests/lib/test.h"

static enum node_result whole(unsigned status)
{
    return node_result_of(&(struct node_ending){.status = status});
}

static void a_whole_answer_is_judged_by_its_status(void **state)
{
    (void)state;
    assert_int_equal(whole(200), NODE_RESULT_OK);
    assert_int_equal(whole(304), NODE_RESULT_OK);
    assert_int_equal(whole(400), NODE_RESULT_CLIENT_ERROR);
    assert_int_equal(whole(429), NODE_RESULT_CLIENT_ERROR); /* a key's limit, or an engine's */
    assert_int_equal(whole(499), NODE_RESULT_CLIENT_ERROR);
    assert_int_equal(whole(500), NODE_RESULT_STATUS_5XX);
    assert_int_equal(whole(503), NODE_RESULT_STATUS_5XX);
}

static void a_full_queue_is_a_failure_whatever_its_status(void **state)
{
    (void)state;
    struct node_ending e = {.status = 429, .queue_full = true};
    assert_int_equal(node_result_of(&e), NODE_RESULT_QUEUE_FULL);
    e.status = 503;
    assert_int_equal(node_result_of(&e), NODE_RESULT_QUEUE_FULL);
    e = (struct node_ending){
        .answer = NODE_ANSWER_ERROR_EVENT, .status = 200, .event_status = 429, .queue_full = true};
    assert_int_equal(node_result_of(&e), NODE_RESULT_QUEUE_FULL);
}

/* The status is 200: by status alone an outage is invisible. */
static void a_cut_answer_is_a_failure(void **state)
{
    (void)state;
    struct node_ending e = {.answer = NODE_ANSWER_CUT, .status = 200};
    assert_int_equal(node_result_of(&e), NODE_RESULT_CUT);
    e.status = 0; /* no answer at all */
    assert_int_equal(node_result_of(&e), NODE_RESULT_CUT);
    e.status = 500;
    assert_int_equal(node_result_of(&e), NODE_RESULT_STATUS_5XX);
    e.status = 404;
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_ERROR);
}

static void an_error_event_is_no_end(void **state)
{
    (void)state;
    struct node_ending e = {.answer = NODE_ANSWER_ERROR_EVENT, .status = 200};
    assert_int_equal(node_result_of(&e), NODE_RESULT_CUT);
    e.event_status = 500;
    assert_int_equal(node_result_of(&e), NODE_RESULT_CUT);
    e.event_status = 400; /* an error in the request, after the head was sent */
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_ERROR);
}

static void client_disconnects_are_no_failure(void **state)
{
    (void)state;
    struct node_ending e = {.answer = NODE_ANSWER_LEFT, .status = 200};
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_GONE);
    e.status = 502; /* not read by the client */
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_GONE);
    e = (struct node_ending){.answer = NODE_ANSWER_BY_CLIENT, .status = 200};
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_ERROR);
}

/* A method unknown to engines (501) or another version of HTTP (505) is no outage. */
static void a_mistake_of_the_client_is_no_failure(void **state)
{
    (void)state;
    struct node_ending e = {.status = 501, .invalid = true};
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_ERROR);
    e.status = 426;
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_ERROR);
    e.answer = NODE_ANSWER_LEFT;
    assert_int_equal(node_result_of(&e), NODE_RESULT_CLIENT_GONE);
}

static void an_unready_health_check_is_no_failure(void **state)
{
    (void)state;
    struct node_ending e = {.status = 503, .health = true};
    assert_int_equal(node_result_of(&e), NODE_RESULT_OK);
    e.answer = NODE_ANSWER_CUT;
    assert_int_equal(node_result_of(&e), NODE_RESULT_STATUS_5XX);
}

static void three_of_the_results_are_failures(void **state)
{
    (void)state;
    assert_false(node_result_failed(NODE_RESULT_OK));
    assert_false(node_result_failed(NODE_RESULT_CLIENT_ERROR));
    assert_false(node_result_failed(NODE_RESULT_CLIENT_GONE));
    assert_true(node_result_failed(NODE_RESULT_STATUS_5XX));
    assert_true(node_result_failed(NODE_RESULT_QUEUE_FULL));
    assert_true(node_result_failed(NODE_RESULT_CUT));
    for (unsigned i = 0; i < NODE_RESULTS; i++)
        assert_true(strlen(node_result_text((enum node_result)i)) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_answer_is_judged_by_its_status),
        cmocka_unit_test(a_full_queue_is_a_failure_whatever_its_status),
        cmocka_unit_test(a_cut_answer_is_a_failure),
        cmocka_unit_test(an_error_event_is_no_end),
        cmocka_unit_test(client_disconnects_are_no_failure),
        cmocka_unit_test(a_mistake_of_the_client_is_no_failure),
        cmocka_unit_test(an_unready_health_check_is_no_failure),
        cmocka_unit_test(three_of_the_results_are_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
