/* llhttp's own cases (tests/vectors/llhttp/test). Messages refused by llhttp's strict mode are
 * refused. Messages accepted there are accepted with the same method, target, fields, status and
 * body, or refused for a reason in `stricter`. llhttp's lenient modes have no equivalent here and
 * are left out. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "http/chunked.h"
#include "http/head.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

/* Reasons to refuse more than llhttp does. Nothing refused by llhttp is accepted. */
static const struct {
    const char *refusal, *reason;
} stricter[] = {
    {"method is not supported", "no engine takes WebDAV and such: 501"},
    {"malformed HTTP version", "RTSP and ICE are not HTTP"},
    {"malformed target", "RFC 3986 has no raw quote, bar, fragment in a target; no HTTP/0.9"},
    {"malformed authority in the target", "user info is an error (RFC 9110, section 4.2.4)"},
    {"field that is not allowed in a trailer", "RFC 9110, section 6.5.1"},
    {"not an HTTP/1 response", "RTSP, ICE, an empty line before a response"},
    {"chunked is not the last transfer coding", "a response that ends when it ends is ambiguous"},
    {"repeated Transfer-Encoding", "ambiguous to whoever reads only one of them"},
    {"transfer coding other than chunked", "could not be passed on as it is"},
    {"Content-Length together with Transfer-Encoding", "RFC 9112, section 6.1"},
    {"upgrade that nobody asked for", "this proxy sends no Upgrade"},
    {"malformed chunk extension", "RFC 9112 has white space there only as a thing to tolerate"},
};

/* Errors of llhttp not about the message: llhttp's caller goes on elsewhere. Here the bytes behind
 * a last message are never read, and Upgrade is ignored. */
static const char *const no_errors[] = {"Data after `Connection: close`",
                                        "Pause on CONNECT/Upgrade", "on_"};

struct outcome {
    struct buf events; /* a line for each element read */
    struct buf body;   /* of the present message */
    bool refused;
    bool unfinished; /* the input ended inside a message */
    const char *why;
};

static void event(struct buf *events, const char *what, struct slice value)
{
    assert_int_equal(buf_printf(events, "%s=", what), 0);
    assert_int_equal(buf_append_slice(events, slice_trim(value)), 0);
    assert_int_equal(buf_append_char(events, '\n'), 0);
}

/* --- reading with our parsers --------------------------------------------------------------- */

/* Returns the number of body bytes available, or refuses. */
static size_t read_body(struct outcome *o, const struct http_head *h, struct slice in)
{
    struct http_chunked c;
    struct slice rest = in;
    buf_clear(&o->body);
    switch (h->framing) {
    case HTTP_BODY_CHUNKED:
        http_chunked_init(&c);
        while (rest.len > 0 && !c.done && !o->refused) {
            size_t used;
            struct slice data;
            o->refused = http_chunked_next(&c, rest, &used, &data) != 0;
            o->why = o->refused ? c.error : o->why;
            assert_int_equal(buf_append_slice(&o->body, data), 0);
            rest = slice_skip(rest, used);
        }
        break;
    case HTTP_BODY_LENGTH:
    case HTTP_BODY_UNTIL_CLOSE: {
        size_t n = rest.len;
        if (h->framing == HTTP_BODY_LENGTH && h->content_length < n)
            n = (size_t)h->content_length;
        assert_int_equal(buf_append(&o->body, rest.at, n), 0);
        rest = slice_skip(rest, n);
        break;
    }
    default:
        break;
    }
    return in.len - rest.len;
}

static void read_all(struct outcome *o, struct slice in, bool request)
{
    static struct http_head h;
    bool alive = true;
    while (in.len > 0 && alive && !o->refused) {
        int err = request ? http_request_parse(&h, in.at, in.len, &http_limits_default)
                          : http_response_parse(&h, in.at, in.len, false, &http_limits_default);
        if (err == ERR_AGAIN) {
            o->unfinished = true;
            return;
        }
        if (err != 0) {
            o->refused = true;
            o->why = h.refusal_text;
            return;
        }
        if (request) {
            event(&o->events, "method", h.method_text);
            event(&o->events, "url", h.target);
        } else if (h.reason.len > 0) {
            event(&o->events, "status", h.reason);
        }
        for (unsigned i = 0; i < h.field_count; i++) {
            if (slice_equal(h.fields[i].value, SLICE("inserted-by-the-test")))
                continue;
            event(&o->events, "header_field", h.fields[i].name);
            event(&o->events, "header_value", h.fields[i].value);
        }
        in = slice_skip(in, h.bytes);
        in = slice_skip(in, read_body(o, &h, in));
        if (o->body.len > 0)
            event(&o->events, "body", buf_slice(&o->body));
        alive = h.keep_alive;
    }
}

/* --- reading the markdown ------------------------------------------------------------------- */

/* Newlines of the file mean CRLF; \r \n \t \f \xHH are bytes; a backslash at a line's end joins the
 * next line. */
