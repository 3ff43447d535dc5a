/* Shared by prober.c and prober_answer.c. */
#ifndef NODE_PROXY_ENGINE_PROBER_INTERNAL_H
#define NODE_PROXY_ENGINE_PROBER_INTERNAL_H

#include "node/proxy/engine/fetch.h"
#include "node/proxy/engine/model_list.h"
#include "node/proxy/engine/prober.h"

enum {
    PROBER_MODELS_INTERVAL_MS = 10000,
    PROBER_RESOLVE_INTERVAL_MS = 30000,
    PROBER_EVENTS_MIN_MS = 10000, /* shortest time between two probes for sources of KV events */
    PROBER_LANES = 2,             /* most probes of a replica at a time */
};

/* A lane: a probe under way, and the connection. While the probe on the first lane waits long for
 * an answer, due probes use the second lane. */
struct prober_lane {
    struct fetch fetch;
    struct prober_probe *probe;
    enum node_probe kind;
    uint64_t begun_ms;
    unsigned sent_key; /* version of the API key when the probe began */
    bool with_key;     /* the probe carries the key */
};

struct prober_probe {
    struct prober_lane lanes[PROBER_LANES];
    struct prober *prober;
    unsigned replica;
    uint64_t due_ms[NODE_PROBES];
    uint64_t begun_ms[NODE_PROBES]; /* last start of each kind; 0: never */
    uint64_t ranks_ms;              /* time of the last or the next probe of the ranks */
    uint64_t mute_ms;               /* start of the first probe of the present run of timeouts */
    bool active;                    /* the replica is in use */
    bool was_up;                    /* the replica was up at the last log line */
    bool sought;                    /* requests wait to learn if the replica is back */
    bool models_asked;              /* /v1/models was answered, or timed out */
    bool told_down;                 /* the replica is logged as down */
    bool told_router;               /* logged: a router answers, not an engine */
    bool told_refused;              /* logged: the replica refuses probes */
    unsigned told_key;              /* version of the API key when `told_refused` was logged */
    bool told_leaving;              /* logged: the replica reports itself unhealthy */
    bool warned;                    /* the health was probed because another router found trouble */
    bool wanted;                    /* reads the metrics next time, even on another router's turn */
    bool older_server_info;         /* /server_info is missing: the path of older SGLang is used */
    bool no_ping;                   /* /ping is missing or refused */
    bool health_wants_key;          /* /health was refused without the key */
    bool metrics_missing;           /* logged: the metrics are unavailable */
    bool ranks_differ;              /* logged: the label has the wrong number of ranks */
    bool too_large[NODE_PROBES];    /* logged: the answer is too large */
    struct buf models;              /* the last valid answer to /v1/models */
};

struct prober {
    struct proxy *proxy;
    unsigned key_version;                          /* version of the probes' API key */
    uint64_t models_version;                       /* rises when any model list changes */
    struct model_list list;                        /* scratch */
    struct node_scrape ranks[NODE_RANKS_MAX];      /* scratch */
    struct prober_probe probes[NODE_REPLICAS_MAX]; /* by replica; unused pages stay untouched */
};

/* --- prober_answer.c ------------------------------------------------------------------------- */

/* Handles a probe's answer or failure: err, refused and status are as in fetch.h. */
void prober_answered(struct prober_lane *lane, int err, bool refused, unsigned status,
                     struct slice body);
/* Logs any change of the replica's health since the last log line. Broken answers to clients cause
 * such changes too, so the tick also calls this. */
void prober_log_change(struct prober_probe *p, const char *reason, unsigned status);
/* Asks soon for the sources of KV events, because another process may answer now. */
void prober_events_soon(struct prober_probe *p);
/* Returns the path of a probe, borrowed from the settings or the replica. */
struct slice prober_path(const struct prober_probe *p, enum node_probe kind);

#endif
