/* Any bytes as a response head, forwarded to both kinds of clients and parsed again. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "http/forward.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct http_head head, again, part;

/* Every byte separately: the outcome is the same, but the parser may still wait where a whole head
 * is refused. */
static void check_progress(const char *at, size_t len, bool head_request, int err)
{
    struct http_progress progress = {0};
    for (size_t n = 1; n <= len; n++) {
        if (!http_head_progress(&progress, at, n, &http_limits_default))
            continue;
        int e = http_response_parse(&part, at, n, head_request, &http_limits_default);
        if (e == ERR_AGAIN)
            continue;
        CHECK(e == 0 ? err == 0 : err != 0 && err != ERR_AGAIN);
        CHECK(e != 0 || (part.bytes == head.bytes && part.status == head.status &&
                         part.framing == head.framing && n == part.bytes));
        return;
    }
    CHECK(err != 0);
}

static void check_forward(unsigned minor, bool head_request)
{
    struct buf out = {0};
    struct http_line extra = {SLICE("x-grapevine-replica"), SLICE("r")};
    struct http_forward_response how = {.client_minor = minor,
                                        .framing = http_forward_response_framing(&head, minor),
                                        .content_length = head.content_length,
                                        .extra = &extra,
                                        .extra_count = 1};
    how.keep_alive = how.framing != HTTP_BODY_UNTIL_CLOSE;
    CHECK(http_forward_response_write(&out, &head, &how) == 0);
    struct http_limits wide = {
        .head_bytes_max = 1 << 20, .target_bytes_max = 0, .fields_max = HTTP_FIELDS_MAX};
    CHECK(http_response_parse(&again, out.at, out.len, head_request, &wide) == 0);
    CHECK(again.bytes == out.len && again.status == head.status && again.framing == how.framing);
    CHECK(slice_equal(again.reason, head.reason));
    CHECK(again.keep_alive == how.keep_alive);
    CHECK(http_head_get(&again, HTTP_X_GRAPEVINE_REPLICA).len == 1);
    CHECK(!http_head_has(&again, HTTP_ENDPOINT_LOAD_METRICS));
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *at = malloc(size + (size == 0));
    CHECK(at != NULL);
    if (size > 0)
        memcpy(at, data, size);
    for (int head_request = 0; head_request < 2; head_request++) {
        int err = http_response_parse(&head, at, size, head_request, &http_limits_default);
        CHECK(err == 0 || err == ERR_AGAIN || head.refusal == 502);
        check_progress(at, size, head_request, err);
        if (err != 0)
            continue;
        check_forward(0, head_request);
        check_forward(1, head_request);
    }
    free(at);
    return 0;
}
