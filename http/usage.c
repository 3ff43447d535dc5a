#include "http/usage_internal.h"

#include <string.h>

#include "base/check.h"

/* Position in an SSE line. */
enum line { IN_NAME, AFTER_COLON, IN_DATA, IN_OTHER };

static const char done_mark[] = "[DONE]";
enum { DONE_LEN = sizeof done_mark - 1, DONE_NOT = 255 };

static const char byte_order_mark[] = "\xef\xbb\xbf";
enum { MARK_LEN = sizeof byte_order_mark - 1 };

static void count_token(struct http_usage *u)
{
    if (!u->carries_token || u->repeats)
        return;
    u->first_token = true;
    u->token_events++;
    u->text_bytes += u->seen_text;
}

/* --- server-sent events ---------------------------------------------------- */

/* Handles a blank line, which completes an event (WHATWG HTML, section 9.2.6). */
static void event_end(struct http_usage *u)
{
    if (!u->has_data)
        return;
    u->done |= u->is_terminal || u->done_len == DONE_LEN;
    u->error_whole = u->error;
    count_token(u);
    u->has_data = false;
    http_usage_json_start(u);
}

static void data_feed(struct http_usage *u, struct slice data)
{
    for (size_t i = 0; i < data.len && u->done_len != DONE_NOT; i++) {
        bool matches = u->done_len < DONE_LEN && data.at[i] == done_mark[u->done_len];
        u->done_len = matches ? (uint8_t)(u->done_len + 1) : (uint8_t)DONE_NOT;
    }
    http_usage_json_feed(u, data);
}

static bool is_data_name(const struct http_usage *u)
{
    return u->name_len == 4 && memcmp(u->name, "data", 4) == 0;
}

static void data_begin(struct http_usage *u)
{
    if (u->has_data)
        data_feed(u, SLICE("\n"));
    u->has_data = true;
}

static void line_end(struct http_usage *u)
{
    if (u->line == IN_NAME && u->name_len == 0)
        event_end(u);
    else if (u->line == IN_NAME)
        u->has_field = true;
    if (u->line == IN_NAME && is_data_name(u))
        data_begin(u); /* a field without a colon has an empty value */
    u->line = IN_NAME;
    u->name_len = 0;
}

/* Handles a byte of a line before the field's value. */
static void name_step(struct http_usage *u, char c)
{
    if (u->mark_len < MARK_LEN) {
        if (c == byte_order_mark[u->mark_len]) {
            u->mark_len++;
            return;
        }
        u->mark_len = MARK_LEN;
    }
    if (c == ':') {
        u->has_field |= u->name_len > 0;
        u->line = is_data_name(u) ? AFTER_COLON : IN_OTHER;
        if (u->line == AFTER_COLON)
            data_begin(u);
    } else if (u->name_len < sizeof u->name) {
        u->name[u->name_len++] = c;
    }
}

/* Length of the rest of the line. */
static size_t line_rest(struct slice in)
{
    size_t n = slice_find(in, '\n');
    return slice_find(slice_of(in.at, n), '\r');
}

static void sse_read(struct http_usage *u, struct slice in)
{
    while (in.len > 0) {
        char c = in.at[0];
        if (u->line == AFTER_COLON) {
            u->line = IN_DATA;
            in = slice_skip(in, c == ' ' ? 1 : 0);
            continue;
        }
        size_t n = 1;
        if (c == '\n' && u->after_cr) {
            u->after_cr = false;
        } else if (c == '\n' || c == '\r') {
            u->after_cr = c == '\r';
            line_end(u);
        } else if (u->line == IN_NAME) {
            u->after_cr = false;
            name_step(u, c);
        } else {
            n = line_rest(in);
            if (u->line == IN_DATA)
                data_feed(u, slice_of(in.at, n));
        }
        in = slice_skip(in, n);
    }
}

/* --- events of a known shape -------------------------------------------------- */

/* Length of the event at the front of `in` with the blank line, if complete and with a single line
 * of data; otherwise 0. */
static size_t whole_event(const struct http_usage *u, struct slice in)
{
    const struct slice start = SLICE("data: {");
    if (u->line != IN_NAME || u->name_len > 0 || u->has_data || u->after_cr ||
        !slice_starts_with(in, start))
        return 0;
    size_t n = slice_find(in, '\n');
    return n + 1 < in.len && in.at[n + 1] == '\n' && in.at[n - 1] != '\r' ? n + 2 : 0;
}

/* True if the bytes are not empty and may be in a JSON string unescaped. */
static bool is_plain_text(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c < ' ' || c == '"' || c == '\\')
            return false;
    }
    return len > 0;
}

static bool has_known_shape(const struct http_usage *u, struct slice event)
{
    size_t head = u->shape_head;
    size_t tail = u->shape_tail;
    return head > 0 && event.len > head + tail && memcmp(event.at, u->shape, head) == 0 &&
           memcmp(event.at + event.len - tail, u->shape + head, tail) == 0 &&
           is_plain_text(event.at + head, event.len - head - tail);
}

/* Call after an event with tokens was parsed: stores the event without the text. `text_bytes`:
 * bytes of all the event's texts. */
