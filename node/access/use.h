/* What one key uses: counted here, and what other routers say that they counted. It outlives tables
 * and keys: a file that is read again changes limits, not what was used.
 *
 * Times are cluster time in milliseconds (node/access/access.h).
 */
#ifndef NODE_ACCESS_USE_H
#define NODE_ACCESS_USE_H

#include "base/err.h"
#include "base/slice.h"
#include "node/access/limits.h"
#include "node/access/line.h"
#include "node/access/window.h"

enum {
    ACCESS_SUM_MS = 250,     /* the others publish so often */
    ACCESS_SILENT_MS = 6000, /* a router that says nothing for so long has nothing in flight */
};

/* Why a request of a key does not go on. */
enum access_verdict {
    ACCESS_GOOD,
    ACCESS_OVER_REQUESTS,
    ACCESS_OVER_TOKENS,
    ACCESS_OVER_IN_FLIGHT,
    ACCESS_OTHER_MODEL,
    ACCESS_OTHER_RESPONSE,
    ACCESS_VERDICTS,
};
/* As the file calls the limit: "requests-per-minute", ...; "models"; and "responses". */
const char *access_verdict_name(enum access_verdict v);

struct access_row;

/* Requests, tokens and requests in flight, as limits see them. */
struct access_total {
    struct access_count now, before;
    uint64_t in_flight;
};

/* What a request looks at comes first. */
struct access_use {
    unsigned holders;
    bool limited; /* it has a limit that other routers must know of */
    bool shown;   /* metrics have its name */
    bool news;    /* it changed since it was published */
    uint64_t in_flight;
    struct access_window window;
    struct access_total others; /* of other routers, summed up; */
    uint64_t others_until_ms;   /* good until then */
    struct access_row *rows;    /* what it is the sum of */
    /* Since it is known. */
    uint64_t requests;
    uint64_t prompt_tokens, cached_tokens, completion_tokens;
    uint64_t refused[ACCESS_VERDICTS];
    uint64_t id; /* a hash of the name, the same at all routers */
    char name[ACCESS_NAME_MAX + 1];
};

/* NULL: no memory. It has one holder. */
struct access_use *access_use_new(struct slice name);
void access_use_drop(struct access_use *u);
uint64_t access_use_id(struct slice name);

/* Whether one more may begin; `wait_s` (if not): when it may be asked again. */
enum access_verdict access_use_judge(struct access_use *u, const struct access_limits *limits,
                                     uint64_t now_ms, unsigned *wait_s);
void access_use_begin(struct access_use *u, uint64_t now_ms);
void access_use_tokens(struct access_use *u, uint64_t tokens, uint64_t now_ms);
void access_use_end(struct access_use *u);

/* What another router published; `rows` counts those of all uses. ERR_FULL: not taken, there are
 * too many; ERR_NOMEM. */
MUST_USE int access_use_hear(struct access_use *u, uint64_t router,
                             const struct access_window *window, uint64_t in_flight,
                             uint64_t now_ms, unsigned *rows);
/* Lets go of rows that count no more. */
void access_use_forget(struct access_use *u, uint64_t now_ms, unsigned *rows);
/* Whether anything of its own still counts. */
bool access_use_is_active(const struct access_use *u, uint64_t now_ms);

#endif
