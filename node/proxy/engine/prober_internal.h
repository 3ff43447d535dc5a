/* The shared part of prober.c and prober_answer.c. */
#ifndef NODE_PROXY_ENGINE_PROBER_INTERNAL_H
#define NODE_PROXY_ENGINE_PROBER_INTERNAL_H

#include "node/proxy/engine/fetch.h"
#include "node/proxy/engine/model_list.h"
#include "node/proxy/engine/prober.h"

enum {
    PROBER_MODELS_INTERVAL_MS = 10000,
    PROBER_RESOLVE_INTERVAL_MS = 30000,
    PROBER_EVENTS_MIN_MS = 10000, /* between two probes for sources of KV events */
    PROBER_LANES = 2,
};

/* A probe under way, and its connection. The second lane is for due probes while the first
 * waits. */
struct prober_lane {
    struct fetch fetch;
    struct prober_probe *probe;
    enum node_probe kind;
    uint64_t begun_ms;
    unsigned sent_key; /* version of the API key at the start */
    bool with_key;     /* the key is sent */
};

struct prober_probe {
    struct prober_lane lanes[PROBER_LANES];
    struct prober *prober;
    unsigned replica;
    uint64_t due_ms[NODE_PROBES];
    uint64_t begun_ms[NODE_PROBES]; /* last start of each kind; 0: never */
    uint64_t ranks_ms;              /* last or next probe of the ranks */
    uint64_t mute_ms;               /* start of the first recent probe without an answer in time */
    bool active;                    /* the replica is in use */
    bool was_up;
    bool sought;                 /* requests wait for news of a return */
    bool models_asked;           /* /v1/models was answered, or timed out */
    bool told_down;              /* logged as down */
    bool told_router;            /* logged as no engine */
    bool told_refused;           /* logged as refusing probes, */
    unsigned told_key;           /* with this version of the API key */
    bool told_leaving;           /* logged as unhealthy by the health check */
    bool warned;                 /* another router found trouble, and the health was probed */
    bool wanted;                 /* metrics are due, whichever router's turn it is */
    bool older_server_info;      /* /server_info is missing: use older SGLang's path */
    bool no_ping;                /* /ping is missing or refused */
    bool health_wants_key;       /* /health was refused without the key */
    bool metrics_missing;        /* logged */
    bool ranks_differ;           /* logged */
    bool too_large[NODE_PROBES]; /* logged */
    struct buf models;           /* the last readable answer to /v1/models */
};

struct prober {
    struct proxy *proxy;
    unsigned key_version;                          /* of the probes' API key */
    uint64_t models_version;                       /* of all model lists */
    struct model_list list;                        /* scratch, */
    struct node_scrape ranks[NODE_RANKS_MAX];      /* and more scratch */
    struct prober_probe probes[NODE_REPLICAS_MAX]; /* touched when needed */
};

/* --- prober_answer.c ------------------------------------------------------------------------- */

/* Handles a probe's answer, or its failure: err, refused and status are as in fetch.h. */
void prober_answered(struct prober_lane *lane, int err, bool refused, unsigned status,
                     struct slice body);
/* Logs changes of the replica's health since the last log line. Not only checks cause these: broken
 * answers take a replica out too, which the tick finds here. */
void prober_log_change(struct prober_probe *p, const char *reason, unsigned status);
/* Another process may answer now: asks soon for the sources of its KV events. */
void prober_events_soon(struct prober_probe *p);
/* Returns the path of a probe, borrowed from the settings or the replica. */
struct slice prober_path(const struct prober_probe *p, enum node_probe kind);

#endif
