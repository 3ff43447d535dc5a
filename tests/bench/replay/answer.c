#include "tests/bench/replay/answer.h"

#include "base/check.h"

enum { REST_BYTES = 16384 }; /* usage is near the end; only the end of a longer answer is kept */

void answer_start(struct answer *a, bool stream)
{
    struct buf rest = a->rest;
    buf_clear(&rest);
    *a = (struct answer){.stream = stream, .rest = rest};
}

void answer_free(struct answer *a)
{
    buf_free(&a->rest);
}

/* The text after "key":, without leading spaces; empty if there is no such key. */
static struct slice value_of(struct slice text, const char *key)
{
    size_t n = strlen(key);
    while (text.len > n) {
        const char *hit = memmem(text.at, text.len, key, n);
        if (hit == NULL)
            break;
        text = slice_skip(text, (size_t)(hit - text.at) + n);
        struct slice value = slice_trim(text);
        if (value.len > 0 && value.at[0] == ':')
            return slice_trim(slice_skip(value, 1));
    }
    return slice_of(NULL, 0);
}

static uint64_t number_of(struct slice text, const char *key)
{
    struct slice value = value_of(text, key);
    size_t n = 0;
    while (n < value.len && value.at[n] >= '0' && value.at[n] <= '9')
        n++;
    uint64_t number = 0;
    return slice_to_u64(slice_of(value.at, n), &number) == 0 ? number : 0;
}

static void usage_read(struct answer *a, struct slice text)
{
    struct slice usage = value_of(text, "\"usage\"");
    if (usage.len == 0 || usage.at[0] != '{')
        return;
    a->usage = true;
    a->prompt_tokens = number_of(usage, "\"prompt_tokens\"");
    a->completion_tokens = number_of(usage, "\"completion_tokens\"");
    a->cached_tokens = number_of(usage, "\"cached_tokens\"");
}

static void line_read(struct answer *a, struct slice line)
{
    if (!slice_starts_with(line, SLICE("data:")))
        return;
    line = slice_trim(slice_skip(line, 5));
    if (slice_starts_with(line, SLICE("[DONE]"))) {
        a->done = true;
        return;
    }
    if (slice_starts_with(line, SLICE("{\"error\"")))
        a->error = true;
    if (!a->content) {
        struct slice content = value_of(line, "\"content\"");
        if (content.len == 0)
            content = value_of(line, "\"text\"");
        a->content = content.len > 1 && content.at[0] == '"' && content.at[1] != '"';
    }
    usage_read(a, line);
}

static void lines_read(struct answer *a, struct slice payload)
{
    if (a->rest.len > 0) {
        size_t n = slice_find(payload, '\n');
        CHECK(buf_append(&a->rest, payload.at, n) == 0);
        if (n == payload.len)
            return;
        line_read(a, buf_slice(&a->rest));
        buf_clear(&a->rest);
        payload = slice_skip(payload, n + 1);
    }
    while (payload.len > 0) {
        const char *end = memchr(payload.at, '\n', payload.len);
        if (end == NULL) {
            CHECK(buf_append_slice(&a->rest, payload) == 0);
            return;
        }
        size_t n = (size_t)(end - payload.at);
        if (n > 1)
            line_read(a, slice_of(payload.at, n));
        payload = slice_skip(payload, n + 1);
    }
}

void answer_feed(struct answer *a, struct slice payload)
{
    if (a->stream) {
        lines_read(a, payload);
        return;
    }
    a->content = a->content || payload.len > 0;
    CHECK(buf_append_slice(&a->rest, payload) == 0);
    if (a->rest.len > 2 * REST_BYTES)
        buf_consume(&a->rest, a->rest.len - REST_BYTES);
}

void answer_end(struct answer *a)
{
    if (a->stream) {
        if (a->rest.len > 0)
            line_read(a, buf_slice(&a->rest));
        return;
    }
    usage_read(a, buf_slice(&a->rest));
}
