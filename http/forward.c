#include "http/forward.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"

#define BIT(id) HTTP_FIELD_BIT(HTTP_##id)

static const uint64_t hop_by_hop = BIT(CONNECTION) | BIT(KEEP_ALIVE) | BIT(PROXY_CONNECTION) |
                                   BIT(TE) | BIT(TRAILER) | BIT(TRANSFER_ENCODING) | BIT(UPGRADE) |
                                   BIT(PROXY_AUTHENTICATE) | BIT(PROXY_AUTHENTICATION_INFO) |
                                   BIT(PROXY_AUTHORIZATION) | BIT(HTTP2_SETTINGS);

/* Fields not copied. (The router requests ORCA reports for itself, so these are removed.) */
static const uint64_t written_anew = BIT(CONTENT_LENGTH) | BIT(EXPECT) | BIT(ENDPOINT_LOAD_METRICS);

/* --- a cursor over reserved room ------------------------------------------------------------ */

struct cursor {
    char *at;
    const char *end;
};

static void put(struct cursor *c, const char *at, size_t len)
{
    CHECK(len <= (size_t)(c->end - c->at));
    memcpy(c->at, at, len);
    c->at += len;
}

#define PUT(c, literal) put((c), (literal), sizeof(literal) - 1)

static void put_slice(struct cursor *c, struct slice s)
{
    if (s.len > 0)
        put(c, s.at, s.len);
}

static void put_u64(struct cursor *c, uint64_t value)
{
    char digits[20];
    size_t i = sizeof digits;
    do
        digits[--i] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    put(c, digits + i, sizeof digits - i);
}

static void put_line(struct cursor *c, struct slice name, struct slice value)
{
    put_slice(c, name);
    PUT(c, ": ");
    put_slice(c, value);
    PUT(c, "\r\n");
}

static void put_framing(struct cursor *c, enum http_framing framing, uint64_t content_length)
{
    if (framing == HTTP_BODY_LENGTH) {
        PUT(c, "Content-Length: ");
        put_u64(c, content_length);
        PUT(c, "\r\n");
    } else if (framing == HTTP_BODY_CHUNKED) {
        PUT(c, "Transfer-Encoding: chunked\r\n");
    }
}

static int cursor_open(struct cursor *c, struct buf *out, size_t room)
{
    int err = buf_reserve(out, room);
    if (err != 0)
        return err;
    c->at = out->at + out->len;
    c->end = c->at + room;
    return 0;
}

static void cursor_close(const struct cursor *c, struct buf *out)
{
    out->len = (size_t)(c->at - out->at);
}

/* --- copying fields ------------------------------------------------------------------------- */

static bool connection_lists(const struct http_head *h, struct slice name)
{
    for (unsigned i = h->first[HTTP_CONNECTION]; i != 0 && i <= h->field_count; i++) {
        if (h->fields[i - 1].id == HTTP_CONNECTION && http_list_has(h->fields[i - 1].value, name))
            return true;
    }
    return false;
}

/* Copies all fields but those in `drop`. Lines follow each other in the buffer, so neighbouring
 * lines that stay are copied together. */
static void put_fields(struct cursor *c, const struct http_head *h, uint64_t drop)
{
    const char *end = h->at + h->bytes - 2;
    const char *run = NULL;
    for (unsigned i = 0; i < h->field_count; i++) {
        const struct http_field *f = &h->fields[i];
        bool keep = (drop & HTTP_FIELD_BIT(f->id)) == 0;
        if (keep && h->connection_names && f->id == HTTP_FIELD_OTHER)
            keep = !connection_lists(h, f->name);
        if (keep && run == NULL) {
            run = f->name.at;
        } else if (!keep && run != NULL) {
            put(c, run, (size_t)(f->name.at - run));
            run = NULL;
        }
    }
    if (run != NULL)
        put(c, run, (size_t)(end - run));
}

static uint64_t extra_fields(const struct http_line *extra, size_t count)
{
    uint64_t fields = 0;
    for (size_t i = 0; i < count; i++)
        fields |= HTTP_FIELD_BIT(http_field_lookup(extra[i].name));
    return fields & ~HTTP_FIELD_BIT(HTTP_FIELD_OTHER);
}

static size_t extra_room(const struct http_line *extra, size_t count)
{
    size_t room = 0;
    for (size_t i = 0; i < count; i++)
        room += extra[i].name.len + extra[i].value.len + 4;
    return room;
}

static void put_extra(struct cursor *c, const struct http_line *extra, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_line(c, extra[i].name, extra[i].value);
}

