/* Every call of the admin port, a row each. The server's table (admin.c), the text of GET / and
 * gvctl's commands follow from the rows; node/gvctl/command.c has better words and tables for most.
 * docs/admin-api.md must name each path.
 *
 *   X(NAME, METHOD, path, argument, handler, flags, about)
 *
 * `argument` is the call's query parameter, "replica=HOST:PORT", or NULL. `about` is a line for
 * people; empty: the row above covers the call; NULL: GET / does not list the call. */
#ifndef NODE_ADMIN_CALLS_H
#define NODE_ADMIN_CALLS_H

enum {
    ADMIN_CHANGES = 1, /* changes state: needs the token, or a caller on loopback */
    ADMIN_PROBED = 2,  /* for probes and scrapers: any name in Host is accepted */
    ADMIN_BODY = 4,    /* reads the body, a client's request; other calls ignore the body */
    ADMIN_STREAM = 8,  /* the answer is an endless stream */
    ADMIN_SHARED = 16, /* changes state of all routers: refused until this router has the cluster's
                        * state */
    ADMIN_ASKS = 32,   /* estimates a prompt's cost: needs a token, or a caller on loopback */
};

#define ADMIN_CALLS(X)                                                                             \
    X(INDEX, GET, "/", NULL, admin_index, 0, NULL)                                                 \
    X(HEALTHZ, GET, "/healthz", NULL, admin_healthz, ADMIN_PROBED, "the process is alive")         \
    X(READYZ, GET, "/readyz", NULL, admin_readyz, ADMIN_PROBED,                                    \
      "at least one replica can be chosen")                                                        \
    X(METRICS, GET, "/metrics", NULL, admin_metrics, ADMIN_PROBED, "Prometheus")                   \
    X(REPLICAS, GET, "/replicas", NULL, admin_replicas, 0, "what is believed of every replica")    \
    X(SOURCES, GET, "/sources", NULL, admin_sources, 0, "where replicas come from")                \
    X(QUEUE, GET, "/queue", NULL, admin_queue, 0, "requests in flight, and those that wait")       \
    X(DECISIONS, GET, "/decisions", NULL, admin_decisions, 0,                                      \
      "the last decisions, each with its costs")                                                   \
    X(FIGURES, GET, "/figures", NULL, admin_figures_answer, ADMIN_PROBED,                          \
      "what this router did in each of the last seconds")                                          \
    X(EVENTS, GET, "/events", NULL, admin_happened, 0, "what happened lately, in words")           \
    X(EVENTS_ALL, GET, "/events", "all=1", admin_happened, 0, "the same, as all routers saw it")   \
    X(ATTENTION, GET, "/attention", NULL, admin_attention, 0,                                      \
      "what is wrong, since when, whom it hurts, and the next command")                            \
    X(LIVE, GET, "/live", NULL, admin_live, ADMIN_STREAM,                                          \
      "the same and the cluster as it happens: server-sent events")                                \
    X(EXPLAIN, POST, "/explain", NULL, admin_explain, ADMIN_BODY | ADMIN_ASKS,                     \
      "body: a request; what each replica would cost")                                             \
    X(EXPLAIN_ALL, POST, "/explain", "all=1", admin_explain, ADMIN_BODY | ADMIN_ASKS,              \
      "the same, as each router sees it")                                                          \
    X(MEMBERS, GET, "/members", NULL, admin_members, 0, "the routers of the cluster")              \
    X(MEMBER_FORGET, DELETE, "/members", "member=NAME", admin_member_forget,                       \
      ADMIN_CHANGES | ADMIN_SHARED, "a router that is gone is not shown any more")                 \
    X(CONVERGENCE, GET, "/convergence", NULL, admin_convergence, 0,                                \
      "digests of all routers, and whether they are equal")                                        \
    X(SHADOW, GET, "/shadow", NULL, admin_shadow, 0,                                               \
      "shadow mode: the policy against a plain one, at all routers")                               \
    X(CONFIG, GET, "/config", NULL, admin_config, 0, "settings in force")                          \
    X(LOG_LEVEL, POST, "/log-level", "level=debug", admin_log_level, ADMIN_CHANGES,                \
      "error, warn, info or debug")                                                                \
    X(DRAIN, POST, "/drain", "replica=HOST:PORT", admin_drain, ADMIN_CHANGES | ADMIN_SHARED,       \
      "no new requests for a replica")                                                             \
    X(UNDRAIN, POST, "/undrain", "replica=HOST:PORT", admin_undrain, ADMIN_CHANGES | ADMIN_SHARED, \
      "")                                                                                          \
    X(ADD, POST, "/replicas", "replica=HOST:PORT", admin_replica_add,                              \
      ADMIN_CHANGES | ADMIN_SHARED, "add a replica at run time")                                   \
    X(REMOVE, DELETE, "/replicas", "replica=HOST:PORT", admin_replica_remove,                      \
      ADMIN_CHANGES | ADMIN_SHARED, "remove one")                                                  \
    X(RESET_CACHE, POST, "/reset-cache", "replica=HOST:PORT", admin_reset_cache,                   \
      ADMIN_CHANGES | ADMIN_SHARED, "empty engines' caches: of one, of a model's, or of all")      \
    X(POISON, GET, "/poison", NULL, admin_poison, 0, "requests after which engines died")          \
    X(FORGET, DELETE, "/poison", "hash=HASH", admin_poison_forget, ADMIN_CHANGES | ADMIN_SHARED,   \
      "serve one again")

enum admin_call {
#define ADMIN_CALL_ENUM(name, method, path, argument, handler, flags, about) ADMIN_CALL_##name,
    ADMIN_CALLS(ADMIN_CALL_ENUM)
#undef ADMIN_CALL_ENUM
        ADMIN_CALL_COUNT
};

struct admin_call_row {
    const char *method, *path, *argument, *about;
    unsigned flags;
};

/* Returns the row of a call, for gvctl, which makes the call. */
const struct admin_call_row *admin_call_row(enum admin_call call);

#endif
