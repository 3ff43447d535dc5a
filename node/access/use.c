#include "node/access/use.h"

#include <stdlib.h>

#include "base/check.h"

/* The use of a key that another router published last. */
struct access_row {
    struct access_row *next;
    uint64_t router;
    struct access_window window;
    uint64_t in_flight;
    uint64_t heard_ms;
};

const char *access_verdict_name(enum access_verdict v)
{
    static const char *const names[ACCESS_VERDICTS] = {
        [ACCESS_GOOD] = "",
        [ACCESS_OVER_REQUESTS] = "requests-per-minute",
        [ACCESS_OVER_TOKENS] = "tokens-per-minute",
        [ACCESS_OVER_IN_FLIGHT] = "in-flight",
        [ACCESS_OTHER_MODEL] = "models",
        [ACCESS_OTHER_RESPONSE] = "responses",
    };
    return names[v];
}

uint64_t access_use_id(struct slice name)
{
    struct access_digest d = access_digest_of(name);
    return access_digest_number(&d);
}

struct access_use *access_use_new(struct slice name)
{
    struct access_use *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    CHECK(slice_to_cstr(name, u->name, sizeof u->name));
    u->holders = 1;
    u->id = access_use_id(name);
    return u;
}

void access_use_drop(struct access_use *u)
{
    CHECK(u->holders > 0);
    if (--u->holders > 0)
        return;
    CHECK(u->rows == NULL);
    free(u);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void sum_up(struct access_use *u, uint64_t now_ms)
{
    struct access_total t = {0};
    for (const struct access_row *row = u->rows; row != NULL; row = row->next) {
        access_window_add(&row->window, now_ms, &t.now, &t.before);
        if (now_ms < row->heard_ms + ACCESS_SILENT_MS)
            t.in_flight += row->in_flight;
    }
    uint64_t next_minute = now_ms - now_ms % ACCESS_MINUTE_MS + ACCESS_MINUTE_MS;
    u->others = t;
    u->others_until_ms =
        now_ms + ACCESS_SUM_MS < next_minute ? now_ms + ACCESS_SUM_MS : next_minute;
}

/* Returns the use at this router and all others together. */
static struct access_total total_of(struct access_use *u, uint64_t now_ms)
{
    bool good = now_ms < u->others_until_ms && u->others_until_ms <= now_ms + ACCESS_SUM_MS;
    if (u->rows != NULL && !good)
        sum_up(u, now_ms);
    struct access_total t = u->others;
    t.in_flight += u->in_flight;
    access_window_add(&u->window, now_ms, &t.now, &t.before);
    return t;
}

enum access_verdict access_use_judge(struct access_use *u, const struct access_limits *limits,
                                     uint64_t now_ms, unsigned *wait_s)
{
    if (limits->requests == 0 && limits->tokens == 0 && limits->in_flight == 0)
        return ACCESS_GOOD;
    struct access_total t = total_of(u, now_ms);
    *wait_s = 1;
    if (limits->in_flight > 0 && t.in_flight >= limits->in_flight)
        return ACCESS_OVER_IN_FLIGHT;
    if (limits->requests > 0 &&
        access_window_recent(t.now.requests, t.before.requests, now_ms) >= limits->requests) {
        *wait_s =
            access_window_wait_s(t.now.requests, t.before.requests, limits->requests - 1, now_ms);
        return ACCESS_OVER_REQUESTS;
    }
    if (limits->tokens > 0 &&
        access_window_recent(t.now.tokens, t.before.tokens, now_ms) >= limits->tokens) {
        *wait_s = access_window_wait_s(t.now.tokens, t.before.tokens, limits->tokens - 1, now_ms);
        return ACCESS_OVER_TOKENS;
    }
    return ACCESS_GOOD;
}

void access_use_begin(struct access_use *u, uint64_t now_ms)
{
    access_window_roll(&u->window, now_ms);
    u->window.now.requests++;
    u->in_flight++;
    u->requests++;
}

void access_use_tokens(struct access_use *u, uint64_t tokens, uint64_t now_ms)
{
    access_window_roll(&u->window, now_ms);
    u->window.now.tokens += tokens;
}

void access_use_end(struct access_use *u)
{
    CHECK(u->in_flight > 0);
    u->in_flight--;
}

/* --- other routers --------------------------------------------------------------------------- */

int access_use_hear(struct access_use *u, uint64_t router, const struct access_window *window,
                    uint64_t in_flight, uint64_t now_ms, unsigned *rows)
{
    struct access_row *row = u->rows;
    while (row != NULL && row->router != router)
        row = row->next;
    if (row == NULL) {
        if (*rows >= ACCESS_ROWS_MAX)
            return ERR_FULL;
        row = calloc(1, sizeof *row);
        if (row == NULL)
            return ERR_NOMEM;
        row->router = router;
        row->next = u->rows;
        u->rows = row;
        (*rows)++;
    }
    access_window_join(&row->window, window);
    row->in_flight = in_flight;
    row->heard_ms = now_ms;
    u->others_until_ms = 0;
    return 0;
}

void access_use_forget(struct access_use *u, uint64_t now_ms, unsigned *rows)
{
    struct access_row **at = &u->rows;
    while (*at != NULL) {
        struct access_row *row = *at;
        bool silent = now_ms >= row->heard_ms + ACCESS_SILENT_MS || row->in_flight == 0;
        if (silent && access_window_is_past(&row->window, now_ms)) {
            *at = row->next;
            free(row);
            (*rows)--;
        } else {
            at = &row->next;
        }
    }
    if (u->rows == NULL)
        u->others = (struct access_total){0};
}

bool access_use_is_active(const struct access_use *u, uint64_t now_ms)
{
    return u->in_flight > 0 || !access_window_is_past(&u->window, now_ms);
}