/* --- requests ------------------------------------------------------------------------------- */

/* Writes the values of all fields with this id, each followed by a comma. */
static void put_list_so_far(struct cursor *c, const struct http_head *h, enum http_field_id id)
{
    for (unsigned i = h->first[id]; i != 0 && i <= h->field_count; i++) {
        if (h->fields[i - 1].id != id || h->fields[i - 1].value.len == 0)
            continue;
        put_slice(c, h->fields[i - 1].value);
        PUT(c, ", ");
    }
}

/* Writes an element of Forwarded (RFC 7239). An IPv6 address and a port need quotes; neither can
 * have a character to escape. */
static void put_forwarded(struct cursor *c, const struct http_forward_request *how,
                          struct slice host, struct slice proto)
{
    bool ipv6 = slice_find(how->client_address, ':') < how->client_address.len;
    if (ipv6) {
        PUT(c, "for=\"[");
        put_slice(c, how->client_address);
        PUT(c, "]\"");
    } else {
        PUT(c, "for=");
        put_slice(c, how->client_address);
    }
    if (host.len > 0) {
        PUT(c, ";host=\"");
        put_slice(c, host);
        PUT(c, "\"");
    }
    PUT(c, ";proto=");
    put_slice(c, proto);
    PUT(c, "\r\n");
}

static void put_forwarding(struct cursor *c, const struct http_head *h,
                           const struct http_forward_request *how, uint64_t *drop)
{
    struct slice proto = how->proto.len > 0 ? how->proto : SLICE("http");
    bool trust = !how->distrust_client;
    if (!trust)
        *drop |= BIT(FORWARDED) | BIT(X_FORWARDED_FOR) | BIT(X_FORWARDED_PROTO) |
                 BIT(X_FORWARDED_HOST) | BIT(X_REAL_IP) | BIT(FORWARDING);
    if (how->client_address.len == 0)
        return;

    *drop |= BIT(X_FORWARDED_FOR);
    PUT(c, "X-Forwarded-For: ");
    if (trust)
        put_list_so_far(c, h, HTTP_X_FORWARDED_FOR);
    put_slice(c, how->client_address);
    PUT(c, "\r\n");
    if (!trust || !http_head_has(h, HTTP_X_FORWARDED_PROTO)) {
        PUT(c, "X-Forwarded-Proto: ");
        put_slice(c, proto);
        PUT(c, "\r\n");
    }
    if (h->host.len > 0 && (!trust || !http_head_has(h, HTTP_X_FORWARDED_HOST))) {
        PUT(c, "X-Forwarded-Host: ");
        put_slice(c, h->host);
        PUT(c, "\r\n");
    }
    if (trust && http_head_has(h, HTTP_FORWARDED)) {
        *drop |= BIT(FORWARDED);
        PUT(c, "Forwarded: ");
        put_list_so_far(c, h, HTTP_FORWARDED);
        put_forwarded(c, how, h->host, proto);
    }
}

/* Returns received-by of a member of Via, which has the form [protocol/]version SP received-by
 * [comment]. */
static struct slice received_by(struct slice member)
{
    (void)slice_cut(&member, ' ');
    member = slice_trim(member);
    return slice_cut(&member, ' ');
}

unsigned http_via_routers(const struct http_head *h, struct slice self, bool *passed_self)
{
    unsigned routers = 0;
    *passed_self = false;
    for (unsigned i = h->first[HTTP_VIA]; i != 0 && i <= h->field_count; i++) {
        if (h->fields[i - 1].id != HTTP_VIA)
            continue;
        struct slice rest = h->fields[i - 1].value;
        while (rest.len > 0) {
            struct slice by = received_by(slice_trim(slice_cut(&rest, ',')));
            routers += slice_starts_with(by, SLICE(HTTP_VIA_ROUTER));
            *passed_self = *passed_self || slice_equal(by, self);
        }
    }
    return routers;
}

/* Writes Via with this router at the end. Via is never dropped, not even from an untrusted client:
 * loops are detected by Via's list of routers. */
static void put_via(struct cursor *c, const struct http_head *h, struct slice via)
{
    PUT(c, "Via: ");
    put_list_so_far(c, h, HTTP_VIA);
    PUT(c, "1.");
    put_u64(c, h->minor);
    PUT(c, " ");
    put_slice(c, via);
    PUT(c, "\r\n");
}

