/* The blame for a failure, and the number of retries. */
#include "node/proxy/limit/verdict.h"

#include "base/check.h"
#include "node/admission/budget.h"
#include "tests/lib/test.h"

static void failures_are_blamed_by_status_and_message(void **state)
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

/* The words of vLLM 0.9 to 0.33, SGLang 0.4 to 0.5.23, llama.cpp and OpenAI. */
static void a_context_error_is_recognised_by_its_message(void **state)
{
    (void)state;
    static const char *const too_long[] = {
        "This model's maximum context length is 8192 tokens. However, your prompt contains at "
        "least "
        "8193 input tokens",
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
        "(4000 in the messages, 1000 in the completion).",
        "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context "
        "length is 8192 tokens and your request has 9 input tokens (9000 > 8192 - 9).",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
        "The engine prompt length 9000 exceeds the max_model_len 8192. Please reduce prompt.",
        "max_tokens=100000 cannot be greater than max_model_len=8192.",
        "The input (54011 tokens) is longer than the model's context length (8192 tokens).",
        "Requested token count exceeds the model's maximum context length of 8192 tokens.",
        "Input length (9000 tokens) exceeds the maximum allowed length (8186 tokens).",
        "max_completion_tokens is too large: 100000.This model supports at most 8192 completion",
        "the request exceeds the available context size, try increasing it",
    };
    static const char *const other[] = {
        "",
        "temperature must be non-negative",
        "max_tokens must be at least 1, got 0.",
        "As of transformers v4.44, default chat template is no longer allowed",
    };
    for (size_t i = 0; i < ARRAY_LEN(too_long); i++)
        assert_true(verdict_context_is_short(slice_of_cstr(too_long[i])));
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        assert_false(verdict_context_is_short(slice_of_cstr(other[i])));
}

static void an_unknown_adapter_is_recognised_by_its_message(void **state)
{
    (void)state;
    assert_true(verdict_adapter_is_unknown(
        SLICE("Got LoRA adapter that has never been loaded: x\nAll loaded adapters: ...")));
    assert_true(verdict_adapter_is_unknown(
        SLICE("The following requested LoRA adapters are not loaded: x")));
    assert_false(verdict_adapter_is_unknown(SLICE("The input is empty.")));
}

/* As in vLLM 0.32 and SGLang 0.5. */
static void an_unknown_rank_is_recognised_by_its_message(void **state)
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
    /* At rest the budget fills again, to the burst and no further. */
    assert_int_equal(retries_of(&b, 10000, 0), 0);
    assert_int_equal(retries_of(&b, 1, 100), BUDGET_BURST);
    budget_init(&b, 0);
    assert_int_equal(retries_of(&b, 1000, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_blamed_by_status_and_message),
        cmocka_unit_test(a_context_error_is_recognised_by_its_message),
        cmocka_unit_test(an_unknown_adapter_is_recognised_by_its_message),
        cmocka_unit_test(an_unknown_rank_is_recognised_by_its_message),
        cmocka_unit_test(reasons_have_names),
        cmocka_unit_test(a_budget_bounds_an_outage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
