#include "node/trace/trace.h"

#include <jansson.h>
#include <stdio.h>

#include "base/check.h"
#include "tests/lib/test.h"

static struct trace *t;

static int setup(void **state)
{
    (void)state;
    const struct trace_config config = {.router = "r\"1", .seed = {1, 2}};
    assert_int_equal(trace_create(&t, &config), 0);
    trace_wall(t, 1764517000000, 5000);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    trace_check(t);
    trace_destroy(t);
    return 0;
}

static const struct trace_attempt attempt = {
    .method = "POST",
    .replica = SLICE("e\"\xff"),
    .server = SLICE("[::1]:8000"),
    .reason = "cached",
    .cached_predicted = 48,
    .cached_told = 32,
    .number = 1,
    .status = 200,
    .first_token_ms = 5040,
};

static const struct trace_end whole = {
    .method = "POST",
    .path = SLICE("/v1/chat/completions"),
    .route = SLICE("/v1/chat/completions"),
    .operation = SLICE("chat"),
    .model = SLICE("m"),
    .client = SLICE("10.0.0.9"),
    .id = SLICE("id"),
    .replica = SLICE("10.0.0.1:8000"),
    .told = {64, 32, 7},
    .attempts = 1,
    .stream = true,
    .status = 200,
    .reason = "",
    .how = "done",
    .first_token_ms = 5040,
};

static void request(uint64_t at_ms)
{
    struct trace_request *r = trace_begin(t, NULL, at_ms);
    assert_non_null(r);
    trace_end(r, &whole, at_ms + 1);
}

static double number(const struct trace *of, const char *name)
{
    struct buf text = {0};
    struct prometheus p = prometheus_of(&text, "");
    trace_metrics(of, &p);
    assert_int_equal(prometheus_finish(&p), 0);
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    char line[128];
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = strstr(text.at, line);
    assert_non_null(at);
    double value = strtod(at + strlen(line), NULL);
    buf_free(&text);
    return value;
}

static enum trace_news ended(unsigned status, uint64_t now_ms)
{
    trace_check(t);
    return trace_batch_ended(t, &(struct trace_answer){.status = status}, now_ms);
}

static json_t *spans_of(struct slice batch, json_t **root)
{
    json_error_t error;
    *root = json_loadb(batch.at, batch.len, 0, &error);
    if (*root == NULL)
        fail_msg("%s: %.*s", error.text, SLICE_ARG(batch));
    json_t *resource = json_array_get(json_object_get(*root, "resourceSpans"), 0);
    json_t *scope = json_array_get(json_object_get(resource, "scopeSpans"), 0);
    return json_object_get(scope, "spans");
}

