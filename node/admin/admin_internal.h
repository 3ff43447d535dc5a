/* Shared by the files of the admin port; the README maps files to tasks. */
#ifndef NODE_ADMIN_ADMIN_INTERNAL_H
#define NODE_ADMIN_ADMIN_INTERNAL_H

#include "node/admin/admin.h"
#include "node/admin/attention.h"
#include "node/admin/calls.h"
#include "node/admin/events.h"
#include "node/admin/hearing.h"
#include "node/proxy/exchange/exchange.h"

enum {
    ADMIN_ASK_TIMEOUT_US = 8000000,    /* time for all routers to answer; gvctl waits longer */
    ADMIN_ATTENTION_US = 1000000,      /* time for GET /attention; silence is a problem too */
    ADMIN_ATTENTION_FRESH_MS = 500,    /* age up to which GET /attention uses known digests */
    ADMIN_EVENTS_TIMEOUT_US = 2000000, /* time for events, which are asked for each second */
    ADMIN_ADD_PROBE_MS = 2000,         /* time for a new replica's health probe; then it is added */
    ADMIN_ADDS_MAX = 64,               /* pending additions; beyond that, 503 */
    ADMIN_WATCH_MS = 500,              /* between two looks at all replicas */
    ADMIN_FLAPS_OUTS = 3,              /* a replica flaps if it goes out this often */
    ADMIN_FLAPS_MS = 600000, /* within this time; a rolling restart takes a replica out only once */
    ADMIN_REFUSALS_MAX = 16, /* pairs of address and call with a row for refusals */
    ADMIN_REFUSALS_MS = 60000, /* between two log lines of such a pair */
    ADMIN_PEER_BYTES = 48,
};

struct admin_ask;
struct admin_add;
struct admin_live;

/* The caller, for the log: never the token itself. */
struct admin_who {
    char from[ADMIN_PEER_BYTES];
    const char *token; /* kind of token presented: "admin", "read", "wrong" or "none" */
};

/* Refusals of a call from an address. */
struct admin_refusal {
    char from[ADMIN_PEER_BYTES]; /* empty: the row is free */
    char path[EXCHANGE_PATH_MAX];
    bool said;
    uint64_t said_ms;
    uint64_t unsaid; /* refusals not logged since the last logged refusal */
};

/* State of a replica at the last look. */
struct admin_seen {
    unsigned era;
    bool known;
    enum node_standing_why why;
    bool came_back;                    /* has started slowly since it was last out */
    unsigned outs;                     /* number of times the replica went out or was avoided */
    uint64_t out_ms[ADMIN_FLAPS_OUTS]; /* a ring of the times of the last outs */
};

/* Unix times of comparisons of the routers' digests; 0: no such comparison. */
struct admin_agreed {
    uint64_t equal_ms;     /* the last time with equal digests */
    uint64_t not_since_ms; /* the first time after `equal_ms` with different digests */
};

struct admin {
    struct admin_config config;
    struct proxy *proxy;
    bool on_loopback;
    const struct node_options *wanted; /* NULL: the settings in force */
    const char *refused;               /* error in the last loaded settings; NULL: none */
    struct admin_ask *asks;            /* pending questions to all routers */
    struct admin_add *adds;            /* replicas being probed before they are added */
    unsigned add_count;
    struct admin_events *events;
    struct admin_live *live;
    struct admin_agreed agreed;
    uint64_t since_ms; /* Unix time of the start */
    uint64_t watched_ms;
    struct admin_refusal refusals[ADMIN_REFUSALS_MAX];
    uint64_t refusals_unsaid; /* unlogged refusals of addresses and calls without a row */
    struct admin_seen seen[NODE_REPLICAS_MAX];
    struct admin_attention_list attention; /* the list at the last look */
    struct admin_hearing hearing;
};

/* Writes the decoded value of `name` in the query to `out`; empty if absent. Returns false if
 * malformed or too long. */