static void unescape(struct slice text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        char next = i + 1 < text.len ? text.at[i + 1] : '\0';
        const char *found = c == '\\' && next != '\0' ? strchr("rntf", next) : NULL;
        if (c == '\n') {
            DISCARD(buf_append_cstr(out, "\r\n"));
        } else if (c == '\\' && next == '\n') {
            i++;
        } else if (found != NULL) {
            DISCARD(buf_append_char(out, "\r\n\t\f"[found - strchr("rntf", 'r')]));
            i++;
        } else if (c == '\\' && next == 'x') {
            unsigned byte = 0;
            int digits = 0;
            (void)sscanf(text.at + i + 2, "%2x%n", &byte, &digits);
            DISCARD(buf_append_char(out, (char)byte));
            i += 1 + (size_t)digits;
        } else {
            DISCARD(buf_append_char(out, c));
        }
    }
}

/* --- llhttp's log --------------------------------------------------------------------------- */

/* An element of the log, with adjacent spans. */
struct thing {
    char name[32];
    struct buf value;
};

/* name="value", or name=lf for a lone byte. */
static void span_append(struct buf *value, struct slice text)
{
    if (slice_equal(text, SLICE("lf")))
        DISCARD(buf_append_char(value, '\n'));
    else if (slice_equal(text, SLICE("cr")))
        DISCARD(buf_append_char(value, '\r'));
    else if (slice_equal(text, SLICE("\"\xc3\xbfValue2\""))) /* shown as Latin-1 */
        DISCARD(buf_append_cstr(value, "\xffValue2"));
    else if (text.len >= 2)
        unescape(slice_of(text.at + 1, text.len - 2), value);
}

/* Trailers come behind the head; they are no events here. */
static void thing_end(struct thing *t, struct buf *events, bool in_head)
{
    static const char *const ours[] = {"method", "url",          "status",
                                       "body",   "header_field", "header_value"};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        bool empty_reason = i == 2 && t->value.len == 0;
        if (strcmp(t->name, ours[i]) == 0 && (i < 4 || in_head) && !empty_reason)
            event(events, t->name, buf_slice(&t->value));
    }
    buf_clear(&t->value);
    t->name[0] = '\0';
}

/* Reads the same lines from the log; `error` gets the reason, if any. */
static void read_log(struct slice log, struct buf *events, struct slice *error)
{
    struct thing t = {0};
    bool in_head = true;
    *error = slice_of("", 0);
    while (log.len > 0) {
        struct slice line = slice_cut(&log, '\n');
        char text[4096], name[32];
        assert_true(slice_to_cstr(line, text, sizeof text));
        const char *span = strstr(text, "span[");
        if (span != NULL && sscanf(span, "span[%31[^]]", name) == 1) {
            bool same = strcmp(name, t.name) == 0;
            bool inside_body = strncmp(name, "chunk_", 6) == 0;
            if (!same && !inside_body) {
                thing_end(&t, events, in_head);
                (void)strcpy(t.name, name);
            }
            if (!inside_body)
                span_append(&t.value, slice_of_cstr(strstr(span, "]=") + 2));
        } else if (strstr(text, " complete") != NULL && strstr(text, "chunk") == NULL) {
            thing_end(&t, events, in_head);
        }
        if (strstr(text, "headers complete") != NULL)
            in_head = false;
        if (strstr(text, "message ") != NULL)
            in_head = true;
        const char *reason = strstr(text, "reason=\"");
        if (strstr(text, "error code=") != NULL && reason != NULL)
            *error = slice_skip(line, (size_t)(reason - text) + 8);
    }
    thing_end(&t, events, in_head);
    buf_free(&t.value);
}

static struct slice between(struct slice *text, const char *open, const char *close)
{
    const char *from = memmem(text->at, text->len, open, strlen(open));
    if (from == NULL)
        return slice_of(NULL, 0);
    from += strlen(open);
    size_t left = text->len - (size_t)(from - text->at);
    const char *to = memmem(from, left, close, strlen(close));
    if (to == NULL)
        return slice_of(NULL, 0);
    *text = slice_skip(*text, (size_t)(to - text->at) + strlen(close));
    return slice_of(from, (size_t)(to - from));
}

static bool contains(struct slice text, const char *what)
{
    return memmem(text.at, text.len, what, strlen(what)) != NULL;
}

static unsigned counts[3]; /* same, refused by both, refused only here */

/* Most cases have no Host, which this parser requires. */
static void insert_hosts(struct slice in, struct buf *out)
{
    struct slice end = SLICE("HTTP/1.1\r\n");
    while (in.len > 0) {
        const char *line = memmem(in.at, in.len, end.at, end.len);
        size_t n = line == NULL ? in.len : (size_t)(line - in.at) + end.len;
        DISCARD(buf_append(out, in.at, n));
        if (line != NULL)
            DISCARD(buf_append_cstr(out, "Host: inserted-by-the-test\r\n"));
        in = slice_skip(in, n);
    }
}

