#include "http/head.h"

#include "base/check.h"
#include "base/err.h"
#include "http/authority.h"
#include "http/chars.h"

const struct http_limits http_limits_default = {
    .head_bytes_max = 32 << 10, .target_bytes_max = 8 << 10, .fields_max = 100};

enum { EMPTY_LINES_MAX = 2, METHOD_BYTES_MAX = 32 };

/* --- scanning ------------------------------------------------------------------------------- */

static int refuse(struct http_head *h, int err, unsigned status, const char *text)
{
    h->refusal = status;
    h->refusal_text = text;
    return err;
}

static int bad(struct http_head *h, const char *text)
{
    return refuse(h, ERR_SYNTAX, 400, text);
}

static uint64_t load_le64(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof w);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

/* The first byte not allowed in a field value or a reason phrase, or `end`. Tests eight bytes at a
 * time: a byte below 0x20 borrows into the byte's top bit, and so does DEL after the XOR. Borrows
 * only spoil bytes behind a true hit, so the lowest hit is exact. */
static const char *value_end(const char *p, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t tops = ones << 7;
    while (end - p >= 8) {
        uint64_t w = load_le64(p);
        uint64_t del = w ^ (ones * 0x7f);
        uint64_t hits = (((w - ones * 0x20) & ~w) | ((del - ones) & ~del)) & tops;
        if (hits == 0) {
            p += 8;
            continue;
        }
        p += __builtin_ctzll(hits) / 8;
        if (*p != '\t')
            return p;
        p++;
    }
    while (p < end && http_char_is(*p, HTTP_CHAR_VALUE))
        p++;
    return p;
}

/* Moves *p behind the CRLF at *p. ERR_AGAIN: cut by `end`. ERR_SYNTAX: no CRLF. */
static int line_end(struct http_head *h, const char **p, const char *end)
{
    if (*p == end)
        return ERR_AGAIN;
    if (**p == '\n')
        return bad(h, "bare LF");
    if (**p != '\r')
        return bad(h, "control byte");
    if (end - *p < 2)
        return ERR_AGAIN;
    if ((*p)[1] != '\n')
        return bad(h, "bare CR");
    *p += 2;
    return 0;
}

/* --- fields --------------------------------------------------------------------------------- */

/* True for names such as Content_Length, which CGI and others read as Content-Length. */
static bool is_disguised(struct slice name)
{
    if ((name.len != 14 || name.at[7] != '_') && (name.len != 17 || name.at[8] != '_'))
        return false;
    char plain[17];
    memcpy(plain, name.at, name.len);
    plain[name.len == 14 ? 7 : 8] = '-';
    enum http_field_id id = http_field_lookup(slice_of(plain, name.len));
    return id == HTTP_CONTENT_LENGTH || id == HTTP_TRANSFER_ENCODING;
}

static int field_name_error(struct http_head *h, const char *start, const char *p)
{
    if (*p == ' ' || *p == '\t') {
        if (p > start)
            return bad(h, "space in or behind a field name");
        return bad(h, h->field_count == 0 ? "space before the first field" : "folded line");
    }
    if (*p == ':')
        return bad(h, "empty field name");
    if (*p == '\n')
        return bad(h, "bare LF");
    if (*p == '\r')
        return bad(h, "field without colon");
    return bad(h, "byte that a field name cannot hold");
}

static int field_note(struct http_head *h, struct http_field *f)
{
    enum http_field_id id = http_field_lookup(f->name);
    f->id = (uint8_t)id;
    if (id == HTTP_FIELD_OTHER)
        return is_disguised(f->name) ? bad(h, "disguised framing field") : 0;
    if (h->first[id] == 0) {
        h->first[id] = (uint16_t)(h->field_count + 1);
        return 0;
    }
    const uint64_t once = HTTP_FIELD_BIT(HTTP_HOST) | HTTP_FIELD_BIT(HTTP_CONTENT_LENGTH) |
                          HTTP_FIELD_BIT(HTTP_TRANSFER_ENCODING);
    if ((once & HTTP_FIELD_BIT(id)) == 0)
        return 0;
    return bad(h, id == HTTP_HOST             ? "repeated Host"
                  : id == HTTP_CONTENT_LENGTH ? "repeated Content-Length"
                                              : "repeated Transfer-Encoding");
}

