/* A key's recent use: requests and tokens of the current minute of cluster time and of the minute
 * before. They give nearly the last sixty seconds: the minute before counts in part, by the
 * remaining share of the current minute.
 *
 * All routers cut minutes at the same moments, so windows of several can be added. Within a minute
 * the numbers only rise, so of two views of a router's window, the greater is the newer.
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
    uint64_t minute; /* number of the minute of `now` */
    struct access_count now, before;
};

/* Moves the window to the minute of `now_ms`, never back. */
void access_window_roll(struct access_window *w, uint64_t now_ms);
/* Adds the window's counts of the minute of `now_ms` to `now`, and those of the minute before to
 * `before`. A window a minute ahead counts as current. */
void access_window_add(const struct access_window *w, uint64_t now_ms, struct access_count *now,
                       struct access_count *before);
/* Raises each count of `w` to that of `other`, another view of the same window. */
void access_window_join(struct access_window *w, const struct access_window *other);
/* True if nothing of the window counts any more. */
bool access_window_is_past(const struct access_window *w, uint64_t now_ms);

/* Returns the use in the last sixty seconds, from sums by access_window_add(). */
uint64_t access_window_recent(uint64_t now, uint64_t before, uint64_t now_ms);
/* Returns the seconds, 1 to 120, until access_window_recent() is at most `limit` if nothing is
 * added. */
unsigned access_window_wait_s(uint64_t now, uint64_t before, uint64_t limit, uint64_t now_ms);

#endif
