#include "http/usage_cut.h"

#include <string.h>

#include "base/check.h"
#include "http/events.h"
#include "http/json_name.h"

void http_usage_cut_init(struct http_usage_cut *c)
{
    *c = (struct http_usage_cut){0};
}

void http_usage_cut_free(struct http_usage_cut *c)
{
    buf_free(&c->part);
    buf_free(&c->finish);
    http_usage_cut_init(c);
}

/* --- an event ------------------------------------------------------------------------------- */

enum what { NO_USAGE, ONLY_USAGE, USAGE_BESIDE_CONTENT };

/* Reads the members of the event's object: tests if `choices` is empty and `usage` an object. */
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

static bool has(struct slice s, struct slice what)
{
    return memmem(s.at, s.len, what.at, what.len) != NULL;
}

static enum what what_if_any(struct slice event)
{
    return has(event, SLICE("\"usage\"")) ? what_is(event) : NO_USAGE;
}

/* --- the fingerprint ------------------------------------------------------------------------- */

/* vLLM's spelling. Inside a string the quotes would be escaped. */
static const struct slice finish_mark = SLICE("\"finish_reason\":\"");

/* Bits of `handed`: which memory was handed to the caller. */
enum { PART = 1, FINISH = 2 };

struct slice http_usage_cut_finish(const struct http_usage_cut *c)
{
    return slice_skip(buf_slice(&c->finish), c->finish_out);
}

/* True if the event ends a choice, has no fingerprint, and has a place for it before the last
 * brace. */
static bool is_finish(struct slice event)
{
    if (event.len > HTTP_USAGE_CUT_MAX || !has(event, finish_mark) ||
        has(event, SLICE("\"system_fingerprint\"")))
        return false;
    while (event.len > 0 && (event.at[event.len - 1] == '\n' || event.at[event.len - 1] == '\r'))
        event.len--;
    size_t line = event.len;
    while (line > 0 && event.at[line - 1] != '\n' && event.at[line - 1] != '\r')
        line--;
    return slice_ends_with(event, SLICE("}")) &&
           slice_starts_with(slice_skip(event, line), SLICE("data:"));
}

/* Makes the event wait for the next event. False: there is no room, and the event passes. */
static bool hold(struct http_usage_cut *c, struct slice event)
{
    struct buf *finish = &c->finish;
    CHECK(http_usage_cut_finish(c).len == 0);
    if (!(c->handed & FINISH)) {
        buf_clear(finish);
        c->finish_out = 0;
        /* Reserves room for the end of another choice after this event, and for a fingerprint. */
        if (buf_reserve(finish, 3 * event.len) != 0)
            return false;
    }
    return finish->cap - finish->len >= event.len && buf_append_slice(finish, event) == 0;
}

/* Moves the usage event's fingerprint, if any, into the waiting event. */
static void stamp(struct http_usage_cut *c, struct slice usage)
{
    static const struct slice mark = SLICE("\"system_fingerprint\":\"");
    struct buf *finish = &c->finish;
    usage = http_events_data(&usage);
    const char *from = memmem(usage.at, usage.len, mark.at, mark.len);
    if (from == NULL)
        return;
    const char *to = from + mark.len;
    while (*to != '"') /* ends, because the object is complete */
        to += *to == '\\' ? 2 : 1;
    size_t len = (size_t)(to + 1 - from);
    if (((c->handed & FINISH) && finish->cap - finish->len < len + 1) ||
        buf_reserve(finish, len + 1) != 0)
        return;
    char *brace = memrchr(finish->at, '}', finish->len);
    size_t behind = (size_t)(finish->at + finish->len - brace);
    memmove(brace + 1 + len, brace, behind);
    brace[0] = ',';
    memcpy(brace + 1, from, len);
    finish->len += 1 + len;
}

static void hand_finish(struct http_usage_cut *c, struct slice *out)
{
    *out = http_usage_cut_finish(c);
    c->finish_out = c->finish.len;
    c->handed |= FINISH;
}

/* --- the stream ----------------------------------------------------------------------------- */

/* Length of the event at the front; a line end before an event counts as an event. 0:
 * incomplete. */
static size_t event_length(struct slice s)
{
    if (slice_starts_with(s, SLICE("\r\n")))
        return 2;
    bool line_end = s.len > 0 && (s.at[0] == '\n' || s.at[0] == '\r');
    return line_end ? 1 : http_event_length(s);
}

/* Length of the complete events at the front. After a CR at the end, a LF of the same event may
 * follow. */
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

/* Position in an event after the start. */
enum place { IN_LINE, AFTER_CR, AT_LINE, AFTER_BLANK_CR };

/* Returns how many bytes at the front of `s` belong to the event that is at c->place, and moves
 * c->place. `*ended`: the event ends within `s`. */
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

/* True if the event at the front of `rest` may be the usage event, or has not arrived yet. */
static bool may_be_usage(struct slice rest)
{
    return rest.len == 0 || has(slice_of(rest.at, event_length(rest)), SLICE("\"usage\""));
}