/* Parses all fields and the blank line from *at on, and moves *at behind them. */
static int fields_parse(struct http_head *h, const char **at, const char *end, unsigned fields_max)
{
    const char *p = *at;
    for (;;) {
        if (p == end)
            return ERR_AGAIN;
        if (*p == '\r') {
            *at = p;
            return line_end(h, at, end);
        }
        const char *start = p;
        while (p < end && http_char_is(*p, HTTP_CHAR_TOKEN))
            p++;
        if (p == end)
            return ERR_AGAIN;
        if (*p != ':' || p == start)
            return field_name_error(h, start, p);
        if (h->field_count == fields_max) {
            h->fields_exceeded = true;
            return refuse(h, ERR_LIMIT, 431, "too many fields");
        }
        struct http_field *f = &h->fields[h->field_count];
        f->name = slice_of(start, (size_t)(p - start));

        p++;
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        start = p;
        p = value_end(p, end);
        const char *stop = p;
        int err = line_end(h, &p, end);
        if (err != 0)
            return err;
        while (stop > start && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
        f->value = slice_of(start, (size_t)(stop - start));
        err = field_note(h, f);
        if (err != 0)
            return err;
        h->field_count++;
    }
}

/* --- what the fields mean ------------------------------------------------------------------- */

static bool is_token(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!http_char_is(s.at[i], HTTP_CHAR_TOKEN))
            return false;
    }
    return s.len > 0;
}

bool http_list_has(struct slice list, struct slice token)
{
    while (list.len > 0) {
        if (slice_equal_nocase(slice_trim(slice_cut(&list, ',')), token))
            return true;
    }
    return false;
}

static int connection_parse(struct http_head *h)
{
    bool close = false;
    bool keep_alive = false;
    for (unsigned i = h->first[HTTP_CONNECTION]; i != 0 && i <= h->field_count; i++) {
        if (h->fields[i - 1].id != HTTP_CONNECTION)
            continue;
        struct slice list = h->fields[i - 1].value;
        while (list.len > 0) {
            struct slice option = slice_trim(slice_cut(&list, ','));
            if (option.len == 0)
                continue;
            if (!is_token(option))
                return bad(h, "malformed Connection");
            if (slice_equal_nocase(option, SLICE("close")))
                close = true;
            else if (slice_equal_nocase(option, SLICE("keep-alive")))
                keep_alive = true;
            else
                h->connection_names = true;
        }
    }
    h->keep_alive = !close && (h->minor >= 1 || keep_alive);
    return 0;
}

/* Only "chunked" is understood. Other valid codings, alone or in front of it, get 501; a list that
 * no coding could make valid gets 400. */
static int transfer_encoding_parse(struct http_head *h, struct slice list)
{
    if (slice_equal_nocase(list, SLICE("chunked"))) {
        h->framing = HTTP_BODY_CHUNKED;
        return 0;
    }
    bool chunked = false;
    bool more = true;
    while (more) {
        more = slice_find(list, ',') < list.len;
        struct slice coding = slice_trim(slice_cut(&list, ','));
        if (chunked)
            return bad(h, "chunked is not the last transfer coding");
        if (!is_token(coding))
            return bad(h, "malformed Transfer-Encoding");
        chunked = slice_equal_nocase(coding, SLICE("chunked"));
    }
    return refuse(h, ERR_UNSUPPORTED, 501, "transfer coding other than chunked");
}

/* Sets the body's framing and length (RFC 9112, section 6). */
static int framing_parse(struct http_head *h)
{
    unsigned length = h->first[HTTP_CONTENT_LENGTH];
    unsigned coding = h->first[HTTP_TRANSFER_ENCODING];
    if (coding != 0) {
        if (h->minor == 0)
            return bad(h, "Transfer-Encoding in HTTP/1.0");
        if (length != 0)
            return bad(h, "Content-Length together with Transfer-Encoding");
        return transfer_encoding_parse(h, h->fields[coding - 1].value);
    }
    if (length != 0) {
        if (slice_to_u64(h->fields[length - 1].value, &h->content_length) != 0)
            return bad(h, "malformed Content-Length");
        h->framing = HTTP_BODY_LENGTH;
        h->length_given = true;
    }
    return 0;
}

/* Sets h->host (RFC 9112, section 3.2). target_parse() has checked a host in the target. */
static int host_parse(struct http_head *h)
{
    unsigned i = h->first[HTTP_HOST];
    if (i == 0)
        return h->minor == 0 ? 0 : bad(h, "no Host");
    struct slice host = h->fields[i - 1].value;
    bool in_target = h->host.len > 0; /* the target's host wins (RFC 9112, section */
    if (in_target && host.len == 0)   /* 3.2.2), and Host may be empty */
        return 0;
    if (!http_authority_is_valid(host))
        return bad(h, "malformed Host");
    h->host = in_target ? h->host : host;
    return 0;
}

