#include "http/error.h"

#include <stdio.h>

#include "tests/lib/test.h"

static void body(const struct http_error *error, const char *want)
{
    struct buf out = {0};
    assert_int_equal(http_error_body_write(&out, error), 0);
    assert_slice_equal(buf_slice(&out), want);
    buf_free(&out);
}

static void event(const struct http_error *error, const char *want)
{
    struct buf out = {0};
    assert_int_equal(buf_append_cstr(&out, "before"), 0);
    assert_int_equal(http_error_event_write(&out, error), 0);
    assert_slice_equal(slice_skip(buf_slice(&out), 6), want);
    buf_free(&out);
}

static void each_api_has_its_own_error_body(void **state)
{
    (void)state;
    struct http_error e = {.message = SLICE("a \"b\"\n"),
                           .request_id = SLICE("id"),
                           .status = 502,
                           .sequence_number = 7};
    body(&e, "{\"error\":{\"message\":\"a \\\"b\\\"\\n\",\"type\":\""
             "BadGatewayError\",\"param\":null,\"code\":502}}");
    event(&e, "data: {\"error\":{\"message\":\"a "
              "\\\"b\\\"\\n\",\"type\":\"BadGatewayError\",\"param\":null,"
              "\"code\":502}}\n\n");
    e.message = SLICE("m");
    e.form = HTTP_ERROR_RESPONSES;
    body(
        &e,
        "{\"error\":{\"message\":\"m\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}");
    event(&e,
          "event: error\ndata: {\"type\":\"error\",\"code\":\"invalid_prompt\",\"message\":\"m\","
          "\"param\":null,\"sequence_number\":7}\n\n");
    e.transient = true; /* clients retry errors of these types */
    body(&e,
         "{\"error\":{\"message\":\"m\",\"type\":\"server_error\",\"param\":null,\"code\":502}}");
    event(&e, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"m\","
              "\"param\":null,\"sequence_number\":7}\n\n");
    e.form = HTTP_ERROR_ANTHROPIC;
    const char *text = "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"m\"},"
                       "\"request_id\":\"id\"}";
    char framed[256];
    (void)snprintf(framed, sizeof framed, "event: error\ndata: %s\n\n", text);
    body(&e, text);
    event(&e, framed);
    e.form = HTTP_ERROR_SGLANG;
    e.type = SLICE("t");
    body(&e, "{\"error\":{\"message\":\"m\",\"type\":\"t\",\"param\":null,\"code\":502}}");
    event(
        &e,
        "data: {\"error\":{\"message\":\"m\",\"type\":\"t\",\"code\":502,\"retryable\":true}}\n\n");
}

/* A single scheme for every cause. */
static void openai_types(void **state)
{
    (void)state;
    static const struct {
        unsigned status;
        const char *type;
    } rows[] = {{400, "BadRequestError"},         {401, "AuthenticationError"},
                {403, "PermissionDeniedError"},   {404, "NotFoundError"},
                {405, "MethodNotAllowedError"},   {408, "RequestTimeoutError"},
                {409, "ConflictError"},           {413, "RequestEntityTooLargeError"},
                {414, "BadRequestError"},         {429, "RateLimitError"},
                {431, "BadRequestError"},         {500, "InternalServerError"},
                {501, "NotImplementedError"},     {502, "BadGatewayError"},
                {503, "ServiceUnavailableError"}, {504, "GatewayTimeoutError"},
                {505, "BadRequestError"},         {508, "LoopDetectedError"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[128];
        struct http_error e = {.message = SLICE("m"), .status = rows[i].status};
        (void)snprintf(want, sizeof want,
                       "{\"error\":{\"message\":\"m\",\"type\":\"%s\",\"param\":null,\"code\":%u}}",
                       rows[i].type, rows[i].status);
        body(&e, want);
    }
}

static void anthropic_types(void **state)
{
    (void)state;
    static const struct {
        unsigned status;
        const char *type;
    } rows[] = {{400, "invalid_request_error"},
                {401, "authentication_error"},
                {403, "permission_error"},
                {404, "not_found_error"},
                {405, "invalid_request_error"},
                {408, "invalid_request_error"},
                {413, "request_too_large"},
                {429, "rate_limit_error"},
                {500, "api_error"},
                {502, "api_error"},
                {503, "overloaded_error"},
                {504, "timeout_error"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char want[128];
        struct http_error e = {
            .form = HTTP_ERROR_ANTHROPIC, .message = SLICE("m"), .status = rows[i].status};
        (void)snprintf(want, sizeof want,
                       "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":\"m\"}}",
                       rows[i].type);
        body(&e, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_api_has_its_own_error_body),
        cmocka_unit_test(openai_types),
        cmocka_unit_test(anthropic_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
