/* The use of a key: this router's counts, and the counts that other routers published. The use
 * outlives tables and keys: a new reading of the file changes limits, not counts. Times are cluster
 * time in milliseconds (node/access/access.h). */
#ifndef NODE_ACCESS_USE_H
#define NODE_ACCESS_USE_H

#include "base/err.h"
#include "base/slice.h"
#include "node/access/limits.h"
#include "node/access/line.h"
#include "node/access/window.h"

enum {
    ACCESS_SUM_MS = 250,     /* interval of summing up the other routers, which publish as often */
    ACCESS_SILENT_MS = 6000, /* a router silent for this time counts as having nothing in flight */
};

/* Why a key's request is refused. */
enum access_verdict {
    ACCESS_GOOD,
    ACCESS_OVER_REQUESTS,
    ACCESS_OVER_TOKENS,
    ACCESS_OVER_IN_FLIGHT,
    ACCESS_OTHER_MODEL,
    ACCESS_OTHER_RESPONSE,
    ACCESS_VERDICTS,
};
/* Returns the limit's name as in the file: "requests-per-minute", ...; for a model or a response
 * that the key may not use, "models" or "responses". */
const char *access_verdict_name(enum access_verdict v);

struct access_row;

/* Requests and tokens of this minute and of the minute before, and requests in flight. */
struct access_total {
    struct access_count now, before;
    uint64_t in_flight;
};

/* The members read by each request come first. */
struct access_use {
    unsigned holders;
    bool limited; /* the key has a limit, so this use is published to the other routers */
    bool shown;   /* the name is in metrics */
    bool news;    /* the use changed since the last publication */
    uint64_t in_flight;
    struct access_window window;
    struct access_total others; /* sum over the other routers */
    uint64_t others_until_ms;   /* `others` is valid until then */
    struct access_row *rows;    /* each other router's latest use */
    /* Counts since the key's first table. */
    uint64_t requests;
    uint64_t prompt_tokens, cached_tokens, completion_tokens;
    uint64_t refused[ACCESS_VERDICTS];
    uint64_t id; /* a hash of the name, equal at all routers */
    char name[ACCESS_NAME_MAX + 1];
};

/* Returns a new use with the caller as holder; NULL: no memory. */
struct access_use *access_use_new(struct slice name);
void access_use_drop(struct access_use *u);
uint64_t access_use_id(struct slice name);

/* Returns ACCESS_GOOD if another request may begin. Otherwise returns the limit, and sets `wait_s`
 * to the seconds until a retry. */
enum access_verdict access_use_judge(struct access_use *u, const struct access_limits *limits,
                                     uint64_t now_ms, unsigned *wait_s);
void access_use_begin(struct access_use *u, uint64_t now_ms);
void access_use_tokens(struct access_use *u, uint64_t tokens, uint64_t now_ms);
void access_use_end(struct access_use *u);

/* Takes the use of this key that another router published; `rows` counts the rows of all keys.
 * ERR_FULL: too many rows, so not taken; ERR_NOMEM. */
MUST_USE int access_use_hear(struct access_use *u, uint64_t router,
                             const struct access_window *window, uint64_t in_flight,
                             uint64_t now_ms, unsigned *rows);
/* Frees the rows that are too old to count, and subtracts them from `rows`. */
void access_use_forget(struct access_use *u, uint64_t now_ms, unsigned *rows);
/* True if anything of this router's own use still counts. */
bool access_use_is_active(const struct access_use *u, uint64_t now_ms);

#endif
