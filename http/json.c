#include "http/json.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/check.h"

/* The tokens that may come next. */
enum state {
    FAILED = HTTP_JSON_FAILED,
    TEXT = HTTP_JSON_IN_TEXT,
    VALUE = HTTP_JSON_STATES,
    VALUE_OR_END, /* after [ */
    KEY_OR_END,   /* after { */
    KEY,          /* after a comma in an object */
    COLON,
    COMMA_OR_END,
    DONE,
    NUMBER,
    LITERAL,
};

/* Position in an escape: behind the backslash, or before any of the four hex digits. */
enum escape { NO_ESCAPE, BACKSLASH, HEX_1, HEX_2, HEX_3, HEX_4 };

enum number_state { N_START, N_MINUS, N_ZERO, N_INT, N_DOT, N_FRACTION, N_E, N_SIGN, N_EXPONENT };
enum { N_END = 100, N_BAD };

void http_json_init(struct http_json *j)
{
    /* is_object and number_text need no initial value: they are always written before they are
     * read. */
    j->state = VALUE;
    j->escape = NO_ESCAPE;
    j->pending_len = 0;
    j->is_key = false;
    j->depth = 0;
    j->high = 0;
    j->number_len = 0;
    j->number_state = N_START;
    j->number = slice_of(NULL, 0);
}

static enum http_json_token fail(struct http_json *j)
{
    j->state = FAILED;
    return HTTP_JSON_ERROR;
}

static void after_value(struct http_json *j)
{
    j->state = j->depth == 0 ? DONE : COMMA_OR_END;
}

static bool in_object(const struct http_json *j)
{
    unsigned level = j->depth - 1u;
    return (j->is_object[level / 64] >> (level % 64) & 1) != 0;
}