static void put_request_line(struct cursor *c, const struct http_head *h, struct slice path)
{
    put_slice(c, h->method_text);
    PUT(c, " ");
    put_slice(c, path);
    if (h->has_query) {
        PUT(c, "?");
        put_slice(c, h->query);
    }
    PUT(c, " HTTP/1.1\r\n");
}

/* True if a parser reads the forwarded head as the router read the original. Otherwise a second
 * request could hide in the head. */
static bool request_reads_back(struct slice text, const struct http_forward_request *how)
{
    static const struct http_limits limits = {SIZE_MAX, SIZE_MAX, HTTP_FIELDS_MAX};
    struct http_head head;
    int err = http_request_parse(&head, text.at, text.len, &limits);
    if (err == ERR_LIMIT)
        return true; /* with the added fields there may be more than this parser takes */
    return err == 0 && head.bytes == text.len && head.framing == how->framing &&
           (how->framing != HTTP_BODY_LENGTH || head.content_length == how->content_length);
}

int http_forward_request_write(struct buf *out, const struct http_head *h,
                               const struct http_forward_request *how)
{
    enum { FIXED_ROOM = 512 }; /* for names, separators and a length, not in the sums below */
    struct slice host = how->host.len > 0 ? how->host : h->host;
    if (host.len == 0)
        host = how->host_fallback;
    CHECK(host.len > 0);
    CHECK(how->framing != HTTP_BODY_UNTIL_CLOSE);

    /* h->bytes covers the head's own lines, joined lists included: a separator takes less than the
     * 4 bytes of each line outside the value. The host is written up to three times; proto and
     * client address up to twice. */
    struct cursor c;
    size_t room = h->bytes + FIXED_ROOM + 3 * (host.len + h->host.len) +
                  2 * (how->client_address.len + how->proto.len) + how->request_id.len +
                  how->path.len + how->via.len + extra_room(how->extra, how->extra_count);
    int err = cursor_open(&c, out, room);
    if (err != 0)
        return err;

    uint64_t drop =
        hop_by_hop | written_anew | how->drop | extra_fields(how->extra, how->extra_count);
    put_request_line(&c, h, how->path.len > 0 ? how->path : h->path);
    drop |= BIT(HOST);
    put_line(&c, SLICE("Host"), host);
    if (how->request_id.len > 0)
        drop |= BIT(X_REQUEST_ID);
    put_forwarding(&c, h, how, &drop);
    if (how->via.len > 0) {
        drop |= BIT(VIA);
        put_via(&c, h, how->via);
    }
    put_fields(&c, h, drop);
    if (how->request_id.len > 0)
        put_line(&c, SLICE("X-Request-Id"), how->request_id);
    put_framing(&c, how->framing, how->content_length);
    put_extra(&c, how->extra, how->extra_count);
    PUT(&c, "\r\n");
    size_t start = out->len;
    cursor_close(&c, out);
    CHECK_SLOW(request_reads_back(slice_of(out->at + start, out->len - start), how));
    return 0;
}

/* --- responses ------------------------------------------------------------------------------ */

enum http_framing http_forward_response_framing(const struct http_head *h, unsigned client_minor)
{
    if (h->framing == HTTP_BODY_CHUNKED || h->framing == HTTP_BODY_UNTIL_CLOSE)
        return client_minor == 0 ? HTTP_BODY_UNTIL_CLOSE : HTTP_BODY_CHUNKED;
    return h->framing;
}

static bool response_reads_back(struct slice text, const struct http_head *h,
                                const struct http_forward_response *how)
{
    static const struct http_limits limits = {SIZE_MAX, 0, HTTP_FIELDS_MAX};
    struct http_head head;
    int err =
        http_response_parse(&head, text.at, text.len, how->framing == HTTP_BODY_NONE, &limits);
    if (err == ERR_LIMIT)
        return true;
    return err == 0 && head.bytes == text.len && head.status == h->status &&
           head.framing == how->framing;
}

