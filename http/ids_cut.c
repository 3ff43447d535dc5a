#include "http/ids_cut.h"

#include <string.h>

#include "base/check.h"
#include "http/events.h"
#include "http/json_name.h"

void http_ids_cut_init(struct http_ids_cut *c, bool is_stream, const struct http_ids_user *user)
{
    *c = (struct http_ids_cut){.user = *user, .is_stream = is_stream};
    buf_init(&c->part, 0);
    buf_init(&c->out, 0);
}

void http_ids_cut_free(struct http_ids_cut *c)
{
    buf_free(&c->part);
    buf_free(&c->out);
}

/* --- arrays of ids --------------------------------------------------------------------------- */

/* Takes the next id off the front of an array. False: the array ends here, or the next element is
 * no id. */
static bool id_next(struct slice *array, uint32_t *id)
{
    uint64_t number = 0;
    size_t i = 0;
    for (; i < array->len && array->at[i] >= '0' && array->at[i] <= '9' && i < 10; i++)
        number = 10 * number + (uint64_t)(array->at[i] - '0');
    bool leading_zero = i > 1 && array->at[0] == '0';
    if (i == 0 || leading_zero || number > UINT32_MAX)
        return false;
    *array = slice_skip(*array, i);
    *id = (uint32_t)number;
    return true;
}

static void skip_space(struct slice *s)
{
    while (s->len > 0 && (s->at[0] == ' ' || s->at[0] == '\n' || s->at[0] == '\t'))
        *s = slice_skip(*s, 1);
}

/* Length of an array of ids from behind the opening bracket up to the closing bracket; SIZE_MAX:
 * the array has other elements. `user`, if not NULL, gets each id. */
static size_t ids_read(struct slice rest, const struct http_ids_user *user)
{
    const char *begin = rest.at;
    uint32_t id;
    skip_space(&rest);
    for (bool first = true; !slice_starts_with(rest, SLICE("]")); first = false) {
        if (!first && !slice_starts_with(rest, SLICE(",")))
            return SIZE_MAX;
        rest = slice_skip(rest, first ? 0 : 1);
        skip_space(&rest);
        if (!id_next(&rest, &id))
            return SIZE_MAX;
        if (user != NULL)
            user->id(user->context, id);
        skip_space(&rest);
    }
    return (size_t)(rest.at - begin);
}

/* --- an answer, or a part of an answer ------------------------------------------------------ */

enum { NAME_MAX = 16 }; /* bytes of "prompt_token_ids", the longest relevant name */

struct reading {
    struct http_ids_cut *cut;
    struct http_json json;
    struct slice in;
    const char *copied; /* everything in front of this is in `out` */
    unsigned depth;
    char name_room[NAME_MAX + HTTP_JSON_SLACK];
    struct slice name;    /* name of the member whose value comes next */
    bool in_choices;      /* inside the member "choices", which opens depth 2 */
    bool delta_opens;     /* the next token is the delta's first */
    bool has_ids;         /* a choice had token ids */
    bool delta_is_empty;  /* a choice's delta is empty */
    bool finishes, tells; /* a choice has a finish reason; a choice has log probabilities */
};

static bool is(const struct reading *r, unsigned depth, struct slice name)
{
    return r->depth == depth && slice_equal(r->name, name);
}

/* Handles the start of an array: null replaces an array of ids. */
static void array(struct reading *r)
{
    struct http_ids_cut *c = r->cut;
    bool chosen = r->depth == 3 && r->in_choices;
    bool prompt = (r->depth == 1 || chosen) && slice_equal(r->name, SLICE("prompt_token_ids"));
    bool answer = chosen && slice_equal(r->name, SLICE("token_ids"));
    size_t len = prompt || answer ? ids_read(r->in, NULL) : SIZE_MAX;
    if (len == SIZE_MAX)
        return;
    if (prompt && c->prompts++ == 0)
        (void)ids_read(r->in, &c->user);
    r->has_ids |= answer && len > 0;
    CHECK(buf_append(&c->out, r->copied, (size_t)(r->in.at - 1 - r->copied)) == 0);
    CHECK(buf_append_cstr(&c->out, "null") == 0);
    /* The tokenizer reads the closing bracket as the end of an empty array. */
    r->in = slice_skip(r->in, len);
    r->copied = r->in.at + 1;
}

static void token(struct reading *r, enum http_json_token t)
{
    bool delta_opened = r->delta_opens;
    r->delta_opens = false;
    if (t == HTTP_JSON_OBJECT_END && delta_opened)
        r->delta_is_empty = true;
    if (r->in_choices && t != HTTP_JSON_NULL) {
        r->delta_opens = t == HTTP_JSON_OBJECT_BEGIN && is(r, 3, SLICE("delta"));
        r->finishes |= is(r, 3, SLICE("finish_reason"));
        r->tells |= is(r, 3, SLICE("logprobs"));
    }
    if (t == HTTP_JSON_ARRAY_BEGIN)
        array(r);
    if (t == HTTP_JSON_ARRAY_BEGIN && r->depth == 1)
        r->in_choices = slice_equal(r->name, SLICE("choices"));
    r->depth += t == HTTP_JSON_OBJECT_BEGIN || t == HTTP_JSON_ARRAY_BEGIN;
    r->depth -= t == HTTP_JSON_OBJECT_END || t == HTTP_JSON_ARRAY_END;
    r->in_choices &= r->depth > 1;
}

