#include "http/chunked.h"

#include "base/check.h"
#include "base/err.h"
#include "http/chars.h"
#include "http/field.h"

enum chunked_state {
    SIZE,          /* reading hex digits */
    EXT_START,     /* behind ';' */
    EXT_NAME,      /* token */
    EXT_EQUALS,    /* behind '=' */
    EXT_VALUE,     /* token */
    EXT_QUOTED,    /* inside "..." */
    EXT_ESCAPED,   /* behind a backslash inside "..." */
    EXT_QUOTE_END, /* behind the closing quote */
    SIZE_LF,       /* behind the CR of a size line */
    DATA,          /* left > 0 */
    DATA_CR,       /* behind the data */
    DATA_LF,       /* behind the CR after the data */
    TRAILER_START, /* first byte of a trailer line */
    TRAILER_NAME,  /* token */
    TRAILER_VALUE, /* behind ':' */
    TRAILER_LF,    /* behind the CR of a trailer */
    END_LF,        /* behind the CR of the blank line */
    END,           /* done */
    BROKEN,
};

void http_chunked_init(struct http_chunked *c)
{
    memset(c, 0, sizeof *c);
    c->state = SIZE;
}

static int fail(struct http_chunked *c, int err, const char *text)
{
    c->state = BROKEN;
    c->error = text;
    return err;
}

static int bad(struct http_chunked *c, const char *text)
{
    return fail(c, ERR_SYNTAX, text);
}

/* Handles the byte behind a chunk's size or extension: CR ends the size line, ';' starts an
 * extension. Any other byte is the syntax error `text`. */
static int size_line_next(struct http_chunked *c, char b, const char *text)
{
    if (b == '\r')
        c->state = SIZE_LF;
    else if (b == ';')
        c->state = EXT_START;
    else
        return bad(c, text);
    return 0;
}

static int size_step(struct http_chunked *c, char b)
{
    if (!http_char_is(b, HTTP_CHAR_HEX))
        return c->digits == 0 ? bad(c, "chunk without size")
                              : size_line_next(c, b, "malformed chunk size");
    if (c->digits == 16)
        return bad(c, "chunk size is too large");
    c->digits++;
    c->left = c->left << 4 | http_hex_value(b);
    return 0;
}

/* Reads a byte of a chunk extension (RFC 9112, section 7.1.1). Refuses the "bad white space" that
 * the RFC only tolerates. */
static int extension_step(struct http_chunked *c, char b)
{
    if (b != '\r') {
        c->extension++;
        c->extensions++;
    }
    if (c->extension > HTTP_CHUNK_EXTENSION_BYTES_MAX ||
        c->extensions > HTTP_CHUNK_EXTENSIONS_BYTES_MAX)
        return fail(c, ERR_LIMIT, "chunk extensions are too long");
    bool token = http_char_is(b, HTTP_CHAR_TOKEN);
    switch (c->state) {
    case EXT_START:
        if (!token)
            return bad(c, "malformed chunk extension");
        c->state = EXT_NAME;
        return 0;
    case EXT_NAME:
        if (b == '=')
            c->state = EXT_EQUALS;
        else if (!token)
            return size_line_next(c, b, "malformed chunk extension");
        return 0;
    case EXT_EQUALS:
        if (b != '"' && !token)
            return bad(c, "malformed chunk extension");
        c->state = b == '"' ? EXT_QUOTED : EXT_VALUE;
        return 0;
    case EXT_VALUE:
        return token ? 0 : size_line_next(c, b, "malformed chunk extension");
    case EXT_QUOTED:
        if (!http_char_is(b, HTTP_CHAR_VALUE))
            return bad(c, "control byte in a chunk extension");
        if (b == '\\')
            c->state = EXT_ESCAPED;
        else if (b == '"')
            c->state = EXT_QUOTE_END;
        return 0;
    case EXT_ESCAPED:
        if (!http_char_is(b, HTTP_CHAR_VALUE))
            return bad(c, "control byte in a chunk extension");
        c->state = EXT_QUOTED;
        return 0;
    default: /* EXT_QUOTE_END */
        return size_line_next(c, b, "malformed chunk extension");
    }
}

/* True for fields that must not come in a trailer (RFC 9110, section 6.5.1): if an engine merged
 * trailers into the head, router and engine would read different messages. */
static bool trailer_is_forbidden(struct slice name)
{
    const uint64_t forbidden =
        HTTP_FIELD_BIT(HTTP_HOST) | HTTP_FIELD_BIT(HTTP_CONTENT_LENGTH) |
        HTTP_FIELD_BIT(HTTP_TRANSFER_ENCODING) | HTTP_FIELD_BIT(HTTP_CONNECTION) |
        HTTP_FIELD_BIT(HTTP_CONTENT_TYPE) | HTTP_FIELD_BIT(HTTP_CONTENT_ENCODING) |
        HTTP_FIELD_BIT(HTTP_EXPECT) | HTTP_FIELD_BIT(HTTP_TE) | HTTP_FIELD_BIT(HTTP_TRAILER) |
        HTTP_FIELD_BIT(HTTP_UPGRADE) | HTTP_FIELD_BIT(HTTP_AUTHORIZATION) |
        HTTP_FIELD_BIT(HTTP_PROXY_AUTHORIZATION) | HTTP_FIELD_BIT(HTTP_COOKIE) |
        HTTP_FIELD_BIT(HTTP_SET_COOKIE) | HTTP_FIELD_BIT(HTTP_CACHE_CONTROL) |
        HTTP_FIELD_BIT(HTTP_FORWARDED) | HTTP_FIELD_BIT(HTTP_X_FORWARDED_FOR) |
        HTTP_FIELD_BIT(HTTP_X_FORWARDED_PROTO) | HTTP_FIELD_BIT(HTTP_X_FORWARDED_HOST);
    return (forbidden & HTTP_FIELD_BIT(http_field_lookup(name))) != 0;
}

