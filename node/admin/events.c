#include "node/admin/events.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/utf8.h"

struct event {
    uint64_t number; /* 0: free */
    uint64_t change;
    uint64_t first_ms, last_ms; /* Unix time */
    uint64_t count;
    enum admin_event_kind kind;
    const char *name;
    char about[ADMIN_EVENT_NAME_BYTES];
    char text[ADMIN_EVENT_TEXT_BYTES];
};

struct admin_events {
    uint64_t newest, change;
    struct event ring[ADMIN_EVENTS_MAX];
};

const char *admin_event_kind_text(enum admin_event_kind kind)
{
    static const char *const texts[ADMIN_EVENT_KINDS] = {
        [ADMIN_EVENT_DEATH] = "death",     [ADMIN_EVENT_JOIN] = "join",
        [ADMIN_EVENT_LEAVE] = "leave",     [ADMIN_EVENT_DRAIN] = "drain",
        [ADMIN_EVENT_RETRY] = "retry",     [ADMIN_EVENT_AVOIDED] = "avoided",
        [ADMIN_EVENT_REPLICA] = "replica", [ADMIN_EVENT_CONFIG] = "config",
        [ADMIN_EVENT_KEY] = "key",         [ADMIN_EVENT_DIFFERS] = "differs",
        [ADMIN_EVENT_TROUBLE] = "trouble",
    };
    return texts[kind];
}

int admin_events_create(struct admin_events **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? ERR_OK : ERR_NOMEM;
}

void admin_events_destroy(struct admin_events *e)
{
    free(e);
}

static struct event *event_at(const struct admin_events *e, uint64_t number)
{
    struct event *at = (struct event *)&e->ring[number % ADMIN_EVENTS_MAX];
    return number != 0 && at->number == number ? at : NULL;
}

static uint64_t oldest(const struct admin_events *e)
{
    return e->newest >= ADMIN_EVENTS_MAX ? e->newest - ADMIN_EVENTS_MAX + 1 : 1;
}

/* Copies as many whole UTF-8 characters as fit. */
static void copy(char *to, size_t size, struct slice from)
{
    size_t len = 0;
    while (len < from.len) {
        size_t n = utf8_length(slice_skip(from, len));
        n = n > 0 ? n : 1;
        if (len + n > size - 1)
            break;
        len += n;
    }
    memcpy(to, from.at, len);
    to[len] = '\0';
}

uint64_t admin_events_add(struct admin_events *e, enum admin_event_kind kind, const char *event,
                          struct slice about, const char *text, uint64_t unix_ms)
{
    struct event new = {.kind = kind, .name = event, .first_ms = unix_ms, .last_ms = unix_ms};
    copy(new.about, sizeof new.about, about);
    copy(new.text, sizeof new.text, slice_of_cstr(text));
    for (uint64_t n = e->newest; n >= oldest(e) && n > 0; n--) {
        struct event *old = event_at(e, n);
        if (!old || strcmp(old->name, event) != 0 || strcmp(old->about, new.about) != 0)
            continue;
        /* The last event about the same replica or router: count it again, or add a new event. */
        if (strcmp(old->text, new.text) != 0 || unix_ms > old->last_ms + ADMIN_EVENT_AGAIN_MS)
            break;
        old->count++;
        old->last_ms = unix_ms;
        old->change = ++e->change;
        return n;
    }
    new.number = ++e->newest;
    new.change = ++e->change;
    new.count = 1;
    e->ring[new.number % ADMIN_EVENTS_MAX] = new;
    return new.number;
}

uint64_t admin_events_newest(const struct admin_events *e)
{
    return e->newest;
}

uint64_t admin_events_change(const struct admin_events *e)
{
    return e->change;
}

/* --- output ----------------------------------------------------------------------------------- */

static void put_event(struct json_writer *w, const struct event *at)
{
    json_object_begin(w);
    json_put_u64(w, "id", at->number);
    json_put_u64(w, "change", at->change);
    json_put_u64(w, "time_ms", at->first_ms);
    json_put_u64(w, "last_ms", at->last_ms);
    json_put_u64(w, "count", at->count);
    json_put_cstr(w, "kind", admin_event_kind_text(at->kind));
    json_put_cstr(w, "event", at->name);
    json_put_cstr(w, "about", at->about);
    json_put_cstr(w, "text", at->text);
    json_object_end(w);
}

static uint64_t place(const struct event *at, const struct node_decisions_query *q)
{
    return q->order == NODE_DECISIONS_CHANGES ? at->change : at->number;
}

/* Returns the first event after `beyond` in the order of the query; NULL: none. */
static const struct event *next(const struct admin_events *e, const struct node_decisions_query *q,
                                uint64_t beyond)
{
    const struct event *found = NULL;
    for (const struct event *at = e->ring; at < e->ring + ADMIN_EVENTS_MAX; at++) {
        if (at->number != 0 && place(at, q) > beyond && (!found || place(at, q) < place(found, q)))
            found = at;
    }
    return found;
}

uint64_t admin_events_write(const struct admin_events *e, const struct node_decisions_query *q,
                            struct json_writer *w)
{
    bool one = q->order == NODE_DECISIONS_ONE;
    uint64_t beyond = q->beyond - one;
    const struct event *at;
    if (q->order == NODE_DECISIONS_LAST)
        beyond = e->newest > q->count ? e->newest - q->count : 0;
    json_array_begin(w);
    for (unsigned left = q->count; left > 0 && (at = next(e, q, beyond)) != NULL; left--) {
        if (one && at->number != q->beyond)
            break;
        put_event(w, at);
        beyond = place(at, q);
    }
    json_array_end(w);
    return q->order == NODE_DECISIONS_CHANGES ? beyond : e->change;
}

void admin_events_recent_write(const struct admin_events *e, unsigned count, uint64_t unix_ms,
                               struct json_writer *w)
{
    uint64_t first = e->newest + 1;
    for (uint64_t n = e->newest; n >= oldest(e) && count > 0; n--) {
        const struct event *at = event_at(e, n);
        if (!at || at->last_ms < unix_ms)
            continue;
        first = n;
        count--;
    }
    json_array_begin(w);
    for (uint64_t n = first; n <= e->newest; n++) {
        const struct event *at = event_at(e, n);
        if (at && at->last_ms >= unix_ms)
            put_event(w, at);
    }
    json_array_end(w);
}

void admin_events_check(const struct admin_events *e)
{
    CHECK(e->newest <= e->change);
    for (unsigned i = 0; i < ADMIN_EVENTS_MAX; i++) {
        const struct event *at = &e->ring[i];
        CHECK(at->number == 0 || (at->number % ADMIN_EVENTS_MAX == i && at->number <= e->newest &&
                                  at->number >= oldest(e) && at->change <= e->change));
    }
}