/* Appends the text to `out` without ids, or unchanged if there are none or the text is no JSON.
 * False: the text had nothing but ids. */
static bool rewrite(struct http_ids_cut *c, struct slice text)
{
    if (memmem(text.at, text.len, "token_ids", 9) == NULL) {
        CHECK(buf_append_slice(&c->out, text) == 0);
        return true;
    }
    struct reading r = {.cut = c, .in = text, .copied = text.at, .name = slice_of("", 0)};
    size_t before = c->out.len;
    enum http_json_token t;
    http_json_init(&r.json);
    while (!http_json_in_text(&r.json) && (t = http_json_next(&r.json, &r.in)) > HTTP_JSON_MORE) {
        if (t == HTTP_JSON_KEY) {
            r.delta_opens = false;
            r.name = http_json_name(&r.json, &r.in, r.name_room, NAME_MAX);
            continue;
        }
        token(&r, t);
        if (t == HTTP_JSON_STRING)
            http_json_skip_text(&r.json, &r.in);
        r.name = slice_of("", 0);
    }
    if (!http_json_finish(&r.json)) {
        c->out.len = before;
        r.copied = text.at;
        r.has_ids = false;
    }
    CHECK(buf_append(&c->out, r.copied, (size_t)(text.at + text.len - r.copied)) == 0);
    return !(r.has_ids && r.delta_is_empty && !r.finishes && !r.tells);
}

static void rewrite_event(struct http_ids_cut *c, struct slice event)
{
    struct slice rest = event, data = http_events_data(&rest);
    size_t before = c->out.len;
    if (data.len == 0) {
        CHECK(buf_append_slice(&c->out, event) == 0);
        return;
    }
    const char *end = data.at + data.len;
    CHECK(buf_append(&c->out, event.at, (size_t)(data.at - event.at)) == 0);
    if (rewrite(c, data))
        CHECK(buf_append(&c->out, end, (size_t)(event.at + event.len - end)) == 0);
    else
        c->out.len = before;
}

/* --- the body -------------------------------------------------------------------------------- */

/* Length of the complete events at the front of `part`. */
static size_t whole_events(struct http_ids_cut *c)
{
    size_t from = c->looked, len = c->part.len;
    c->looked = len > 0 ? len - 1 : 0;
    while (len > from + 1) {
        const char *end = memrchr(c->part.at + from, '\n', len - from);
        if (end == NULL || end == c->part.at + from)
            return 0;
        len = (size_t)(end - c->part.at);
        if (end[-1] == '\n')
            return len + 1;
    }
    return 0;
}

static void rewrite_events(struct http_ids_cut *c, size_t whole)
{
    struct slice events = slice_of(c->part.at, whole);
    while (events.len > 0) {
        /* A line end before an event passes by itself: the rest of the blank line may have come
         * earlier */
        size_t len = events.at[0] == '\n' ? 1 : http_event_length(events);
        rewrite_event(c, slice_of(events.at, len));
        events = slice_skip(events, len);
    }
}

/* Takes over `in`, and writes all complete events to `out`. False: because of a limit, a CR or a
 * lack of memory, everything passes unchanged from now on. */
static bool take(struct http_ids_cut *c, struct slice *in)
{
    if (c->part.len + in->len > HTTP_IDS_CUT_MAX ||
        (c->is_stream && memchr(in->at, '\r', in->len) != NULL) ||
        buf_append_slice(&c->part, *in) != 0)
        return false;
    *in = slice_skip(*in, in->len);
    size_t whole = c->is_stream ? whole_events(c) : c->ended ? c->part.len : 0;
    if (whole == 0)
        return true;
    if (buf_reserve(&c->out, 2 * whole) != 0) /* "null" is at most twice as long as the two brackets
                                               * of an array */
        return false;
    if (c->is_stream)
        rewrite_events(c, whole);
    else
        (void)rewrite(c, slice_of(c->part.at, whole));
    buf_consume(&c->part, whole);
    c->looked = c->looked > whole ? c->looked - whole : 0;
    return true;
}

bool http_ids_cut_next(struct http_ids_cut *c, struct slice *in, struct slice *out)
{
    bool ends = c->ended && c->part.len > 0;
    if (!c->passes && (in->len > 0 || ends)) {
        CHECK(!c->handed);
        buf_clear(&c->out);
        c->passes = !take(c, in) || ends;
        if (c->passes && c->part.len > 0) { /* the waiting bytes pass unchanged */
            CHECK(c->out.len == 0);
            struct buf waits = c->part;
            c->part = c->out;
            c->out = waits;
        }
        *out = buf_slice(&c->out);
        c->handed = out->len > 0;
        if (c->handed)
            return true;
    }
    if (!c->passes || in->len == 0)
        return false;
    *out = *in;
    *in = slice_skip(*in, in->len);
    return true;
}

void http_ids_cut_end(struct http_ids_cut *c)
{
    c->ended = true;
}