int http_forward_response_write(struct buf *out, const struct http_head *h,
                                const struct http_forward_response *how)
{
    enum { FIXED_ROOM = 128 };
    CHECK(h->status >= 100 && h->status <= 599);
    CHECK(how->client_minor >= 1 || how->framing != HTTP_BODY_CHUNKED);
    CHECK(!how->keep_alive || how->framing != HTTP_BODY_UNTIL_CLOSE);
    struct cursor c;
    int err =
        cursor_open(&c, out, h->bytes + FIXED_ROOM + extra_room(how->extra, how->extra_count));
    if (err != 0)
        return err;

    PUT(&c, "HTTP/1.1 ");
    put_u64(&c, h->status);
    PUT(&c, " ");
    put_slice(&c, h->reason);
    PUT(&c, "\r\n");
    put_fields(&c, h,
               hop_by_hop | written_anew | BIT(X_GRAPEVINE) | BIT(X_GRAPEVINE_REPLICA) | how->drop |
                   extra_fields(how->extra, how->extra_count));
    put_framing(&c, how->framing, how->content_length);
    /* For HEAD and 304, Content-Length is the length of the unsent body. */
    if (how->framing == HTTP_BODY_NONE && h->length_given && h->status >= 200 && h->status != 204)
        put_framing(&c, HTTP_BODY_LENGTH, h->content_length);
    if (!how->keep_alive)
        PUT(&c, "Connection: close\r\n");
    else if (how->client_minor == 0)
        PUT(&c, "Connection: keep-alive\r\n");
    put_extra(&c, how->extra, how->extra_count);
    PUT(&c, "\r\n");
    size_t start = out->len;
    cursor_close(&c, out);
    CHECK_SLOW(response_reads_back(slice_of(out->at + start, out->len - start), h, how));
    return 0;
}

int http_forward_length_write(struct buf *out, uint64_t content_length)
{
    CHECK(slice_ends_with(buf_slice(out), SLICE("\r\n\r\n")));
    out->len -= 2; /* the new line goes before the blank line */
    int err = buf_printf(out, "Content-Length: %llu\r\n\r\n", (unsigned long long)content_length);
    if (err != 0)
        out->len += 2;
    return err;
}

int http_forward_host_set(struct buf *head, struct slice host)
{
    static const struct slice name =
        SLICE("\nHost: "); /* as written by http_forward_request_write() */
    const char *line = memchr(head->at, '\n', head->len);
    CHECK(line != NULL);
    size_t at = (size_t)(line - head->at);
    CHECK(head->len - at > name.len && memcmp(line, name.at, name.len) == 0);
    size_t from = at + name.len;
    const char *end = memchr(head->at + from, '\r', head->len - from);
    CHECK(end != NULL);
    size_t to = (size_t)(end - head->at);
    if (host.len != to - from) {
        int err = buf_reserve(head, host.len);
        if (err != 0)
            return err;
        memmove(head->at + from + host.len, head->at + to, head->len - to);
        head->len = head->len - (to - from) + host.len;
    }
    memcpy(head->at + from, host.at, host.len);
    return ERR_OK;
}

int http_forward_length_change(struct buf *head, uint64_t content_length)
{
    static const struct slice name =
        SLICE("\r\nContent-Length: "); /* as written by put_framing() */
    const char *at = memmem(head->at, head->len, name.at, name.len);
    CHECK(at != NULL);
    size_t from = (size_t)(at - head->at) + name.len, to = from;
    while (head->at[to] != '\r')
        to++;
    char digits[24];
    size_t len =
        (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)content_length);
    int err = buf_reserve(head, len);
    if (err != 0)
        return err;
    memmove(head->at + from + len, head->at + to, head->len - to);
    memcpy(head->at + from, digits, len);
    head->len += len - (to - from);
    return ERR_OK;
}

/* True if `line`, CRLF included, is a field of this name. */
static bool is_field(struct slice line, struct slice name)
{
    return line.len > name.len && line.at[name.len] == ':' &&
           slice_equal_nocase(slice_of(line.at, name.len), name);
}

static void fields_remove(struct buf *head, struct slice name)
{
    size_t from = 0, kept = 0;
    while (from < head->len) {
        const char *end = memchr(head->at + from, '\n', head->len - from);
        CHECK(end != NULL);
        size_t len = (size_t)(end - head->at) + 1 - from;
        if (from == 0 || !is_field(slice_of(head->at + from, len), name)) {
            memmove(head->at + kept, head->at + from, len);
            kept += len;
        }
        from += len;
    }
    head->len = kept;
}

int http_forward_field_set(struct buf *head, struct slice name, struct slice value)
{
    CHECK(slice_ends_with(buf_slice(head), SLICE("\r\n\r\n")));
    int err = buf_reserve(head, name.len + value.len + sizeof ": \r\n");
    if (err != ERR_OK)
        return err;
    fields_remove(head, name);
    if (value.len == 0)
        return ERR_OK;
    head->len -= 2; /* the new line goes before the blank line */
    return buf_printf(head, "%.*s: %.*s\r\n\r\n", (int)name.len, name.at, (int)value.len, value.at);
}