/* Returns how many bytes of `events`, which are complete, come before the usage event or an event
 * that must wait. `*cut`: length of this usage event or waiting event, which is not forwarded now;
 * 0: neither is there. */
static size_t until_usage(struct http_usage_cut *c, struct slice events, size_t *cut)
{
    *cut = 0;
    if (!has(events, SLICE("\"usage\"")) && !has(events, finish_mark))
        return events.len;
    for (size_t at = 0, len; at < events.len; at += len) {
        len = event_length(slice_skip(events, at));
        struct slice event = slice_of(events.at + at, len);
        enum what what = what_if_any(event);
        c->passes |= what == USAGE_BESIDE_CONTENT;
        if (c->passes)
            return events.len;
        if (what == ONLY_USAGE ||
            (is_finish(event) && may_be_usage(slice_skip(events, at + len)) && hold(c, event))) {
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

/* Forwards all waiting bytes unchanged. */
static void hand_rest(struct http_usage_cut *c, struct slice *out)
{
    if (http_usage_cut_finish(c).len > 0) {
        hand_finish(c, out);
        return;
    }
    *out = http_usage_cut_rest(c);
    c->out = c->part.len;
    c->whole = false;
    c->handed |= PART;
}

/* Stores all of `in`, the start of an event. Does not move memory handed to the caller. False: the
 * event is too long, or there is no memory. */
static bool keep(struct http_usage_cut *c, struct slice *in)
{
    bool ended;
    bool stays = c->handed & PART;
    if (c->out == c->part.len && !stays) {
        buf_clear(&c->part);
        c->out = 0;
    }
    if (in->len > HTTP_USAGE_CUT_MAX || (stays && c->part.cap - c->part.len < in->len) ||
        buf_append_slice(&c->part, *in) != 0)
        return false;
    c->place = AT_LINE;
    (void)event_rest(c, *in, &ended);
    *in = slice_skip(*in, in->len);
    return true;
}

/* Appends to the waiting event. Reserves room for the start of another event at the end of `in`.
 * False: the event is too long, or there is no memory. */
static bool keep_more(struct http_usage_cut *c, struct slice *in)
{
    CHECK(!(c->handed & PART));
    buf_consume(&c->part, c->out);
    c->out = 0;
    unsigned char place = c->place;
    bool room = buf_reserve(&c->part, in->len) == 0;
    size_t n = event_rest(c, *in, &c->whole);
    if (!room || c->part.len + n > HTTP_USAGE_CUT_MAX) {
        c->place = place;
        c->whole = false;
        return false;
    }
    CHECK(buf_append(&c->part, in->at, n) == 0);
    *in = slice_skip(*in, n);
    return true;
}

/* Forwards an event as it arrives, to the end. The event is too long to be the usage event. */
static bool pass_long(struct http_usage_cut *c, struct slice *in, struct slice *out)
{
    bool ended;
    size_t n = event_rest(c, *in, &ended);
    c->is_long = !ended;
    *out = slice_of(in->at, n);
    *in = slice_skip(*in, n);
    return n > 0;
}

/* Sets `out` to complete events, or to the event that waited for the next event. `*used`: bytes of
 * `events` that are done with. False: nothing to forward. */
static bool take_whole(struct http_usage_cut *c, struct slice events, size_t *used,
                       struct slice *out)
{
    if (http_usage_cut_finish(c).len > 0) {
        struct slice next = slice_of(events.at, event_length(events));
        bool usage = what_if_any(next) == ONLY_USAGE;
        if (usage)
            stamp(c, next);
        *used = usage ? next.len : 0;
        hand_finish(c, out);
        return true;
    }
    size_t cut, len = until_usage(c, events, &cut);
    *out = slice_of(events.at, len);
    *used = len + cut;
    return len > 0;
}

/* Forwards an event received in parts, once complete. */
static bool take_part(struct http_usage_cut *c, struct slice *in, struct slice *out)
{
    if (!c->whole)
        c->is_long = !keep_more(c, in);
    if (!c->whole)
        return false;
    size_t used;
    bool waited = http_usage_cut_finish(c).len > 0;
    bool goes = take_whole(c, http_usage_cut_rest(c), &used, out);
    c->out += used;
    c->whole = used == 0;
    if (goes && !waited)
        c->handed |= PART;
    return goes;
}

bool http_usage_cut_next(struct http_usage_cut *c, struct slice *in, struct slice *out)
{
    size_t used;
    for (;;) {
        bool waits = c->out < c->part.len;
        if ((c->passes || c->is_long) && (waits || http_usage_cut_finish(c).len > 0)) {
            hand_rest(c, out);
            return true;
        }
        if (c->passes) {
            *out = *in;
            *in = slice_skip(*in, in->len);
            return out->len > 0;
        }
        if (in->len == 0 && !c->whole)
            return false;
        if (c->is_long) {
            if (pass_long(c, in, out))
                return true;
        } else if (waits) {
            if (take_part(c, in, out))
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
