#include "tests/lib/failmalloc.h"

#include "node/trace/trace.h"
#include "tests/lib/test.h"

static void request(struct trace *t, uint64_t now_ms)
{
    const struct trace_attempt attempt = {
        .method = "POST", .replica = SLICE("e:1"), .server = SLICE("e:1"), .reason = "load"};
    const struct trace_end end = {
        .method = "GET", .path = SLICE("/\x01"), .reason = "", .how = "done"};
    struct trace_request *r = trace_begin(t, NULL, now_ms);
    if (r == NULL)
        return;
    trace_event(r, SLICE("queued"), now_ms);
    trace_event(r, SLICE("chosen"), now_ms);
    trace_attempt_sent(r, NULL, now_ms);
    trace_attempt_ended(r, &attempt, now_ms);
    trace_end(r, &end, now_ms);
}

static void requests_and_a_batch(bool may_fail)
{
    struct trace *t = NULL;
    const struct trace_config config = {.seed = {1, 2}};
    int err = trace_create(&t, &config);
    assert_true(err == 0 || may_fail);
    if (err != 0)
        return;
    for (unsigned i = 0; i < 3; i++)
        request(t, 1000);
    failmalloc_spare(true);
    trace_check(t);
    failmalloc_spare(false);
    bool batch = trace_batch(t, 5000).len > 0;
    assert_true(batch || may_fail);
    assert_true(batch || trace_is_empty(t)); /* a stop would wait for an empty batch */
    trace_destroy(t);
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(failmalloc_each(requests_and_a_batch) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
