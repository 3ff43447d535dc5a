/* What a key used lately: requests and tokens of the present minute of cluster time and of the one
 * before, which are enough to say what the last sixty seconds had, nearly: of the minute before
 * counts as much as is left of it.
 *
 * All routers cut minutes at the same moments, so windows of several can be added up. Within a
 * minute the numbers only rise, so two views of one router's window have a greater one.
 */
#ifndef NODE_ACCESS_WINDOW_H
#define NODE_ACCESS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum { ACCESS_MINUTE_MS = 60000 };

struct access_count {
    uint64_t requests, tokens;
};

struct access_window {
    uint64_t minute; /* number of `now` */
    struct access_count now, before;
};

/* Brings it to the minute of that time; never back. */
void access_window_roll(struct access_window *w, uint64_t now_ms);
/* What it says of the minute of that time and of the one before, added to these. A window that is a
 * minute ahead counts as of the present. */
void access_window_add(const struct access_window *w, uint64_t now_ms, struct access_count *now,
                       struct access_count *before);
/* The greater of two views of the same window. */
void access_window_join(struct access_window *w, const struct access_window *other);
/* Nothing of it counts any more. */
bool access_window_is_past(const struct access_window *w, uint64_t now_ms);

/* The last sixty seconds of such sums. */
uint64_t access_window_recent(uint64_t now, uint64_t before, uint64_t now_ms);
/* Seconds until that is at most `limit`, if nothing is added: 1 .. 120. */
unsigned access_window_wait_s(uint64_t now, uint64_t before, uint64_t limit, uint64_t now_ms);

#endif
