/* Findings against a replica with several models, and rejections for a single model. */
#include "node/replica/reject.h"
#include "tests/lib/test.h"

enum { CHAT = NODE_REJECT_CHAT * NODE_REJECT_API, ADAPTER = 11, BASE = 12, OTHER = 13 };

static struct node_reject j;
static uint64_t now;

static int begin(void **state)
{
    (void)state;
    node_reject_init(&j);
    now = 1000;
    return 0;
}

/* True: from now on the replica is avoided for the model, and was not before. */
static bool contradicted(uint64_t model)
{
    now += 2;
    struct node_rejection x = {.kind = CHAT, .model = model, .status = 400, .sent_ms = now - 1};
    return node_reject_contradicted(&j, &x, now);
}

static bool avoids(uint64_t model)
{
    return node_reject_avoids(&j, CHAT, model, true, now);
}

static void a_finding_about_a_model_concerns_it_alone(void **state)
{
    (void)state;
    assert_true(contradicted(ADAPTER));
    assert_true(avoids(ADAPTER) && avoids(0)); /* 0: perhaps any model */
    assert_false(avoids(BASE));
    char room[NODE_REJECT_TEXT_BYTES];
    assert_string_equal(node_reject_text(400, j.kinds, true, room),
                        "answers 400 to chat requests for one of its models that its peers accept");
    /* The other routers would avoid the replica for all models. */
    assert_int_equal(node_reject_report(&j, now), 0);
}

static void a_request_for_another_model_is_no_trial(void **state)
{
    (void)state;
    assert_true(contradicted(ADAPTER));
    now += NODE_REJECT_BACKOFF_MS;
    assert_false(avoids(ADAPTER));
    node_reject_sent(&j, CHAT, BASE, now);
    assert_false(node_reject_accepted(&j, CHAT, BASE, now));
    assert_false(avoids(ADAPTER));
    assert_true(node_reject_kinds(&j) != 0);
    assert_false(node_reject_proven(&j, CHAT));
    node_reject_sent(&j, CHAT, ADAPTER, now);
    assert_true(avoids(ADAPTER));
    assert_true(node_reject_accepted(&j, CHAT, ADAPTER, now));
    assert_false(node_reject_kinds(&j) != 0);
}

/* A rejection for a model without a finding is judged as before any finding. */
static void other_models_rejections_are_judged_normally(void **state)
{
    (void)state;
    struct node_reject_prior bad = {.bad = 0.9, .pays = 0};
    struct node_rejection base = {.kind = CHAT, .model = BASE, .status = 400};
    struct node_rejection adapter = {.kind = CHAT, .model = ADAPTER, .status = 400};
    assert_true(contradicted(ADAPTER));
    assert_true(node_reject_guilt(&j, &base, &bad) >= NODE_REJECT_WORTH);
    (void)node_reject_accepted(&j, CHAT, BASE, now);
    assert_true(node_reject_guilt(&j, &base, &bad) < NODE_REJECT_WORTH);
    assert_int_equal(node_reject_guilt(&j, &adapter, &bad), NODE_REJECT_CAUGHT);
}

static void findings_about_two_models_concern_all(void **state)
{
    (void)state;
    assert_true(contradicted(ADAPTER));
    assert_false(contradicted(ADAPTER));
    assert_false(avoids(OTHER));
    assert_true(contradicted(BASE));
    assert_true(avoids(OTHER) && avoids(ADAPTER));
    assert_true(node_reject_report(&j, now) != 0);
    assert_false(contradicted(ADAPTER));
    assert_true(avoids(OTHER));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_finding_about_a_model_concerns_it_alone, begin),
        cmocka_unit_test_setup(a_request_for_another_model_is_no_trial, begin),
        cmocka_unit_test_setup(other_models_rejections_are_judged_normally, begin),
        cmocka_unit_test_setup(findings_about_two_models_concern_all, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
