/* What happened lately, in words: routers that died, joined or left, replicas that came, went,
 * drain or are avoided, requests that were sent again, keys and settings that changed.
 *
 * A ring of fixed size. It is fed by the events of the log (admin_events_tap(), which has the words
 * of those that matter) and by who looks for changes (watch.c). The same text again within
 * ADMIN_EVENT_AGAIN_MS counts up the entry that is there: a flood of one kind fills no ring.
 *
 * No event has anything of a request: no text, no id, no hash.
 *
 * Each entry has a number, from 1 on, and a `change` from one counter, which moves when it is made
 * or counted up, as in node/route/decisions.h.
 */
#ifndef NODE_ADMIN_EVENTS_H
#define NODE_ADMIN_EVENTS_H

#include "base/json_write.h"
#include "base/log.h"
#include "node/route/decisions.h"

enum {
    ADMIN_EVENTS_MAX = 256,       /* kept */
    ADMIN_EVENT_TEXT_BYTES = 512, /* of its sentence; a longer one is cut */
    ADMIN_EVENT_NAME_BYTES = 96,  /* of the router or replica that it is about */
    ADMIN_EVENT_AGAIN_MS = 60000,
    ADMIN_EVENTS_SHARED_BYTES = 98304, /* of one router, in an answer of all */
};

/* What kind of news it is: what a page colours by. */
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
    ADMIN_EVENT_DIFFERS, /* routers, or what they hold */
    ADMIN_EVENT_TROUBLE,
    ADMIN_EVENT_KINDS,
};
const char *admin_event_kind_text(enum admin_event_kind kind);

struct admin_events;

/* ERR_NOMEM. */
MUST_USE int admin_events_create(struct admin_events **out);
void admin_events_destroy(struct admin_events *e);

/* `event` is a literal; `about` is the replica or router, or empty. Returns its number. */
uint64_t admin_events_add(struct admin_events *e, enum admin_event_kind kind, const char *event,
                          struct slice about, const char *text, uint64_t unix_ms);
/* For struct log.tap; the context is the events. */
void admin_events_tap(void *events, enum log_level level, const char *event,
                      const struct log_field *fields, unsigned count, uint64_t now_ms);

uint64_t admin_events_newest(const struct admin_events *e);
uint64_t admin_events_change(const struct admin_events *e);
/* An array of those that the query wants (`ended` does not count). Returns the change up to which
 * the array goes. */
uint64_t admin_events_write(const struct admin_events *e, const struct node_decisions_query *query,
                            struct json_writer *w);
/* An array of the newest `count` whose last time is not before `unix_ms`, the oldest first. */
void admin_events_recent_write(const struct admin_events *e, unsigned count, uint64_t unix_ms,
                               struct json_writer *w);
void admin_events_check(const struct admin_events *e);

#endif
