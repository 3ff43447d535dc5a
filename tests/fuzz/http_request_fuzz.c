/* Any bytes as a request head: parsed whole, parsed in pieces, forwarded and parsed again. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "http/forward.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct http_head head, part, again;

static void check_slices(const struct http_head *h, const char *at)
{
    for (unsigned i = 0; i < h->field_count; i++) {
        const struct http_field *f = &h->fields[i];
        CHECK(f->name.at >= at && f->value.at + f->value.len <= at + h->bytes - 4);
        CHECK(http_field_is_valid((struct http_line){f->name, f->value}));
        CHECK(f->id == http_field_lookup(f->name));
        CHECK(f->id == HTTP_FIELD_OTHER || (h->first[f->id] != 0 && h->first[f->id] <= i + 1));
    }
}

/* Every byte separately, as from the slowest client: the outcome is the same, with two exceptions.
 * The parser may still wait where a whole head is refused, or may refuse for the first of several
 * reasons. */
static void check_progress(const char *at, size_t len, int err)
{
    struct http_progress progress = {0};
    for (size_t n = 1; n <= len; n++) {
        if (!http_head_progress(&progress, at, n, &http_limits_default))
            continue;
        int e = http_request_parse(&part, at, n, &http_limits_default);
        if (e == ERR_AGAIN)
            continue;
        CHECK(e == 0 ? err == 0 : err != 0 && err != ERR_AGAIN);
        CHECK(e != 0 || (part.bytes == head.bytes && n == part.bytes));
        return;
    }
    CHECK(err != 0);
}

static void check_forward(void)
{
    struct buf out = {0};
    struct http_forward_request how = {.host_fallback = SLICE("engine:8000"),
                                       .client_address = SLICE("10.0.0.1"),
                                       .request_id = SLICE("id"),
                                       .via = SLICE(HTTP_VIA_ROUTER "self"),
                                       .framing = head.framing,
                                       .content_length = head.content_length};
    CHECK(http_forward_request_write(&out, &head, &how) == 0);
    struct http_limits wide = {
        .head_bytes_max = 1 << 20, .target_bytes_max = 1 << 20, .fields_max = HTTP_FIELDS_MAX};
    CHECK(http_request_parse(&again, out.at, out.len, &wide) == 0);
    CHECK(again.bytes == out.len && again.minor == 1 && again.keep_alive);
    CHECK(again.framing == head.framing && again.content_length == head.content_length);
    CHECK(slice_equal(again.path, head.path) && slice_equal(again.query, head.query));
    CHECK(!http_head_has(&again, HTTP_CONNECTION) && !http_head_has(&again, HTTP_EXPECT));
    CHECK(!http_head_has(&again, HTTP_UPGRADE) && !http_head_has(&again, HTTP_TE));
    CHECK(http_head_get(&again, HTTP_X_REQUEST_ID).len == 2);
    bool before, after;
    unsigned routers = http_via_routers(&head, how.via, &before);
    CHECK(http_via_routers(&again, how.via, &after) == routers + 1 && after);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *at = malloc(size + (size == 0));
    CHECK(at != NULL);
    if (size > 0)
        memcpy(at, data, size);
    int err = http_request_parse(&head, at, size, &http_limits_default);
    if (err == 0) {
        check_slices(&head, at);
        check_forward();
    } else if (err != ERR_AGAIN) {
        CHECK(head.refusal >= 400 && head.refusal_text != NULL);
    }
    check_progress(at, size, err);
    free(at);
    return 0;
}
