#include "http/answer.h"

#include "base/check.h"
#include "base/err.h"
#include "http/head.h"

static int head_write(struct buf *out, const struct http_answer *a, bool has_length)
{
    int err = buf_printf(out, "HTTP/1.1 %u %s\r\n", a->status, http_status_text(a->status));
    if (err == 0 && a->content_type.len > 0)
        err = buf_printf(out, "Content-Type: %.*s\r\n", SLICE_ARG(a->content_type));
    if (err == 0 && has_length)
        err = buf_printf(out, "Content-Length: %zu\r\n", a->body.len);
    for (size_t i = 0; err == 0 && i < a->extra_count; i++)
        err = buf_printf(out, "%.*s: %.*s\r\n", SLICE_ARG(a->extra[i].name),
                         SLICE_ARG(a->extra[i].value));
    if (err == 0 && a->close)
        err = buf_append_cstr(out, "Connection: close\r\n");
    else if (err == 0 && a->client_minor == 0)
        err = buf_append_cstr(out, "Connection: keep-alive\r\n");
    return err != 0 ? err : buf_append_cstr(out, "\r\n");
}

/* True if a parser reads the head as intended. */
static bool reads_back(struct slice text, const struct http_answer *a, bool has_body)
{
    static const struct http_limits limits = {SIZE_MAX, 0, HTTP_FIELDS_MAX};
    struct http_head head;
    if (a->status == 101)
        return true; /* not tested: the parser refuses 101 */
    if (http_response_parse(&head, text.at, text.len, a->head_request, &limits) != 0)
        return false;
    return head.status == a->status && (!has_body || head.content_length == a->body.len);
}

int http_answer_write(struct buf *out, const struct http_answer *a)
{
    size_t start = out->len;
    CHECK(a->status >= 100 && a->status <= 599);
    bool has_body = a->status >= 200 && a->status != 204 && a->status != 304 && !a->endless;
    CHECK(!a->endless || (a->close && a->body.len == 0));
    int err = head_write(out, a, has_body);
    if (err == 0 && has_body && !a->head_request)
        err = buf_append_slice(out, a->body);
    if (err != 0)
        out->len = start;
    else
        CHECK_SLOW(reads_back(slice_of(out->at + start, out->len - start), a, has_body));
    return err;
}

int http_answer_error_write(struct buf *out, const struct http_answer *answer,
                            const struct http_error *error)
{
    struct buf body = {0};
    int err = http_error_body_write(&body, error);
    if (err == 0) {
        struct http_answer full = *answer;
        full.status = error->status;
        full.content_type = SLICE("application/json");
        full.body = buf_slice(&body);
        err = http_answer_write(out, &full);
    }
    buf_free(&body);
    return err;
}