static bool is_error(struct slice error)
{
    for (size_t i = 0; i < ARRAY_LEN(no_errors); i++) {
        if (slice_starts_with(error, slice_of_cstr(no_errors[i])))
            return false;
    }
    return error.len > 0;
}

static bool is_known(const char *refusal)
{
    for (size_t i = 0; i < ARRAY_LEN(stricter); i++) {
        if (strcmp(refusal, stricter[i].refusal) == 0)
            return true;
    }
    return false;
}

/* Returns true if the case went as required. */
static bool run_case(bool request, struct slice in, struct slice log)
{
    struct outcome ours = {.why = ""};
    struct buf theirs = {0}, with_host = {0};
    struct slice error;
    bool fine;
    read_all(&ours, in, request);
    if (ours.refused && strcmp(ours.why, "no Host") == 0) {
        insert_hosts(in, &with_host);
        buf_clear(&ours.events);
        ours.refused = false;
        read_all(&ours, buf_slice(&with_host), request);
    }
    read_log(log, &theirs, &error);
    if (is_error(error)) {
        if (ours.unfinished) { /* only this parser needs the line's end */
            DISCARD(buf_append_slice(&with_host, with_host.len > 0 ? slice_of("", 0) : in));
            DISCARD(buf_append_cstr(&with_host, "\r\n\r\n"));
            read_all(&ours, buf_slice(&with_host), request);
        }
        fine = ours.refused;
        counts[1]++;
    } else if (ours.refused) {
        fine = is_known(ours.why);
        counts[2]++;
    } else {
        fine = ours.unfinished ? slice_starts_with(buf_slice(&theirs), buf_slice(&ours.events))
                               : slice_equal(buf_slice(&theirs), buf_slice(&ours.events));
        counts[0]++;
    }
    if (!fine)
        print_message("ours: %s %s\n%.*sllhttp: %.*s\n%.*s", ours.refused ? "refused" : "accepted",
                      ours.why, SLICE_ARG(buf_slice(&ours.events)), SLICE_ARG(error),
                      SLICE_ARG(buf_slice(&theirs)));
    buf_free(&ours.events);
    buf_free(&ours.body);
    buf_free(&theirs);
    buf_free(&with_host);
    return fine;
}

static void run_file(void **state)
{
    const char *name = *state;
    char path[512];
    (void)snprintf(path, sizeof path, VECTORS "/llhttp/test/%s", name);
    struct buf file = {0};
    assert_int_equal(file_read(path, &file), 0);
    memset(counts, 0, sizeof counts);
    struct slice rest = buf_slice(&file);
    struct slice title = slice_of("", 0);
    unsigned failed = 0;
    for (;;) {
        struct slice before = rest;
        struct slice meta = between(&rest, "<!-- meta=", "-->");
        if (meta.at == NULL)
            break;
        before.len = (size_t)(meta.at - before.at);
        for (struct slice part = before; part.len > 0;) {
            struct slice line = slice_cut(&part, '\n');
            if (slice_starts_with(line, SLICE("##")))
                title = line;
        }
        struct slice in = between(&rest, "```http\n", "```");
        struct slice log = between(&rest, "```log\n", "```");
        if (contains(meta, "lenient") || contains(meta, "finish") || contains(meta, "skipBody") ||
            in.at == NULL || log.at == NULL || in.len == 0)
            continue;
        struct buf bytes = {0};
        unescape(slice_of(in.at, in.len - 1), &bytes);
        if (!run_case(strncmp(name, "request", 7) == 0, buf_slice(&bytes), log)) {
            print_message("%s: %.*s\n", name, SLICE_ARG(title));
            failed++;
        }
        buf_free(&bytes);
    }
    print_message("%s: %u the same, %u refused by both, %u refused by us alone\n", name, counts[0],
                  counts[1], counts[2]);
    buf_free(&file);
    assert_int_equal(failed, 0);
    assert_true(counts[0] + counts[1] + counts[2] > 0);
}

int main(void)
{
    static char files[][40] = {"request/connection.md",
                               "request/content-length.md",
                               "request/invalid.md",
                               "request/method.md",
                               "request/pausing.md",
                               "request/pipelining.md",
                               "request/sample.md",
                               "request/transfer-encoding.md",
                               "request/uri.md",
                               "response/connection.md",
                               "response/content-length.md",
                               "response/invalid.md",
                               "response/pausing.md",
                               "response/pipelining.md",
                               "response/sample.md",
                               "response/transfer-encoding.md"};
    struct CMUnitTest tests[ARRAY_LEN(files)];
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        tests[i] =
            (struct CMUnitTest){.name = files[i], .test_func = run_file, .initial_state = files[i]};
    return cmocka_run_group_tests_name("http/llhttp", tests, NULL, NULL);
}