static const char *text(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* The value of an attribute; NULL: missing. */
static const char *attribute(json_t *of, const char *key)
{
    size_t i;
    json_t *a;
    json_array_foreach(json_object_get(of, "attributes"), i, a)
    {
        json_t *value = json_object_get(a, "value");
        if (strcmp(text(a, "key"), key) == 0)
            return json_object_get(value, "stringValue") != NULL ? text(value, "stringValue")
                                                                 : text(value, "intValue");
    }
    return NULL;
}

static void a_request_is_traced(void **state)
{
    (void)state;
    struct http_traceparent parent, own;
    char line[] = "POST / HTTP/1.1\r\ntraceparent: "
                  "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n\r\n";
    struct buf sent = {.at = line, .len = sizeof line - 1};
    assert_true(http_traceparent_parse(slice_of(line + 30, HTTP_TRACEPARENT_BYTES), &parent));
    struct trace_request *r = trace_begin(t, &parent, 5010);
    trace_traceparent(r, &own);
    assert_memory_equal(own.trace, parent.trace, sizeof own.trace);
    assert_memory_not_equal(own.span, parent.span, sizeof own.span);
    trace_event(r, SLICE("queued"), 5011);
    trace_event(r, SLICE("chosen"), 5012);
    trace_attempt_sent(r, &sent, 5012);
    trace_wall(t, 1764517009000, 5013); /* the wall clock jumps: a request's times stay in order */
    trace_attempt_ended(r, &attempt, 5050);
    trace_attempt_ended(r, &attempt, 5050); /* no attempt is under way */
    trace_end(r, &whole, 5051);
    assert_int_equal(trace_batch(t, 5052).len, 0);
    struct slice batch = trace_batch(t, 5051 + TRACE_BATCH_MS);
    json_t *root, *spans = spans_of(batch, &root);
    assert_int_equal(json_array_size(spans), 2);
    json_t *child = json_array_get(spans, 0), *server = json_array_get(spans, 1);
    assert_string_equal(text(server, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_string_equal(text(server, "parentSpanId"), "00f067aa0ba902b7");
    assert_string_equal(text(server, "name"), "POST /v1/chat/completions");
    assert_string_equal(text(server, "startTimeUnixNano"), "1764517000010000000");
    assert_string_equal(text(server, "endTimeUnixNano"), "1764517000051000000");
    assert_string_equal(attribute(server, "gen_ai.usage.cache_read.input_tokens"), "32");
    assert_int_equal(json_array_size(json_object_get(server, "events")), 3);
    assert_null(json_object_get(server, "status"));
    assert_string_equal(text(child, "parentSpanId"), text(server, "spanId"));
    assert_memory_equal(line + 30 + HTTP_TRACEPARENT_SPAN_AT, text(child, "spanId"), 16);
    assert_string_equal(attribute(child, "server.address"), "::1");
    assert_string_equal(attribute(child, "server.port"), "8000");
    assert_string_equal(attribute(child, "grapevine.replica"), "e\"\xef\xbf\xbd");
    assert_string_equal(attribute(child, "grapevine.cached_tokens.predicted"), "48");
    json_t *all = json_array_get(json_object_get(root, "resourceSpans"), 0);
    json_t *resource = json_object_get(all, "resource");
    assert_string_equal(attribute(resource, "service.name"), "grapevine");
    assert_string_equal(attribute(resource, "service.instance.id"), "r\"1");
    json_decref(root);
    assert_int_equal(ended(200, 6060), TRACE_SAME);
    assert_true(trace_is_empty(t));
    assert_true(number(t, "trace_spans_exported_total") == 2);
}

static void failures_are_traced(void **state)
{
    (void)state;
    struct trace_request *r = trace_begin(t, NULL, 5000);
    struct trace_attempt a = attempt;
    struct trace_end e = whole;
    trace_attempt_sent(r, NULL, 5001);
    a.status = 503;
    trace_attempt_ended(r, &a, 5002);
    trace_attempt_sent(r, NULL, 5003);
    a.status = 0;
    a.number = 2;
    a.error = "connect_failed";
    a.server = SLICE("engine");
    trace_attempt_ended(r, &a, 5004);
    e.status = 502;
    e.reason = "no_replica";
    e.failed = true;
    e.route = slice_of("", 0);
    trace_end(r, &e, 5005);
    json_t *root, *spans = spans_of(trace_batch(t, 9999), &root);
    json_t *first = json_array_get(spans, 0), *second = json_array_get(spans, 1);
    json_t *server = json_array_get(spans, 2);
    assert_string_equal(attribute(first, "error.type"), "503");
    assert_null(attribute(first, "http.request.resend_count"));
    assert_string_equal(attribute(second, "error.type"), "connect_failed");
    assert_string_equal(attribute(second, "http.request.resend_count"), "1");
    assert_null(attribute(second, "http.response.status_code"));
    assert_string_equal(attribute(second, "server.address"), "engine");
    assert_null(attribute(second, "server.port"));
    assert_string_equal(text(server, "name"), "POST");
    assert_string_equal(attribute(server, "error.type"), "no_replica");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(server, "status"), "code")),
                     2);
    assert_null(json_object_get(server, "parentSpanId"));
    json_decref(root);
    assert_int_equal(ended(200, 9999), TRACE_SAME);
}

static void a_batch_by_count(void **state)
{
    (void)state;
    for (unsigned i = 0; i < TRACE_BATCH_SPANS; i++) {
        assert_int_equal(trace_batch(t, 5001).len, 0);
        request(5000);
    }
    request(5000);
    json_t *root, *spans = spans_of(trace_batch(t, 5001), &root);
    assert_int_equal(json_array_size(spans), TRACE_BATCH_SPANS);
    json_decref(root);
    assert_int_equal(trace_batch(t, 9000).len, 0); /* 1 at a time */
    assert_int_equal(ended(200, 9000), TRACE_SAME);
    assert_true(trace_batch(t, 9000).len > 0);
    assert_int_equal(ended(202, 9000), TRACE_SAME);
    assert_int_equal(trace_batch(t, 19000).len, 0);
}

static void retries_are_traced(void **state)
{
    (void)state;
    static const unsigned passing[TRACE_TRIES_MAX] = {0, 429, 502, 503, 504};
    uint64_t now = 6000, began = 0;
    request(5000);
    for (unsigned i = 0; i < TRACE_TRIES_MAX; i++) {
        while (trace_batch(t, now).len == 0)
            now++;
        uint64_t least = i > 0 ? (uint64_t)TRACE_BACK_OFF_MS << (i - 1) : 0;
        assert_true(now - began >= least / 2 && (i == 0 || now - began <= 2 * least));
        assert_int_equal(ended(passing[i], now), i == 0 ? TRACE_FAILS : TRACE_SAME);
        began = now;
    }
    assert_true(trace_is_empty(t));
    assert_true(number(t, "trace_spans_dropped_total{reason=\"unreachable\"}") == 1);
    assert_true(number(t, "trace_export_failures_total") == TRACE_TRIES_MAX);
    request(now);
    now += TRACE_BACK_OFF_MAX_MS;
    assert_true(trace_batch(t, now).len > 0);
    assert_int_equal(ended(200, now), TRACE_WORKS);
}