static int expect_parse(struct http_head *h)
{
    for (unsigned i = h->first[HTTP_EXPECT]; i != 0 && i <= h->field_count; i++) {
        if (h->fields[i - 1].id != HTTP_EXPECT)
            continue;
        if (!slice_equal_nocase(h->fields[i - 1].value, SLICE("100-continue")))
            return refuse(h, ERR_UNSUPPORTED, 417, "expectation other than 100-continue");
        /* HTTP/1.0 has no status 100, and a client without a body does not wait for a 100. */
        h->expect_continue = h->minor >= 1 && h->framing != HTTP_BODY_NONE &&
                             (h->framing != HTTP_BODY_LENGTH || h->content_length > 0);
    }
    return 0;
}

/* --- request line --------------------------------------------------------------------------- */

static enum http_method method_of(struct slice s)
{
    switch (s.len) {
    case 3:
        return memcmp(s.at, "GET", 3) == 0   ? HTTP_METHOD_GET
               : memcmp(s.at, "PUT", 3) == 0 ? HTTP_METHOD_PUT
                                             : HTTP_METHOD_OTHER;
    case 4:
        return memcmp(s.at, "POST", 4) == 0   ? HTTP_METHOD_POST
               : memcmp(s.at, "HEAD", 4) == 0 ? HTTP_METHOD_HEAD
                                              : HTTP_METHOD_OTHER;
    case 5:
        return memcmp(s.at, "PATCH", 5) == 0 ? HTTP_METHOD_PATCH : HTTP_METHOD_OTHER;
    case 6:
        return memcmp(s.at, "DELETE", 6) == 0 ? HTTP_METHOD_DELETE : HTTP_METHOD_OTHER;
    case 7:
        return memcmp(s.at, "OPTIONS", 7) == 0 ? HTTP_METHOD_OPTIONS : HTTP_METHOD_OTHER;
    default:
        return HTTP_METHOD_OTHER;
    }
}

/* Accepts only "HTTP/1.0" and "HTTP/1.1". `at` has the rest of the line. */
static int version_parse(struct http_head *h, const char *at, size_t len)
{
    if (len != 8 || memcmp(at, "HTTP/", 5) != 0 || !http_char_is(at[5], HTTP_CHAR_DIGIT) ||
        at[6] != '.' || !http_char_is(at[7], HTTP_CHAR_DIGIT))
        return bad(h, "malformed HTTP version");
    if (at[5] != '1' || at[7] > '1')
        return refuse(h, ERR_UNSUPPORTED, 505, "HTTP version other than 1.0 and 1.1");
    h->minor = (unsigned)(at[7] - '0');
    return 0;
}

static bool percents_are_valid(struct slice s)
{
    for (size_t i = slice_find(s, '%'); i < s.len; i++) {
        if (s.at[i] == '%' && (s.len - i < 3 || !http_char_is(s.at[i + 1], HTTP_CHAR_HEX) ||
                               !http_char_is(s.at[i + 2], HTTP_CHAR_HEX)))
            return false;
    }
    return true;
}

/* Parses the target in the four forms of RFC 9112, section 3.2. */
static int target_parse(struct http_head *h)
{
    struct slice t = h->target;
    if (h->method == HTTP_METHOD_OTHER)
        return refuse(h, ERR_UNSUPPORTED, 501, "method is not supported");
    if (!percents_are_valid(t))
        return bad(h, "malformed percent-encoding in the target");
    if (slice_equal(t, SLICE("*"))) {
        if (h->method != HTTP_METHOD_OPTIONS)
            return bad(h, "target * is for OPTIONS only");
        h->path = t;
        return 0;
    }
    size_t scheme = slice_find(t, ':') + sizeof "://" - 1; /* a proxy may have terminated TLS */
    if (t.len > scheme && (slice_equal_nocase(slice_of(t.at, scheme), SLICE("http://")) ||
                           slice_equal_nocase(slice_of(t.at, scheme), SLICE("https://")))) {
        t = slice_skip(t, scheme);
        size_t n = slice_find(t, '/');
        size_t question = slice_find(t, '?');
        if (question < n)
            n = question;
        h->host = slice_of(t.at, n);
        if (!http_authority_is_valid(h->host))
            return bad(h, "malformed authority in the target");
        t = slice_skip(t, n);
    } else if (t.at[0] != '/') {
        return bad(h, "target is neither a path nor an http URL");
    }
    size_t question = slice_find(t, '?');
    h->path = slice_of(t.at, question);
    h->has_query = question < t.len;
    h->query = slice_skip(t, question + 1);
    if (h->path.len == 0)
        h->path = h->method == HTTP_METHOD_OPTIONS && !h->has_query ? SLICE("*") : SLICE("/");
    return 0;
}

