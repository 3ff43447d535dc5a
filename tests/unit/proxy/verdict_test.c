/* Whose failure it is, and how many retries there are. */
#include "node/proxy/limit/verdict.h"

#include "base/check.h"
#include "node/proxy/limit/budget.h"
#include "tests/lib/test.h"

static void whose_failure_it_is(void **state)
{
    (void)state;
    static const struct {
        unsigned status;
        const char *message;
        enum verdict verdict;
        enum node_outcome outcome;
        bool body;
    } cases[] = {
        {400, "", VERDICT_CLIENT, NODE_OUTCOME_REJECTED, false},
        {404, "", VERDICT_CLIENT, NODE_OUTCOME_REJECTED, false},
        {422, "503: no", VERDICT_CLIENT, NODE_OUTCOME_REJECTED, false},
        {400, "503: The request queue is full.", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_BUSY,
         false},
        {429, "", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_BUSY, false},
        {503, "", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_BUSY, false},
        {529, "", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_BUSY, false},
        {502, "", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_ERROR, false},
        {504, "", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_ERROR, false},
        {501, "", VERDICT_CLIENT, NODE_OUTCOME_ENGINE_ERROR, false},
        {505, "", VERDICT_CLIENT, NODE_OUTCOME_ENGINE_ERROR, false},
        {500, "boom", VERDICT_IN_DOUBT, NODE_OUTCOME_ENGINE_ERROR, true},
        {599, "boom", VERDICT_IN_DOUBT, NODE_OUTCOME_ENGINE_ERROR, true},
        {500, "cannot schedule new futures after shutdown", VERDICT_ELSEWHERE,
         NODE_OUTCOME_ENGINE_ERROR, true},
        {500, "EngineCore encountered an issue. See", VERDICT_ELSEWHERE, NODE_OUTCOME_ENGINE_ERROR,
         true},
        {500, "vllm.v1.engine.exceptions.EngineDeadError", VERDICT_ELSEWHERE,
         NODE_OUTCOME_ENGINE_ERROR, true},
        {400, "bad value: EngineDeadError", VERDICT_CLIENT, NODE_OUTCOME_REJECTED, false},
        {0, "an event without a status", VERDICT_IN_DOUBT, NODE_OUTCOME_ENGINE_ERROR, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct verdict_judgement j =
            verdict_of_answer(cases[i].status, slice_of_cstr(cases[i].message));
        assert_int_equal(j.verdict, cases[i].verdict);
        assert_int_equal(j.outcome, cases[i].outcome);
        assert_int_equal(verdict_needs_body(cases[i].status, false), cases[i].body);
    }
    assert_true(verdict_needs_body(400, true));
}

/* As vLLM 0.32 and SGLang 0.5 say it. */
static void a_rank_that_is_not_there_is_known_by_its_words(void **state)
{
    (void)state;
    assert_true(verdict_rank_is_unknown(SLICE("data_parallel_rank 1 is out of range [0, 1).")));
    assert_true(verdict_rank_is_unknown(SLICE("routed_dp_rank=1 out of range [0, 1)")));
    assert_false(verdict_rank_is_unknown(SLICE("temperature is out of range [0, 2]")));
    assert_false(verdict_rank_is_unknown(SLICE("")));
}

static void reasons_have_names(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RETRY_REASONS; i++)
        assert_true(strlen(verdict_reason_name((enum verdict_reason)i)) > 0);
}

static unsigned retries_of(struct budget *b, unsigned requests, unsigned wanted_each)
{
    unsigned made = 0;
    for (unsigned i = 0; i < requests; i++) {
        budget_fill(b);
        for (unsigned k = 0; k < wanted_each && budget_has(b); k++, made++)
            budget_take(b);
    }
    return made;
}

/* Whatever fails, 1,500 requests become at most 1.2 times as many. */
static void a_budget_bounds_an_outage(void **state)
{
    (void)state;
    struct budget b;
    budget_init(&b, 0.1);
    unsigned made = retries_of(&b, 1500, 2);
    assert_in_range(made, 165, 170);
    /* At rest it fills again, to the burst and no further. */
    assert_int_equal(retries_of(&b, 10000, 0), 0);
    assert_int_equal(retries_of(&b, 1, 100), BUDGET_BURST);
    budget_init(&b, 0);
    assert_int_equal(retries_of(&b, 1000, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_failure_it_is),
        cmocka_unit_test(a_rank_that_is_not_there_is_known_by_its_words),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(a_budget_bounds_an_outage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