static enum http_json_token open_container(struct http_json *j, bool is_object)
{
    if (j->depth == HTTP_JSON_DEPTH_MAX)
        return fail(j);
    uint64_t bit = (uint64_t)1 << (j->depth % 64);
    uint64_t *word = &j->is_object[j->depth / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    j->depth++;
    j->state = is_object ? KEY_OR_END : VALUE_OR_END;
    return is_object ? HTTP_JSON_OBJECT_BEGIN : HTTP_JSON_ARRAY_BEGIN;
}

static enum http_json_token close_container(struct http_json *j, bool is_object)
{
    if (j->depth == 0 || in_object(j) != is_object)
        return fail(j);
    j->depth--;
    after_value(j);
    return is_object ? HTTP_JSON_OBJECT_END : HTTP_JSON_ARRAY_END;
}

/* --- numbers and literals -------------------------------------------------- */

static bool number_may_end(unsigned state)
{
    return state == N_ZERO || state == N_INT || state == N_FRACTION || state == N_EXPONENT;
}

static unsigned number_step(unsigned state, char c)
{
    bool digit = (unsigned char)(c - '0') <= 9;
    switch (state) {
    case N_START:
        if (c == '-')
            return N_MINUS;
        return c == '0' ? N_ZERO : N_INT;
    case N_MINUS:
        if (!digit)
            return N_BAD;
        return c == '0' ? N_ZERO : N_INT;
    case N_INT:
        if (digit)
            return N_INT;
        break;
    case N_DOT:
        return digit ? N_FRACTION : N_BAD;
    case N_FRACTION:
        if (digit)
            return N_FRACTION;
        break;
    case N_E:
        if (c == '+' || c == '-')
            return N_SIGN;
        return digit ? N_EXPONENT : N_BAD;
    case N_SIGN:
        return digit ? N_EXPONENT : N_BAD;
    case N_EXPONENT:
        return digit ? N_EXPONENT : N_END;
    default: /* N_ZERO */
        break;
    }
    if (c == '.' && state != N_FRACTION)
        return N_DOT;
    return c == 'e' || c == 'E' ? N_E : N_END;
}

static enum http_json_token read_number(struct http_json *j, struct slice *in)
{
    unsigned state = j->number_state;
    size_t n = 0;
    while (n < in->len) {
        unsigned next = number_step(state, in->at[n]);
        if (next == N_BAD)
            return fail(j);
        if (next == N_END)
            break;
        state = next;
        n++;
        if (state == N_INT)
            while (n < in->len && (unsigned char)(in->at[n] - '0') <= 9)
                n++;
    }
    if (j->number_len + n > HTTP_JSON_NUMBER_MAX)
        return fail(j);
    j->number_state = (uint8_t)state;
    struct slice part = slice_of(in->at, n);
    bool ended = n < in->len;
    *in = slice_skip(*in, n);
    if (ended && j->number_len == 0) {
        j->number = part; /* the usual case: the number is all in the input, and is not copied */
    } else {
        memcpy(j->number_text + j->number_len, part.at, part.len);
        j->number_len = (uint16_t)(j->number_len + part.len);
        j->number = slice_of(j->number_text, j->number_len);
    }
    if (!ended)
        return HTTP_JSON_MORE;
    after_value(j);
    return HTTP_JSON_NUMBER;
}

static enum http_json_token read_literal(struct http_json *j, struct slice *in)
{
    static const char *const names[] = {"true", "false", "null"};
    const char *name = names[j->literal - HTTP_JSON_TRUE];
    while (name[j->matched] != '\0') {
        if (in->len == 0)
            return HTTP_JSON_MORE;
        if (in->at[0] != name[j->matched])
            return fail(j);
        j->matched++;
        in->at++;
        in->len--;
    }
    after_value(j);
    return (enum http_json_token)j->literal;
}

/* --- structure ------------------------------------------------------------- */

static enum http_json_token open_text(struct http_json *j, bool is_key)
{
    j->state = TEXT;
    j->is_key = is_key;
    return is_key ? HTTP_JSON_KEY : HTTP_JSON_STRING;
}

/* Begins a value. The value's first byte, `c`, was taken off the input; a number's first byte is
 * put back, because read_number() reads whole numbers. */
static enum http_json_token open_value(struct http_json *j, char c, struct slice *in)
{
    switch (c) {
    case '"':
        return open_text(j, false);
    case '{':
        return open_container(j, true);
    case '[':
        return open_container(j, false);
    case 't':
        j->literal = HTTP_JSON_TRUE;
        break;
    case 'f':
        j->literal = HTTP_JSON_FALSE;
        break;
    case 'n':
        j->literal = HTTP_JSON_NULL;
        break;
    default:
        if (c != '-' && (c < '0' || c > '9'))
            return fail(j);
        in->at--;
        in->len++;
        j->state = NUMBER;
        j->number_state = N_START;
        j->number_len = 0;
        return read_number(j, in);
    }
    j->state = LITERAL;
    j->matched = 1;
    return read_literal(j, in);
}

static inline bool is_space(char c)
{
    return (unsigned char)c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
}

/* Goes on with a token cut by the end of the last input. */
static enum http_json_token go_on(struct http_json *j, struct slice *in)
{
    CHECK(j->state != TEXT);
    if (j->state == FAILED)
        return HTTP_JSON_ERROR;
    if (in->len == 0)
        return HTTP_JSON_MORE;
    return j->state == NUMBER ? read_number(j, in) : read_literal(j, in);
}

enum http_json_token http_json_next(struct http_json *j, struct slice *in)
{
    if (j->state < VALUE || j->state > DONE)
        return go_on(j, in);
    while (in->len > 0) {
        char c = in->at[0];
        in->at++;
        in->len--;
        if (is_space(c))
            continue;
        if (j->state == COMMA_OR_END) { /* the most frequent case */
            if (c != ',')
                return c == '}' || c == ']' ? close_container(j, c == '}') : fail(j);
            bool is_key = in_object(j);
            if (in->len > 0 && in->at[0] == '"') { /* usually a string follows directly */
                *in = slice_skip(*in, 1);
                return open_text(j, is_key);
            }
            j->state = is_key ? KEY : VALUE;
            continue;
        }
        switch (j->state) {
        case COLON:
            if (c != ':')
                return fail(j);
            j->state = VALUE;
            continue;
        case KEY_OR_END:
            if (c == '}')
                return close_container(j, true);
            return c == '"' ? open_text(j, true) : fail(j);
        case KEY:
            return c == '"' ? open_text(j, true) : fail(j);
        case VALUE_OR_END:
            if (c == ']')
                return close_container(j, false);
            return open_value(j, c, in);
        case VALUE:
            return open_value(j, c, in);
        default: /* DONE */
            return fail(j);
        }
    }
    return HTTP_JSON_MORE;
}

bool http_json_finish(const struct http_json *j)
{
    return j->state == DONE ||
           (j->state == NUMBER && j->depth == 0 && number_may_end(j->number_state));
}

/* --- text ------------------------------------------------------------------ */

/* Text is scanned in blocks. A bit of the mask marks a special byte: a quote, a backslash, a
 * control byte. Copies are whole blocks too, so they reach beyond the text: HTTP_JSON_SLACK
 * provides room for this in the output. */
#ifdef __SSE2__
enum { BLOCK = 32 };

static inline uint32_t special_16(const unsigned char *src)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)src);
    __m128i quote = _mm_cmpeq_epi8(v, _mm_set1_epi8('"'));
    __m128i backslash = _mm_cmpeq_epi8(v, _mm_set1_epi8('\\'));
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control));
}

