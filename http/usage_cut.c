#include "http/usage_cut.h"

#include <string.h>

#include "base/check.h"
#include "http/events.h"
#include "http/json_name.h"

void http_usage_cut_init(struct http_usage_cut *c)
{
    buf_init(&c->part, 0);
    c->out = 0;
    c->place = 0;
    c->handed = c->passes = c->is_long = false;
}

void http_usage_cut_free(struct http_usage_cut *c)
{
    buf_free(&c->part);
    http_usage_cut_init(c);
}

/* --- one event ------------------------------------------------------------------------------ */

enum what { NO_USAGE, ONLY_USAGE, USAGE_BESIDE_CONTENT };

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
            name = http_json_name(&json, &in, name_room, 16);
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
            http_json_skip_text(&json, &in);
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

/* Length of the events at the front that are whole. After a CR at its end a LF may follow, which is
 * the event's. */
static size_t events_whole(struct slice s)
{
    if (slice_ends_with(s, SLICE("\r")))
        s.len--;
    if (slice_ends_with(s, SLICE("\n\n")))
        return s.len;
    size_t whole = 0, len = event_length(s);
    for (; len > 0 && whole < s.len; whole += len)
        len = event_length(slice_skip(s, whole));
    return whole;
}

/* Where a reader is in an event whose begin it has seen. */
enum place { IN_LINE, AFTER_CR, AT_LINE, AFTER_BLANK_CR };

/* Takes the rest of that event off the front of `s`. Returns its length; all of it, and not
 * `*ended`, where it goes on. */
static size_t event_rest(struct http_usage_cut *c, struct slice s, bool *ended)
{
    *ended = false;
    for (size_t i = 0; i < s.len; i++) {
        char b = s.at[i];
        bool at_line = c->place == AT_LINE || c->place == AFTER_CR;
        *ended = c->place == AFTER_BLANK_CR || (b == '\n' && c->place == AT_LINE);
        if (*ended)
            return c->place == AT_LINE || b == '\n' ? i + 1 : i;
        if (b == '\r')
            c->place = at_line ? AFTER_BLANK_CR : AFTER_CR;
        else
            c->place = b == '\n' ? AT_LINE : IN_LINE;
    }
    return s.len;
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
    c->handed |= out->len > 0;
    return out->len > 0;
}

/* The begin of an event waits: all of `in`. What is handed out stays where it is. */
static bool keep(struct http_usage_cut *c, struct slice *in)
{
    bool ended;
    if (c->out == c->part.len && !c->handed) {
        buf_clear(&c->part);
        c->out = 0;
    }
    if (in->len > HTTP_USAGE_CUT_MAX || (c->handed && c->part.cap - c->part.len < in->len) ||
        buf_append_slice(&c->part, *in) != 0)
        return false;
    c->place = AT_LINE;
    (void)event_rest(c, *in, &ended);
    *in = slice_skip(*in, in->len);
    return true;
}

/* More of the event that waits. There is room behind it for the begin of another one that `in` may
 * end with. False: it is too long, or there is no memory. */
static bool keep_more(struct http_usage_cut *c, struct slice *in, bool *ended)
{
    CHECK(!c->handed);
    buf_consume(&c->part, c->out);
    c->out = 0;
    unsigned char place = c->place;
    bool room = buf_reserve(&c->part, in->len) == 0;
    size_t n = event_rest(c, *in, ended);
    if (!room || c->part.len + n > HTTP_USAGE_CUT_MAX) {
        c->place = place;
        return false;
    }
    CHECK(buf_append(&c->part, in->at, n) == 0);
    *in = slice_skip(*in, n);
    return true;
}

/* What is too long to be an event of usage goes on as it comes, to its end. */
static bool pass_long(struct http_usage_cut *c, struct slice *in, struct slice *out)
{
    bool ended;
    size_t n = event_rest(c, *in, &ended);
    c->is_long = !ended;
    *out = slice_of(in->at, n);
    *in = slice_skip(*in, n);
    return n > 0;
}

/* The whole events at the front of `from`. False: none of them goes on. */
static bool take_whole(struct http_usage_cut *c, struct slice events, size_t *used,
                       struct slice *out)
{
    size_t cut, len = until_usage(c, events, &cut);
    *out = slice_of(events.at, len);
    *used = len + cut;
    return len > 0;
}

bool http_usage_cut_next(struct http_usage_cut *c, struct slice *in, struct slice *out)
{
    size_t used;
    for (;;) {
        bool waits = c->out < c->part.len, ended;
        if ((c->passes || c->is_long) && waits)
            return hand_rest(c, out);
        if (c->passes) {
            *out = *in;
            *in = slice_skip(*in, in->len);
            return out->len > 0;
        }
        if (in->len == 0)
            return false;
        if (c->is_long) {
            if (pass_long(c, in, out))
                return true;
        } else if (waits) {
            c->is_long = !keep_more(c, in, &ended);
            if (c->is_long || !ended)
                continue;
            bool goes = take_whole(c, buf_slice(&c->part), &used, out);
            c->out = used;
            CHECK(used == c->part.len);
            c->handed |= goes;
            if (goes)
                return true;
        } else {
            size_t whole = events_whole(*in);
            if (whole == 0) {
                c->place = AT_LINE;
                c->is_long = !keep(c, in);
                continue;
            }
            bool goes = take_whole(c, slice_of(in->at, whole), &used, out);
            *in = slice_skip(*in, used);
            if (goes)
                return true;
        }
    }
}
