/* What prober.c and prober_answer.c share. */
#ifndef NODE_PROXY_ENGINE_PROBER_INTERNAL_H
#define NODE_PROXY_ENGINE_PROBER_INTERNAL_H

#include "node/proxy/engine/fetch.h"
#include "node/proxy/engine/model_list.h"
#include "node/proxy/engine/prober.h"

enum {
    PROBER_MODELS_INTERVAL_MS = 10000,
    PROBER_RESOLVE_INTERVAL_MS = 30000,
    PROBER_EVENTS_MIN_MS = 10000, /* between two questions for sources of KV events */
    PROBER_LANES = 2,
};

/* A probe under way, and the connection that it uses. The second one is for what is due while the
 * first one waits. */
struct prober_lane {
    struct fetch fetch;
    struct prober_probe *probe;
    enum node_probe kind;
    uint64_t begun_ms;
    unsigned sent_key; /* the version of the API key that was there when it began */
    bool with_key;     /* it carries it */
};

struct prober_probe {
    struct prober_lane lanes[PROBER_LANES];
    struct prober *prober;
    unsigned replica;
    uint64_t due_ms[NODE_PROBES];
    uint64_t begun_ms[NODE_PROBES]; /* when it was asked that last; 0: never */
    uint64_t ranks_ms;              /* when its ranks are or were asked for last */
    uint64_t mute_ms; /* when the first of those began that had no answer in time, of late */
    bool active;      /* the replica is in use */
    bool was_up;
    bool sought;            /* requests wait to hear whether it is back */
    bool models_asked;      /* an answer to /v1/models came, or none in time */
    bool told_down;         /* that it is down, in the log */
    bool told_router;       /* that it is no engine */
    bool told_refused;      /* that it refuses probes, in the log, */
    unsigned told_key;      /* with this version of the API key */
    bool told_leaving;      /* that its health check says no */
    bool warned;            /* another router found it in trouble, and its health was asked for */
    bool wanted;            /* its metrics are, whoever's turn it is to read them */
    bool older_server_info; /* it had no /server_info: it is asked as older SGLang wants */
    bool no_ping;           /* it has no /ping, or refuses it */
    bool health_wants_key;  /* it refused /health without one */
    bool metrics_missing;   /* told once */
    bool ranks_differ;      /* told once */
    bool too_large[NODE_PROBES]; /* told once */
    struct buf models;           /* the last /v1/models that was understood */
};

struct prober {
    struct proxy *proxy;
    unsigned key_version;                          /* of the API key that probes carry */
    uint64_t models_version;                       /* of all lists of models */
    struct model_list list;                        /* scratch, */
    struct node_scrape ranks[NODE_RANKS_MAX];      /* and more of it */
    struct prober_probe probes[NODE_REPLICAS_MAX]; /* touched as they come */
};

/* --- prober_answer.c ------------------------------------------------------------------------- */

/* What came back, or did not: err, refused and status are those of fetch.h. */
void prober_answered(struct prober_lane *lane, int err, bool refused, unsigned status,
                     struct slice body);
/* Logs what changed since it was logged last. Checks are not the only reason: answers that break
 * off take a replica out too, which is found out here by the tick. */
void prober_log_change(struct prober_probe *p, const char *reason, unsigned status);
/* Another process may answer for it: it is asked soon where it publishes KV events, if it does. */
void prober_events_soon(struct prober_probe *p);
/* Where the replica is asked that. Borrowed from the settings or the replica. */
struct slice prober_path(const struct prober_probe *p, enum node_probe kind);

#endif