static void retry_after_is_heeded(void **state)
{
    (void)state;
    request(5000);
    assert_true(trace_batch(t, 7000).len > 0);
    (void)trace_batch_ended(t, &(struct trace_answer){.status = 503, .retry_after_s = 20}, 7000);
    assert_int_equal(trace_batch(t, 26999).len, 0);
    assert_true(trace_batch(t, 27000).len > 0);
    (void)trace_batch_ended(t, &(struct trace_answer){.status = 429, .retry_after_s = 1u << 30},
                            27000);
    assert_true(trace_batch(t, 27000 + TRACE_BACK_OFF_MAX_MS).len > 0);
    assert_int_equal(ended(200, 60000), TRACE_WORKS);
}

static void refused_batches_are_dropped(void **state)
{
    (void)state;
    static const unsigned refusals[] = {400, 404, 413, 500, 301};
    for (unsigned i = 0; i < ARRAY_LEN(refusals); i++) {
        request(5000);
        assert_true(trace_batch(t, 9000).len > 0);
        assert_int_equal(ended(refusals[i], 9000), i == 0 ? TRACE_FAILS : TRACE_SAME);
        assert_true(trace_is_empty(t));
    }
    assert_true(number(t, "trace_spans_dropped_total{reason=\"refused\"}") == 5);
}

static void a_full_queue_drops(void **state)
{
    (void)state;
    double requests = 0;
    while (number(t, "trace_spans_dropped_total{reason=\"queue_full\"}") == 0) {
        for (unsigned i = 0; i < 100; i++)
            request(5000);
        requests += 100;
        trace_check(t);
        assert_true(requests < 100000);
    }
    assert_true(number(t, "trace_queue_bytes") <= TRACE_QUEUE_BYTES_MAX);
    trace_flush(t);
    while (!trace_is_empty(t)) {
        assert_true(trace_batch(t, 5001).len > 0);
        (void)ended(200, 5001);
    }
    assert_true(number(t, "trace_spans_exported_total") +
                    number(t, "trace_spans_dropped_total{reason=\"queue_full\"}") ==
                requests);
}

static void spans_of_a_request_are_limited(void **state)
{
    (void)state;
    struct trace_request *r = trace_begin(t, NULL, 5000);
    for (unsigned i = 0; i < 400; i++) {
        trace_event(r, SLICE("chosen"), 5000);
        trace_attempt_sent(r, NULL, 5000);
        trace_attempt_ended(r, &attempt, 5001);
    }
    trace_end(r, &whole, 5002);
    struct slice batch = trace_batch(t, 9000);
    assert_true(batch.len < 3 * TRACE_REQUEST_BYTES_MAX);
    json_t *root, *spans = spans_of(batch, &root);
    size_t count = json_array_size(spans);
    assert_true(json_integer_value(
                    json_object_get(json_array_get(spans, count - 1), "droppedEventsCount")) > 0);
    json_decref(root);
    assert_true(number(t, "trace_spans_dropped_total{reason=\"queue_full\"}") ==
                401 - (double)count);
    assert_int_equal(ended(200, 9000), TRACE_SAME);
}

static void a_flush_sends_at_once(void **state)
{
    (void)state;
    request(5000);
    trace_flush(t);
    assert_true(trace_batch(t, 5000).len > 0);
    assert_int_equal(ended(503, 5000), TRACE_FAILS);
    assert_true(trace_is_empty(t)); /* not tried twice */
}

static void sampled_by_share(void **state)
{
    (void)state;
    unsigned yes = 0;
    for (unsigned i = 0; i < 10000; i++) {
        yes += trace_sample(t, 0.25);
        assert_true(trace_sample(t, 1));
        assert_false(trace_sample(t, 0));
    }
    assert_in_range(yes, 2300, 2700);
    struct http_traceparent none;
    trace_unsampled(t, &none);
    assert_false(none.sampled);
}

static void metrics_are_zero_without_tracing(void **state)
{
    (void)state;
    assert_true(number(NULL, "trace_queue_bytes") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        TEST(a_request_is_traced),
        TEST(failures_are_traced),
        TEST(a_batch_by_count),
        TEST(retries_are_traced),
        TEST(retry_after_is_heeded),
        TEST(refused_batches_are_dropped),
        TEST(a_full_queue_drops),
        TEST(spans_of_a_request_are_limited),
        TEST(a_flush_sends_at_once),
        TEST(sampled_by_share),
        TEST(metrics_are_zero_without_tracing),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