static int request_line_parse(struct http_head *h, const char **at, const char *end,
                              size_t target_bytes_max)
{
    const char *p = *at;
    const char *start = p;
    while (p < end && http_char_is(*p, HTTP_CHAR_TOKEN))
        p++;
    h->method_text = slice_of(start, (size_t)(p - start));
    if (h->method_text.len > METHOD_BYTES_MAX)
        return refuse(h, ERR_UNSUPPORTED, 501, "method is not supported");
    if (p == end)
        return ERR_AGAIN;
    if (*p != ' ' || p == start)
        return bad(h, "malformed method");
    h->method = method_of(h->method_text);

    start = ++p;
    while (p < end && http_char_is(*p, HTTP_CHAR_TARGET))
        p++;
    h->target = slice_of(start, (size_t)(p - start));
    if (h->target.len > target_bytes_max)
        return refuse(h, ERR_LIMIT, 414, "target is too long");
    if (p == end)
        return ERR_AGAIN;
    if (*p != ' ' || p == start)
        return bad(h, "malformed target");

    start = ++p;
    while (p < end && p - start < 9 && *p >= ' ' && *p < 0x7f)
        p++;
    if (p == end)
        return ERR_AGAIN;
    const char *stop = p;
    if (stop - start == 9)
        return bad(h, "malformed HTTP version");
    int err = line_end(h, &p, end);
    if (err == 0)
        err = version_parse(h, start, (size_t)(stop - start));
    if (err == 0)
        err = target_parse(h);
    *at = p;
    return err;
}

/* --- whole heads ---------------------------------------------------------------------------- */

/* Clears all members but the array of fields. */
static void head_clear(struct http_head *h, const char *at)
{
    memset(h, 0, offsetof(struct http_head, fields));
    memset(h->first, 0, sizeof *h - offsetof(struct http_head, first));
    h->at = at;
    h->host = h->path = h->query = slice_of("", 0);
}

/* Refuses an incomplete head at the size limit: such a head can never become complete. */
static int head_again(struct http_head *h, int err, size_t len, size_t head_bytes_max)
{
    if (err == ERR_AGAIN && len >= head_bytes_max)
        return refuse(h, ERR_LIMIT, 431, "head is too large");
    return err;
}

static const char *empty_lines_skip(const char *p, const char *end)
{
    for (int i = 0; i < EMPTY_LINES_MAX && end - p >= 2 && p[0] == '\r' && p[1] == '\n'; i++)
        p += 2;
    return p;
}

/* Invariants 1 and 2 of head.h, after a head was parsed. */
static bool lines_fit(const struct http_head *h)
{
    for (unsigned i = 0; i < h->field_count; i++) {
        const struct http_field *f = &h->fields[i];
        const char *next = i + 1 < h->field_count ? h->fields[i + 1].name.at : h->at + h->bytes - 2;
        if (f->name.len == 0 || f->name.at < h->at || f->value.at + f->value.len + 2 > next ||
            next[-2] != '\r' || next[-1] != '\n' || memchr(f->value.at, '\n', f->value.len) != NULL)
            return false;
    }
    return true;
}

static void head_check(const struct http_head *h, size_t len, const struct http_limits *limits)
{
    CHECK(h->bytes > 0 && h->bytes <= len && h->bytes <= limits->head_bytes_max);
    CHECK(h->field_count <= limits->fields_max);
    CHECK(h->framing == HTTP_BODY_LENGTH || h->length_given || h->content_length == 0);
    CHECK(h->framing != HTTP_BODY_CHUNKED || !h->length_given);
    CHECK_SLOW(lines_fit(h));
}

static int request_parse(struct http_head *h, const char *at, const char *end,
                         const struct http_limits *limits)
{
    const char *p = empty_lines_skip(at, end);
    if (end - p == 1 && *p == '\r' && p < at + 2 * EMPTY_LINES_MAX)
        return ERR_AGAIN;
    int err = request_line_parse(h, &p, end, limits->target_bytes_max);
    if (err == 0)
        err = fields_parse(h, &p, end, limits->fields_max);
    if (err == 0)
        err = connection_parse(h);
    if (err == 0)
        err = framing_parse(h);
    if (err == 0)
        err = host_parse(h);
    if (err == 0)
        err = expect_parse(h);
    h->bytes = (size_t)(p - at);
    return err;
}