bool admin_query(const struct http_head *head, struct slice name, char *out, size_t size);
bool admin_query_has(const struct http_head *head, struct slice name);
#define ADMIN_JSON SLICE("application/json")
/* Answers 200 with the buffer's text, or 500 for an error. Frees the buffer. */
void admin_answer_buf(struct exchange *x, int err, struct slice type, struct buf *out);
/* As admin_answer_buf(), with the content type of JSON. */
void admin_answer_json(struct exchange *x, int err, struct buf *out);
/* Reads the prompt and session of an /explain. Returns false after answering if the body is not a
 * valid request. */
bool admin_describe(struct exchange *x, const struct http_head *head, struct node_request *out);

/* Reads ?replica=HOST:PORT or a URL, with #engine=vllm or &engine=vllm and no other label. Returns
 * false after answering if malformed. `rank_too`: HOST:PORT@RANK is valid too
 * (node/replica/rank.h). */
bool admin_read_replica(struct admin *a, struct exchange *x, const struct http_head *head,
                        struct node_replica_option *out, bool rank_too);
void admin_answer_no_replica(struct exchange *x, const char *name);
/* Returns false after answering 403 to a request possibly made by a web page from elsewhere: under
 * a foreign host name or from another origin. This router's page may make calls without changes. */
bool admin_may_call(const struct admin *a, struct exchange *x, const struct http_head *head,
                    bool changes);
/* Returns false after answering 401 to a client without the right to read. */
bool admin_may_read(const struct admin *a, struct exchange *x, const struct http_head *head);
/* Returns false after answering 401 or 403 to a client without the right to make changes. */
bool admin_may_change(struct admin *a, struct exchange *x, const struct http_head *head);
/* Returns false after answering 401 or 403 to a client without the right to ask for a prompt's
 * cost. */
bool admin_may_ask(struct admin *a, struct exchange *x, const struct http_head *head);
void admin_who(const struct admin *a, const struct exchange *x, const struct http_head *head,
               struct admin_who *out);

typedef void admin_call_handler(struct admin *a, struct exchange *x, const struct http_head *head);
#define ADMIN_CALL_DECLARE(name, method, path, argument, handler, flags, about)                    \
    admin_call_handler handler;
ADMIN_CALLS(ADMIN_CALL_DECLARE)
#undef ADMIN_CALL_DECLARE

/* Asks all routers and answers with the text that `write` makes of the answers. Returns an error if
 * no router is asked; `x` has no answer then. */
typedef int admin_answer_writer(struct admin *a, const struct admin_ask *ask, struct slice nodes,
                                struct buf *out);
MUST_USE int admin_ask_write(struct admin *a, struct exchange *x, enum node_call_kind kind,
                             struct slice request, uint64_t timeout_us, admin_answer_writer *write);
/* Finds pairs of routers without contact for a->hearing. `nodes` is the answers of all routers to
 * NODE_CALL_DIGESTS. */
void admin_hearing(struct admin *a, struct slice nodes);
/* Asks all routers and answers with a JSON object of the routers' answers, or with an error. */
void admin_ask_all(struct admin *a, struct exchange *x, enum node_call_kind kind,
                   struct slice request, uint64_t timeout_us);
/* For node_replication_events(); the context is the admin. */
MUST_USE int admin_events_answer(void *admin, struct slice request, struct buf *out);
uint64_t admin_unix_ms(const struct admin *a);
/* Records the result of a comparison of all routers' digests in a->agreed. */
void admin_saw_digests(struct admin *a, bool equal);
/* Returns the time of the current event, a whole millisecond, or the replication's time if that is
 * later. */
uint64_t admin_now_us(const struct admin *a, const struct node_replication *n);
/* Adds events for changes of replicas and routers, and updates the attention list, every
 * ADMIN_WATCH_MS. */
void admin_watch(struct admin *a, uint64_t now_ms);
/* Updates the attention list. */
void admin_attention_look(struct admin *a, uint64_t now_ms);
void admin_asks_free(struct admin *a);
void admin_adds_tick(struct admin *a);
void admin_adds_free(struct admin *a);

#endif
