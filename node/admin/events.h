/* Recent events in words: routers that died, joined or left; replicas added, removed, drained or
 * avoided; retried requests; changed keys and settings.
 *
 * A ring of fixed size. Two sources feed the ring: log events with words of their own
 * (admin_events_tap()) and the watch for changes (watch.c). If the last entry about a replica or
 * router has the same text and is younger than ADMIN_EVENT_AGAIN_MS, only the count of that entry
 * rises: a repeated event cannot fill the ring.
 *
 * No event contains anything of a request: no text, id or hash.
 *
 * Each entry has a number, from 1 on, and a `change` from a shared counter. A new or counted entry
 * gets the next value, as in node/route/decisions.h. */
#ifndef NODE_ADMIN_EVENTS_H
#define NODE_ADMIN_EVENTS_H

#include "base/json_write.h"
#include "base/log.h"
#include "node/route/decisions.h"

enum {
    ADMIN_EVENTS_MAX = 256,       /* events kept */
    ADMIN_EVENT_TEXT_BYTES = 512, /* bytes of the sentence; the rest is cut */
    ADMIN_EVENT_NAME_BYTES = 96,  /* bytes of the router's or replica's name */
    ADMIN_EVENT_AGAIN_MS = 60000,
    ADMIN_EVENTS_SHARED_BYTES = 98304, /* bytes per router if all routers are asked */
};

/* The kind of news, for colours on a page. */
enum admin_event_kind {
    ADMIN_EVENT_DEATH,
    ADMIN_EVENT_JOIN,
    ADMIN_EVENT_LEAVE,
    ADMIN_EVENT_DRAIN,
    ADMIN_EVENT_RETRY,
    ADMIN_EVENT_AVOIDED,
    ADMIN_EVENT_REPLICA, /* added, removed, renewed */
    ADMIN_EVENT_CONFIG,
    ADMIN_EVENT_KEY,
    ADMIN_EVENT_DIFFERS, /* routers differ, or their contents do */
    ADMIN_EVENT_TROUBLE,
    ADMIN_EVENT_KINDS,
};
const char *admin_event_kind_text(enum admin_event_kind kind);

struct admin_events;

/* ERR_NOMEM. */
MUST_USE int admin_events_create(struct admin_events **out);
void admin_events_destroy(struct admin_events *e);

/* Adds an event, or counts the last equal one again. `event` is the name, a literal; `about` is the
 * replica or router, or empty. Returns the event's number. */
uint64_t admin_events_add(struct admin_events *e, enum admin_event_kind kind, const char *event,
                          struct slice about, const char *text, uint64_t unix_ms);
/* For struct log.tap; the context is the events. */
void admin_events_tap(void *events, enum log_level level, const char *event,
                      const struct log_field *fields, unsigned count, uint64_t now_ms);

uint64_t admin_events_newest(const struct admin_events *e);
uint64_t admin_events_change(const struct admin_events *e);
/* Writes an array of the selected events (`ended` is ignored). Returns the last change in the array
 * for NODE_DECISIONS_CHANGES, and the newest change for other orders. */
uint64_t admin_events_write(const struct admin_events *e, const struct node_decisions_query *query,
                            struct json_writer *w);
/* Writes an array of the newest `count` events that happened last at `unix_ms` or later, oldest
 * first. */
void admin_events_recent_write(const struct admin_events *e, unsigned count, uint64_t unix_ms,
                               struct json_writer *w);
void admin_events_check(const struct admin_events *e);

#endif