int http_request_parse(struct http_head *head, const char *at, size_t len,
                       const struct http_limits *limits)
{
    CHECK(limits->fields_max <= HTTP_FIELDS_MAX);
    head_clear(head, at);
    if (len == 0)
        return ERR_AGAIN;
    size_t room = len < limits->head_bytes_max ? len : limits->head_bytes_max;
    int err = request_parse(head, at, at + room, limits);
    if (err == 0)
        head_check(head, len, limits);
    return head_again(head, err, len, limits->head_bytes_max);
}

static int status_line_parse(struct http_head *h, const char **at, const char *end)
{
    const char *p = *at;
    static const char start[] = "HTTP/1.";
    size_t n = (size_t)(end - p) < 7 ? (size_t)(end - p) : 7;
    if (memcmp(p, start, n) != 0)
        return bad(h, "not an HTTP/1 response");
    if (end - p < 13)
        return ERR_AGAIN; /* even without a reason phrase more bytes must follow */
    if (p[7] != '0' && p[7] != '1')
        return bad(h, "HTTP version other than 1.0 and 1.1");
    h->minor = (unsigned)(p[7] - '0');
    if (p[8] != ' ' || p[9] < '1' || p[9] > '5' || !http_char_is(p[10], HTTP_CHAR_DIGIT) ||
        !http_char_is(p[11], HTTP_CHAR_DIGIT))
        return bad(h, "malformed status");
    h->status =
        (unsigned)(p[9] - '0') * 100 + (unsigned)(p[10] - '0') * 10 + (unsigned)(p[11] - '0');
    p += 12;
    if (*p == ' ') {
        const char *stop = value_end(++p, end);
        h->reason = slice_of(p, (size_t)(stop - p));
        p = stop;
    }
    *at = p;
    return line_end(h, at, end);
}

static int response_parse(struct http_head *h, const char *at, const char *end, bool head_request,
                          unsigned fields_max)
{
    const char *p = at;
    int err = status_line_parse(h, &p, end);
    if (err == 0)
        err = fields_parse(h, &p, end, fields_max);
    if (err == 0)
        err = connection_parse(h);
    if (err == 0)
        err = framing_parse(h);
    if (err != 0)
        return err;
    h->bytes = (size_t)(p - at);
    if (h->status == 101)
        return refuse(h, ERR_UNSUPPORTED, 502, "upgrade that nobody asked for");
    if (head_request || h->status < 200 || h->status == 204 || h->status == 304) {
        h->framing = HTTP_BODY_NONE;
    } else if (h->framing == HTTP_BODY_NONE) {
        h->framing = HTTP_BODY_UNTIL_CLOSE;
        h->keep_alive = false;
    }
    return 0;
}

int http_response_parse(struct http_head *head, const char *at, size_t len, bool head_request,
                        const struct http_limits *limits)
{
    CHECK(limits->fields_max <= HTTP_FIELDS_MAX);
    head_clear(head, at);
    head->reason = slice_of("", 0);
    if (len == 0)
        return ERR_AGAIN;
    size_t room = len < limits->head_bytes_max ? len : limits->head_bytes_max;
    int err = response_parse(head, at, at + room, head_request, limits->fields_max);
    if (err == 0)
        head_check(head, len, limits);
    err = head_again(head, err, len, limits->head_bytes_max);
    if (err != 0 && err != ERR_AGAIN)
        head->refusal = 502; /* the client gets 502 for any fault of the engine's response */
    return err;
}

bool http_head_progress(struct http_progress *progress, const char *at, size_t len,
                        const struct http_limits *limits)
{
    CHECK(progress->searched <= len && progress->line_start <= progress->searched);
    bool worth = len >= progress->parse_again || len >= limits->head_bytes_max;
    size_t i = progress->searched;
    while (!worth && i < len) {
        const char *lf = memchr(at + i, '\n', len - i);
        if (lf == NULL)
            break;
        i = (size_t)(lf - at) + 1;
        size_t line = i - progress->line_start;
        worth = line <= 2 || at[i - 2] != '\r'; /* blank, or a bare LF */
        progress->line_start = i;
    }
    progress->searched = worth ? i : len;
    if (worth)
        progress->parse_again = 2 * len;
    return worth;
}

struct slice http_head_find(const struct http_head *head, struct slice name)
{
    for (unsigned i = 0; i < head->field_count; i++) {
        if (slice_equal_nocase(head->fields[i].name, name))
            return head->fields[i].value;
    }
    return slice_of(NULL, 0);
}
