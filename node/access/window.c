#include "node/access/window.h"

#include <math.h>

static uint64_t minute_of(uint64_t now_ms)
{
    return now_ms / ACCESS_MINUTE_MS;
}

/* Returns the remaining share of the current minute. */
static double left(uint64_t now_ms)
{
    return 1 - (double)(now_ms % ACCESS_MINUTE_MS) / ACCESS_MINUTE_MS;
}

void access_window_roll(struct access_window *w, uint64_t now_ms)
{
    uint64_t minute = minute_of(now_ms);
    if (minute <= w->minute)
        return;
    w->before = minute == w->minute + 1 ? w->now : (struct access_count){0};
    w->now = (struct access_count){0};
    w->minute = minute;
}

static void add(struct access_count *to, struct access_count what)
{
    to->requests += what.requests;
    to->tokens += what.tokens;
}

void access_window_add(const struct access_window *w, uint64_t now_ms, struct access_count *now,
                       struct access_count *before)
{
    uint64_t minute = minute_of(now_ms);
    if (w->minute == minute || w->minute == minute + 1)
        add(now, w->now);
    if (w->minute == minute + 1)
        add(now, w->before);
    else if (w->minute == minute)
        add(before, w->before);
    else if (w->minute + 1 == minute)
        add(before, w->now);
}

static void raise(struct access_count *to, struct access_count what)
{
    to->requests = what.requests > to->requests ? what.requests : to->requests;
    to->tokens = what.tokens > to->tokens ? what.tokens : to->tokens;
}

void access_window_join(struct access_window *w, const struct access_window *other)
{
    if (other->minute > w->minute)
        access_window_roll(w, other->minute * ACCESS_MINUTE_MS);
    if (other->minute == w->minute) {
        raise(&w->now, other->now);
        raise(&w->before, other->before);
    } else if (other->minute + 1 == w->minute) {
        raise(&w->before, other->now);
    }
}

bool access_window_is_past(const struct access_window *w, uint64_t now_ms)
{
    return w->minute + 1 < minute_of(now_ms);
}

uint64_t access_window_recent(uint64_t now, uint64_t before, uint64_t now_ms)
{
    return now + (uint64_t)ceil((double)before * left(now_ms));
}

unsigned access_window_wait_s(uint64_t now, uint64_t before, uint64_t limit, uint64_t now_ms)
{
    double wait = 0;
    double room = (double)limit - (double)now;
    if (room >= 0 && before > 0)
        wait = left(now_ms) - room / (double)before; /* ends in this minute */
    else if (room < 0)
        wait = left(now_ms) + 1 - (double)limit / (double)now; /* ends in the next minute */
    unsigned s = wait > 0 ? (unsigned)ceil(wait * 60) : 0;
    return s < 1 ? 1 : s > 120 ? 120 : s;
}