static void learn_shape(struct http_usage *u, struct slice event, uint64_t text_bytes)
{
    static const struct slice before[] = {SLICE("\"content\":\""), SLICE("\"text\":\"")};
    u->shape_head = 0;
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        const char *at = memmem(event.at, event.len, before[i].at, before[i].len);
        if (at == NULL)
            continue;
        size_t head = (size_t)(at - event.at) + before[i].len;
        size_t text = slice_find(slice_skip(event, head), '"');
        size_t tail = event.len - head - text;
        if (head + tail > HTTP_USAGE_SHAPE_MAX || !is_plain_text(event.at + head, text) ||
            text > text_bytes)
            return;
        memcpy(u->shape, event.at, head);
        memcpy(u->shape + head, event.at + head + text, tail);
        u->shape_head = (uint16_t)head;
        u->shape_tail = (uint16_t)tail;
        u->shape_text = text_bytes - text;
        return;
    }
}

/* Reads an event found by whole_event(), with the same result as sse_read(). */
static void event_read(struct http_usage *u, struct slice event)
{
    const size_t name = sizeof "data: " - 1, ends = 2;
    struct slice data = slice_of(event.at + name, event.len - name - ends);
    if (slice_find(data, '\r') < data.len) { /* a CR ends a line too */
        sse_read(u, event);
        return;
    }
    u->mark_len = MARK_LEN;
    u->has_data = true;
    data_feed(u, data);
    event_end(u);
}

static void sse_feed(struct http_usage *u, struct slice in)
{
    size_t len;
    while ((len = whole_event(u, in)) > 0) {
        struct slice event = slice_of(in.at, len);
        in = slice_skip(in, len);
        if (has_known_shape(u, event)) {
            u->token_events++;
            u->text_bytes += len - u->shape_head - u->shape_tail + u->shape_text;
            continue;
        }
        unsigned before = u->token_events;
        uint64_t text_before = u->text_bytes;
        event_read(u, event);
        if (u->token_events == before + 1 && !u->done && !u->error)
            learn_shape(u, event, u->text_bytes - text_before);
    }
    sse_read(u, in);
}

/* --- lines ------------------------------------------------------------------------------------ */

static void lines_feed(struct http_usage *u, struct slice in)
{
    while (in.len > 0) {
        size_t n = slice_find(in, '\n');
        http_usage_json_feed(u, slice_of(in.at, n));
        if (n < in.len) {
            count_token(u);
            http_usage_json_start(u);
            n++;
        }
        in = slice_skip(in, n);
    }
}

/* --- driving --------------------------------------------------------------- */

void http_usage_init(struct http_usage *u, enum http_usage_form form)
{
    memset(u, 0, offsetof(struct http_usage, json));
    u->prompt_tokens = -1;
    u->cached_tokens = -1;
    u->completion_tokens = -1;
    for (unsigned i = 0; i < CHAIN_MEDIA; i++)
        u->media_tokens[i] = -1;
    u->sequence_number = -1;
    u->form = (uint8_t)form;
    u->line = IN_NAME;
    http_usage_json_start(u);
}

void http_usage_feed(struct http_usage *u, const void *bytes, size_t len)
{
    if (len == 0)
        return;
    if (u->form == HTTP_USAGE_JSON)
        http_usage_json_feed(u, slice_of(bytes, len));
    else if (u->form == HTTP_USAGE_LINES)
        lines_feed(u, slice_of(bytes, len));
    else
        sse_feed(u, slice_of(bytes, len));
}

/* True if the incomplete last line begins like a field of an event stream. */
static bool begins_a_field(const struct http_usage *u)
{
    static const struct slice names[] = {SLICE("data"), SLICE("event"), SLICE("id"),
                                         SLICE("retry")};
    for (size_t i = 0; i < ARRAY_LEN(names) && u->line == IN_NAME && u->name_len > 0; i++)
        if (slice_starts_with(names[i], slice_of(u->name, u->name_len)))
            return true;
    return false;
}

void http_usage_finish(struct http_usage *u)
{
    if (u->form == HTTP_USAGE_SSE) {
        bool had_field = u->has_field, cut = begins_a_field(u);
        u->ended_in = (uint8_t)http_usage_place(u);
        u->finished = true;
        if (u->line != IN_NAME || u->name_len > 0)
            line_end(u);
        if (cut)
            u->has_field = had_field;
        event_end(u); /* engines may leave out the last blank line */
        return;
    }
    bool lines = u->form == HTTP_USAGE_LINES;
    u->done = http_json_finish(&u->json) || lines;
    u->error_whole = u->error;
    u->carries_token |= !lines && u->completion_tokens > 0;
    count_token(u);
}

bool http_usage_unfinished(const struct http_usage *u)
{
    if (u->done || u->error)
        return false;
    if (u->form != HTTP_USAGE_SSE)
        return u->understood && !http_json_failed(&u->json);
    /* A body with other lines is no event stream. Comments alone tell nothing about the body. */
    bool something_else = u->line == IN_NAME && u->name_len > 0 && !begins_a_field(u);
    return u->understood || (!u->has_field && !something_else);
}

enum http_usage_place http_usage_place(const struct http_usage *u)
{
    if (u->finished)
        return (enum http_usage_place)u->ended_in;
    if (u->line == IN_NAME && u->name_len > 0)
        return HTTP_USAGE_IN_NAME;
    return u->line == IN_NAME && !u->has_data ? HTTP_USAGE_BETWEEN : HTTP_USAGE_IN_LINE;
}
