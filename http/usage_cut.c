#include "http/usage_cut.h"

#include <string.h>

#include "http/events.h"
#include "http/json.h"

void http_usage_cut_init(struct http_usage_cut *c)
{
    buf_init(&c->part, 0);
    c->out = c->searched = 0;
    c->handed = c->passes = false;
}

void http_usage_cut_free(struct http_usage_cut *c)
{
    buf_free(&c->part);
    http_usage_cut_init(c);
}

/* --- one event ------------------------------------------------------------------------------ */

enum what { NO_USAGE, ONLY_USAGE, USAGE_BESIDE_CONTENT };

/* The name of a member, or what fits of it; longer ones are none that is looked for. */
static struct slice name_read(struct http_json *json, struct slice *in, char *name, size_t room)
{
    size_t len = http_json_text(json, in, name, room);
    char rest[64 + HTTP_JSON_SLACK];
    while (http_json_in_text(json) && in->len > 0)
        len += http_json_text(json, in, rest, 64);
    return slice_of(name, len <= room ? len : 0);
}

static void text_skip(struct http_json *json, struct slice *in)
{
    char text[64 + HTTP_JSON_SLACK];
    while (http_json_in_text(json) && in->len > 0)
        (void)http_json_text(json, in, text, 64);
}

/* Reads the members of the event's object: whether `choices` is empty, `usage` an object. */
static enum what what_is(struct slice event)
{
    struct slice in = http_events_data(&event);
    struct http_json json;
    http_json_init(&json);
    char name_room[16 + HTTP_JSON_SLACK];
    struct slice name = slice_of("", 0);
    unsigned depth = 0;
    bool usage = false, empty = false;
    enum http_json_token t;
    /* An event may end in the middle of a string. */
    while (!http_json_in_text(&json) && (t = http_json_next(&json, &in)) > HTTP_JSON_MORE) {
        bool member = depth == 1 && name.len > 0;
        if (t == HTTP_JSON_KEY && depth == 1) {
            name = name_read(&json, &in, name_room, 16);
            continue;
        }
        if (member && t == HTTP_JSON_OBJECT_BEGIN)
            usage |= slice_equal(name, SLICE("usage"));
        if (member && t == HTTP_JSON_ARRAY_BEGIN)
            empty |= slice_equal(name, SLICE("choices"));
        else if (depth == 2 && t != HTTP_JSON_ARRAY_END && slice_equal(name, SLICE("choices")))
            empty = false;
        depth += t == HTTP_JSON_OBJECT_BEGIN || t == HTTP_JSON_ARRAY_BEGIN;
        depth -= t == HTTP_JSON_OBJECT_END || t == HTTP_JSON_ARRAY_END;
        if (t == HTTP_JSON_KEY || t == HTTP_JSON_STRING)
            text_skip(&json, &in);
    }
    if (!usage || !http_json_finish(&json))
        return NO_USAGE;
    return empty ? ONLY_USAGE : USAGE_BESIDE_CONTENT;
}

/* --- the stream ----------------------------------------------------------------------------- */

static bool has(struct slice s, struct slice what)
{
    return memmem(s.at, s.len, what.at, what.len) != NULL;
}

/* Length of the event at the front; a line end before it stands for itself. 0: it is not whole. */
static size_t event_length(struct slice s)
{
    if (slice_starts_with(s, SLICE("\r\n")))
        return 2;
    bool line_end = s.len > 0 && (s.at[0] == '\n' || s.at[0] == '\r');
    return line_end ? 1 : http_event_length(s);
}

/* Length of the events at the front that are whole. No event ends in the first `searched` bytes: an
 * event of many pieces is looked through once. After a CR at its end a LF may follow, which is the
 * event's. */
static size_t events_whole(struct slice s, size_t searched)
{
    enum { END_MAX = 4 }; /* CRLF twice */
    if (slice_ends_with(s, SLICE("\r")))
        s.len--;
    if (slice_ends_with(s, SLICE("\n\n")))
        return s.len;
    size_t whole = 0, len;
    if (searched > END_MAX) {
        size_t from = searched - END_MAX;
        len = http_event_length(slice_skip(s, from));
        whole = len == 0 ? 0 : from + len;
    } else {
        whole = len = event_length(s);
    }
    for (; len > 0 && whole < s.len; whole += len)
        len = event_length(slice_skip(s, whole));
    return whole;
}

/* Bytes at the front of `events`, which are whole, up to the one of usage; *cut bytes follow that
 * are to be left out. */
static size_t until_usage(struct http_usage_cut *c, struct slice events, size_t *cut)
{
    *cut = 0;
    if (!has(events, SLICE("\"usage\"")))
        return events.len;
    for (size_t at = 0, len; at < events.len; at += len) {
        len = event_length(slice_skip(events, at));
        enum what what = what_is(slice_of(events.at + at, len));
        c->passes |= what == USAGE_BESIDE_CONTENT;
        if (c->passes)
            return events.len;
        if (what == ONLY_USAGE) {
            *cut = len;
            return at;
        }
    }
    return events.len;
}

struct slice http_usage_cut_rest(const struct http_usage_cut *c)
{
    return slice_skip(buf_slice(&c->part), c->out);
}

/* All that waits in `part` goes on as it is. */
static bool hand_rest(struct http_usage_cut *c, struct slice *out)
{
    *out = http_usage_cut_rest(c);
    c->out = c->part.len;
    c->searched = 0;
    c->handed |= out->len > 0;
    return out->len > 0;
}

static bool keep(struct http_usage_cut *c, struct slice *in)
{
    if (c->out == c->part.len && !c->handed) {
        buf_clear(&c->part);
        c->out = 0;
    }
    bool fits = c->part.len - c->out + in->len <= HTTP_USAGE_CUT_MAX;
    if (!fits || buf_append_slice(&c->part, *in) != 0)
        return false;
    *in = slice_skip(*in, in->len);
    return true;
}

bool http_usage_cut_next(struct http_usage_cut *c, struct slice *in, struct slice *out)
{
    for (;;) {
        struct slice part = http_usage_cut_rest(c);
        bool waits = part.len > 0;
        if (c->passes && waits)
            return hand_rest(c, out);
        if (c->passes) {
            *out = *in;
            *in = slice_skip(*in, in->len);
            return out->len > 0;
        }
        if (waits && in->len > 0) {
            c->passes = !keep(c, in);
            continue;
        }
        struct slice from = waits ? part : *in;
        size_t whole = events_whole(from, waits ? c->searched : 0), cut;
        c->searched = whole == 0 ? from.len : 0;
        if (whole == 0 && waits)
            return false;
        if (whole == 0) {
            c->passes = in->len > 0 && !keep(c, in);
            if (c->passes)
                continue;
            return false;
        }
        size_t len = until_usage(c, slice_of(from.at, whole), &cut);
        *out = slice_of(from.at, len);
        if (waits) {
            c->out += len + cut;
            c->handed |= len > 0;
        } else {
            *in = slice_skip(*in, len + cut);
        }
        if (len > 0)
            return true;
    }
}
