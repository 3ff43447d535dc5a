/* The response scanner: two splits of the same answer give the same results. The first byte chooses
 * between a stream, a plain body and lines. */
#include <string.h>

#include "base/check.h"
#include "http/usage.h"

static void run(struct http_usage *u, const uint8_t *data, size_t size, size_t step)
{
    enum http_usage_form form = data[0] % 2 == 0 ? HTTP_USAGE_SSE : HTTP_USAGE_JSON;
    http_usage_init(u, data[0] == 'l' ? HTTP_USAGE_LINES : form);
    for (size_t at = 1; at < size; at += step)
        http_usage_feed(u, data + at, size - at < step ? size - at : step);
    http_usage_finish(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct http_usage whole;
    run(&whole, data, size, size);
    static const size_t steps[] = {1, 17};
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct http_usage split;
        run(&split, data, size, steps[i]);
        CHECK(split.prompt_tokens == whole.prompt_tokens);
        CHECK(split.cached_tokens == whole.cached_tokens);
        CHECK(split.completion_tokens == whole.completion_tokens);
        CHECK(split.token_events == whole.token_events && split.first_token == whole.first_token);
        CHECK(split.text_bytes == whole.text_bytes);
        CHECK(split.done == whole.done && split.error == whole.error);
        CHECK(strcmp(split.response_id, whole.response_id) == 0);
    }
    return 0;
}