static int trailer_step(struct http_chunked *c, char b)
{
    if (++c->trailer > HTTP_TRAILER_BYTES_MAX)
        return fail(c, ERR_LIMIT, "trailers are too long");
    switch (c->state) {
    case TRAILER_START:
        if (b == '\r') {
            c->state = END_LF;
            return 0;
        }
        c->name_len = 0;
        c->state = TRAILER_NAME;
        /* fall through */
    case TRAILER_NAME:
        if (http_char_is(b, HTTP_CHAR_TOKEN)) {
            if (c->name_len == HTTP_TRAILER_NAME_MAX)
                return fail(c, ERR_LIMIT, "trailer name is too long");
            c->name[c->name_len++] = b;
            return 0;
        }
        if (b != ':' || c->name_len == 0)
            return bad(c, "malformed trailer name");
        if (trailer_is_forbidden(slice_of(c->name, c->name_len)))
            return bad(c, "field that is not allowed in a trailer");
        c->state = TRAILER_VALUE;
        return 0;
    default: /* TRAILER_VALUE */
        if (b == '\r')
            c->state = TRAILER_LF;
        else if (!http_char_is(b, HTTP_CHAR_VALUE))
            return bad(c, "control byte in a trailer");
        return 0;
    }
}

/* Handles the byte behind a chunk's data, which must be CR, and the byte behind a CR, which must be
 * LF. */
static int line_step(struct http_chunked *c, char b)
{
    if (c->state == DATA_CR) {
        if (b != '\r')
            return bad(c, "chunk data is longer than its size");
        c->state = DATA_LF;
        return 0;
    }
    if (b != '\n')
        return bad(c, "bare CR");
    switch (c->state) {
    case SIZE_LF:
        c->state = c->left > 0 ? DATA : TRAILER_START;
        return 0;
    case DATA_LF:
        c->state = SIZE;
        c->digits = 0;
        c->extension = 0;
        return 0;
    case TRAILER_LF:
        c->state = TRAILER_START;
        return 0;
    default: /* END_LF */
        c->state = END;
        c->done = true;
        return 0;
    }
}

static int step(struct http_chunked *c, char b)
{
    switch (c->state) {
    case SIZE:
        return size_step(c, b);
    case EXT_START:
    case EXT_NAME:
    case EXT_EQUALS:
    case EXT_VALUE:
    case EXT_QUOTED:
    case EXT_ESCAPED:
    case EXT_QUOTE_END:
        return extension_step(c, b);
    case TRAILER_START:
    case TRAILER_NAME:
    case TRAILER_VALUE:
        return trailer_step(c, b);
    case SIZE_LF:
    case DATA_CR:
    case DATA_LF:
    case TRAILER_LF:
    case END_LF:
        return line_step(c, b);
    default: /* BROKEN; DATA and END are handled elsewhere */
        return ERR_SYNTAX;
    }
}

int http_chunked_next(struct http_chunked *c, struct slice in, size_t *used, struct slice *data)
{
    *used = 0;
    *data = slice_of("", 0);
    size_t i = 0;
    while (i < in.len && c->state != DATA && c->state != END) {
        int err = step(c, in.at[i]);
        if (err != 0)
            return err;
        i++;
    }
    if (c->state == DATA && i < in.len) {
        size_t n = in.len - i;
        if (n > c->left)
            n = (size_t)c->left;
        *data = slice_of(in.at + i, n);
        c->left -= n;
        i += n;
        if (c->left == 0)
            c->state = DATA_CR;
    }
    CHECK(i <= in.len && data->len <= i);
    CHECK(!c->done || data->len == 0);
    *used = i;
    return 0;
}

void http_chunked_back(struct http_chunked *c, size_t n)
{
    CHECK(n == 0 || c->state == DATA || c->state == DATA_CR);
    if (n > 0)
        c->state = DATA;
    c->left += n;
}

size_t http_chunk_head_write(char out[HTTP_CHUNK_HEAD_MAX], uint64_t len)
{
    CHECK(len > 0); /* a chunk of no bytes would end the body */
    size_t digits = 1;
    while (digits < 16 && len >> (4 * digits) != 0)
        digits++;
    for (size_t i = 0; i < digits; i++)
        out[i] = "0123456789abcdef"[len >> (4 * (digits - 1 - i)) & 15];
    out[digits] = '\r';
    out[digits + 1] = '\n';
    CHECK(digits + 2 <= HTTP_CHUNK_HEAD_MAX);
    return digits + 2;
}