static inline uint32_t special_mask(const unsigned char *src)
{
    return special_16(src) | special_16(src + 16) << 16;
}
#else
enum { BLOCK = 8 };

static inline uint32_t special_mask(const unsigned char *src)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < BLOCK; i++)
        mask |= (uint32_t)(src[i] < 0x20 || src[i] == '"' || src[i] == '\\') << i;
    return mask;
}
#endif
_Static_assert((unsigned)BLOCK <= HTTP_JSON_SLACK, "a block may be written where a byte has room");

/* The byte encoded by a short escape, or 0. */
static const unsigned char short_escape[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

static int hex_digit(unsigned char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of four hex digits, or negative. */
static int hex_unit(const unsigned char *at)
{
    return hex_digit(at[0]) * 4096 | hex_digit(at[1]) * 256 | hex_digit(at[2]) * 16 |
           hex_digit(at[3]);
}

static bool is_high(unsigned unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low(unsigned unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

static unsigned utf8_put(unsigned char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (unsigned char)(0xc0 | code >> 6);
        out[1] = (unsigned char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (unsigned char)(0xe0 | code >> 12);
        out[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (unsigned char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (unsigned char)(0xf0 | code >> 18);
    out[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (unsigned char)(0x80 | (code & 0x3f));
    return 4;
}

struct cursor {
    const unsigned char *src;
    const unsigned char *end;
    unsigned char *out;
    unsigned char *limit;
};

/* Copies blocks with their short escapes. Goes on while input and output have room for whole
 * blocks, the text does not end in them, and no escape crosses a block's end. So the next block is
 * at a constant distance, and is loaded before this block is done. Returns how many bytes at c->src
 * are copied already: the beginning of the block where copying stopped. More than BLOCK: an escape
 * crossed this block's end. */
static unsigned copy_whole_blocks(struct cursor *c)
{
    const unsigned char *src = c->src;
    unsigned char *out = c->out;
    unsigned from = 0;
    for (; c->end - src >= 2 * BLOCK && c->limit - out >= BLOCK; src += BLOCK) {
        uint64_t mask = special_mask(src);
        from = 0;
        while (mask != 0) {
            unsigned at = (unsigned)__builtin_ctzll(mask);
            memcpy(out, src + from, BLOCK);
            out += at - from;
            from = at;
            unsigned char plain = short_escape[src[at + 1]];
            if (plain == 0 || src[at] != '\\')
                goto stop;
            *out++ = plain;
            from = at + 2;
            mask &= ~((uint64_t)3 << at); /* the escaped byte may be a quote or a backslash */
        }
        if (from > BLOCK)
            goto stop;
        memcpy(out, src + from, BLOCK);
        out += BLOCK - from;
        from = 0;
    }
stop:
    c->src = src;
    c->out = out;
    return from;
}

static void copy_blocks(struct cursor *c)
{
    unsigned more;
    do {
        more = copy_whole_blocks(c);
        c->src += more;
    } while (more > BLOCK);
}

/* Copies byte by byte, with short and \u escapes. Stops before a byte that needs more care: a
 * quote, a control byte, a surrogate, or an escape cut by the end. Also stops at the end of input
 * or room, and after an escape, because blocks may then be possible again. */
static void copy_bytes(struct cursor *c)
{
    while (c->src < c->end && c->out < c->limit) {
        const unsigned char *src = c->src;
        if (*src >= 0x20 && *src != '"' && *src != '\\') {
            *c->out++ = *c->src++;
            continue;
        }
        if (*src != '\\' || c->end - src < 2)
            return;
        unsigned char plain = short_escape[src[1]];
        if (plain != 0) {
            *c->out++ = plain;
            c->src += 2;
            continue;
        }
        if (src[1] != 'u' || c->end - src < 6 || c->limit - c->out < 3)
            return;
        int unit = hex_unit(src + 2);
        if (unit < 0 || (unit & 0xf800) == 0xd800)
            return;
        c->out += utf8_put(c->out, (uint32_t)unit);
        c->src += 6;
        if (c->end - c->src >= 2 * BLOCK && *c->src != '\\')
            return;
    }
}

static void pend(struct http_json *j, uint32_t code)
{
    j->pending_len =
        (uint8_t)(j->pending_len + utf8_put((unsigned char *)j->pending + j->pending_len, code));
}

/* Handles the complete \u escape in j->unit. */
static void end_unit(struct http_json *j)
{
    j->escape = NO_ESCAPE;
    if (j->high != 0 && is_low(j->unit)) {
        pend(j, 0x10000 + ((j->high - 0xd800u) << 10) + (j->unit - 0xdc00u));
        j->high = 0;
        return;
    }
    if (j->high != 0)
        pend(j, j->high);
    j->high = is_high(j->unit) ? j->unit : 0;
    if (j->high == 0)
        pend(j, j->unit);
}

static void end_text(struct http_json *j)
{
    if (j->is_key)
        j->state = COLON;
    else
        after_value(j);
}

/* Handles a byte that copy_blocks() and copy_bytes() leave: next to a split of the input, in or
 * behind a surrogate, or malformed. Appends the resulting bytes to j->pending. The caller handles
 * the closing quote. */
static void step_text(struct http_json *j, unsigned char c)
{
    if (j->escape == NO_ESCAPE && c == '\\') {
        j->escape = BACKSLASH;
        return;
    }
    if (j->escape == BACKSLASH && c == 'u') {
        j->escape = HEX_1;
        j->unit = 0;
        return;
    }
    if (j->escape >= HEX_1) {
        int digit = hex_digit(c);
        if (digit < 0) {
            (void)fail(j);
            return;
        }
        j->unit = (uint16_t)(j->unit << 4 | digit);
        if (j->escape++ == HEX_4)
            end_unit(j);
        return;
    }
    if (j->high != 0) { /* no low surrogate follows the high surrogate */
        pend(j, j->high);
        j->high = 0;
    }
    if (j->escape == BACKSLASH) {
        j->escape = NO_ESCAPE;
        if (short_escape[c] == 0)
            (void)fail(j);
        else
            j->pending[j->pending_len++] = (char)short_escape[c];
        return;
    }
    if (c < 0x20)
        (void)fail(j);
    else
        j->pending[j->pending_len++] = (char)c;
}

/* Most strings are short. A plain string that ends within the first block is copied to `to` at
 * once, and its length is written to `*len`. False: the string is special or longer, and nothing
 * was done. */
static bool short_text(struct http_json *j, struct slice *in, char *to, size_t room, size_t *len)
{
    if (in->len < BLOCK || room < BLOCK || j->state != TEXT || j->pending_len > 0 ||
        j->escape != NO_ESCAPE || j->high != 0)
        return false;
    uint64_t mask = special_mask((const unsigned char *)in->at);
    if (mask == 0)
        return false;
    *len = (size_t)__builtin_ctzll(mask);
    if (in->at[*len] != '"')
        return false;
    memcpy(to, in->at, BLOCK);
    size_t past = *len + 1;
    end_text(j);
    if (j->state == COLON && past < in->len &&
        in->at[past] == ':') { /* a colon follows most keys directly */
        j->state = VALUE;
        past++;
    }
    *in = slice_skip(*in, past);
    return true;
}

size_t http_json_text(struct http_json *j, struct slice *in, char *to, size_t room)
{
    size_t len;
    if (short_text(j, in, to, room, &len))
        return len;
    struct cursor c = {.src = (const unsigned char *)in->at, .out = (unsigned char *)to};
    c.end = c.src + in->len;
    c.limit = c.out + room;
    while (j->state == TEXT) {
        if (j->pending_len > 0) {
            size_t n = j->pending_len;
            n = n < (size_t)(c.limit - c.out) ? n : (size_t)(c.limit - c.out);
            memcpy(c.out, j->pending, n);
            c.out += n;
            j->pending_len = (uint8_t)(j->pending_len - n);
            memmove(j->pending, j->pending + n, j->pending_len);
        }
        if (j->escape == NO_ESCAPE && j->high == 0) {
            copy_blocks(&c);
            copy_bytes(&c);
        }
        if (c.src == c.end || c.out == c.limit)
            break;
        if (*c.src != '"' || j->escape != NO_ESCAPE) {
            step_text(j, *c.src++);
        } else if (j->high != 0) {
            pend(j, j->high); /* the lone surrogate is written before the quote ends the string */
            j->high = 0;
        } else {
            c.src++;
            end_text(j);
        }
    }
    in->len = (size_t)(c.end - c.src);
    in->at = (const char *)c.src;
    return (size_t)(c.out - (unsigned char *)to);
}
