#include "http/traceparent.h"

#include "base/check.h"

enum { TRACE_AT = 3, FLAGS_AT = 53 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static unsigned hex_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a') + 10;
}

/* True for a valid id: hex digits, but not all zero. */
static bool is_id(const char *at, size_t len)
{
    bool zero = true;
    for (size_t i = 0; i < len; i++) {
        if (!is_hex(at[i]))
            return false;
        zero = zero && at[i] == '0';
    }
    return !zero;
}

bool http_traceparent_parse(struct slice text, struct http_traceparent *out)
{
    const char *at = text.at;
    if (text.len < HTTP_TRACEPARENT_BYTES || !is_hex(at[0]) || !is_hex(at[1]) || at[2] != '-' ||
        at[TRACE_AT + HTTP_TRACE_ID_HEX] != '-' || at[FLAGS_AT - 1] != '-' ||
        !is_hex(at[FLAGS_AT]) || !is_hex(at[FLAGS_AT + 1]))
        return false;
    unsigned version = hex_value(at[0]) << 4 | hex_value(at[1]);
    if (version == 0xff || !is_id(at + TRACE_AT, HTTP_TRACE_ID_HEX) ||
        !is_id(at + HTTP_TRACEPARENT_SPAN_AT, HTTP_SPAN_ID_HEX))
        return false;
    if (text.len > HTTP_TRACEPARENT_BYTES && (version == 0 || at[HTTP_TRACEPARENT_BYTES] != '-'))
        return false;
    memcpy(out->trace, at + TRACE_AT, sizeof out->trace);
    memcpy(out->span, at + HTTP_TRACEPARENT_SPAN_AT, sizeof out->span);
    out->sampled = (hex_value(at[FLAGS_AT + 1]) & 1) != 0;
    return true;
}

bool http_traceparent_find(const struct http_head *head, struct http_traceparent *out)
{
    if (!http_head_has(head, HTTP_TRACEPARENT))
        return false;
    for (unsigned i = head->first[HTTP_TRACEPARENT]; i < head->field_count; i++) {
        if (head->fields[i].id == HTTP_TRACEPARENT)
            return false;
    }
    return http_traceparent_parse(http_head_get(head, HTTP_TRACEPARENT), out);
}

void http_traceparent_write(const struct http_traceparent *t, char out[HTTP_TRACEPARENT_BYTES])
{
    memcpy(out, "00-", TRACE_AT);
    memcpy(out + TRACE_AT, t->trace, sizeof t->trace);
    out[TRACE_AT + HTTP_TRACE_ID_HEX] = '-';
    memcpy(out + HTTP_TRACEPARENT_SPAN_AT, t->span, sizeof t->span);
    out[FLAGS_AT - 1] = '-';
    out[FLAGS_AT] = '0';
    out[FLAGS_AT + 1] = t->sampled ? '1' : '0';
}

void http_traceparent_aim(struct slice head, const char trace[HTTP_TRACE_ID_HEX],
                          const char span[HTTP_SPAN_ID_HEX])
{
    static const struct slice name = SLICE("\r\ntraceparent: 00-");
    struct slice rest = head;
    for (;;) {
        const char *line = memmem(rest.at, rest.len, name.at, name.len);
        CHECK(line != NULL);
        rest = slice_skip(rest, (size_t)(line - rest.at) + name.len);
        CHECK(rest.len > HTTP_TRACEPARENT_BYTES - TRACE_AT);
        if (memcmp(rest.at, trace, HTTP_TRACE_ID_HEX) == 0)
            break;
    }
    memcpy((char *)rest.at + HTTP_TRACEPARENT_SPAN_AT - TRACE_AT, span, HTTP_SPAN_ID_HEX);
}
