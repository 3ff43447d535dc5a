/* What `status` and `top` tell of: one look at a router, at its replicas, and at the other routers
 * whose admin ports can be reached from here. */
#ifndef NODE_GVCTL_SURVEY_H
#define NODE_GVCTL_SURVEY_H

#include <jansson.h>
#include <stdbool.h>

#include "node/gvctl/given.h"
#include "node/proxy/net.h"
#include "node/route/result.h"
#include "node/settings/address.h"

enum {
    SURVEY_ROUTERS_MAX = 16, /* whose counters are asked for; of others their state alone counts */
    SURVEY_BUCKETS_MAX = 32, /* of a histogram */
    SURVEY_NAME_BYTES = 128,
    SURVEY_ADMIN_BYTES = NODE_HOST_BYTES + 32,
};

/* Counters since a start; all may be added up over routers. */
struct survey_counters {
    double requests;                     /* begun on the client port */
    double refused;                      /* errors of the router's own */
    double results[NODE_RESULTS];        /* of them NODE_RESULT_CLIENT_ERROR and what failed */
    double prompt_tokens, cached_tokens; /* that engines reported of answers */
    double first_tokens, first_seconds;  /* streams, and their times to the first token */
    unsigned bucket_count;
    double bucket_ends[SURVEY_BUCKETS_MAX];
    double buckets[SURVEY_BUCKETS_MAX]; /* of those times, cumulative */
};

/* Files that a router cannot use as they are now, so that what was in force goes on. */
enum survey_file { SURVEY_SETTINGS, SURVEY_CLIENT_KEYS, SURVEY_TLS_FILES, SURVEY_FILES };

/* What a router did in the last minute, by its figures. A sum of counters would fall when a router
 * dies; of this one a router that is gone has no part, as it does nothing. */
struct survey_minute {
    bool known; /* else the router is an older one, or does not answer */
    double requests, hidden;
    double results[NODE_RESULTS]; /* but NODE_RESULT_OK */
};

struct survey_router {
    char name[SURVEY_NAME_BYTES], state[32], version[32], policy[32], address[SURVEY_NAME_BYTES];
    char tcp_filtered[SURVEY_NAME_BYTES]; /* where it takes no call, though its datagrams come */
    unsigned filtered; /* members to which its own calls do not get through, though they live */
    bool other_asks;   /* a router of another cluster-name asks it to join */
    bool self;
    bool reached;      /* its counters count */
    bool tells_failed; /* they have what failed; those of an older router do not */
    bool refused[SURVEY_FILES];
    bool short_of[NET_SHORTAGES];   /* its machine is, for connections to replicas */
    double connections_refused;     /* at its door, since its start */
    unsigned waits;                 /* settings that wait for a restart */
    char admin[SURVEY_ADMIN_BYTES]; /* the URL of its admin port, as far as it is known */
    double lag_ms, in_flight, queue_length;
    struct survey_counters counters;
    struct survey_minute minute;
};

struct survey {
    double at_s;
    bool alone; /* it runs without a cluster */
    bool ready;
    char why_not[256], alone_why[256];
    struct survey_router *routers; /* owned; the one that is asked comes first */
    unsigned router_count;
    json_t *replicas; /* owned; /replicas */
    json_t *answered; /* owned; replica -> sums by survey_answered over all reached */
};

/* What routers count of a replica: tokens of answers, requests that it was chosen for, and attempts
 * that went wrong there. */
enum survey_answered { SURVEY_PROMPT, SURVEY_CACHED, SURVEY_CHOSEN, SURVEY_ERRORS };

/* False after printing why; `s` has nothing to free then. With `quiet` it prints nothing. */
bool survey_take(struct survey *s, const struct given *g, bool quiet);
void survey_free(struct survey *s);
/* Asks the routers that were reached for their last minute, too. */
void survey_minutes_take(struct survey *s, const struct given *g);

/* Over all routers that were reached. */
struct survey_counters survey_sum(const struct survey *s);
/* What was counted since `before`; all of it where a router has started anew since. */
struct survey_counters survey_since(const struct survey_counters *now,
                                    const struct survey_counters *before);
/* What failed (node/route/result.h). */
double survey_failed(const double results[NODE_RESULTS]);
/* The share of prompts' tokens that came from caches; negative: none was reported. */
double survey_share(const struct survey_counters *c);
/* The time to the first token that a share of streams (0.99) did not exceed, within its bucket;
 * negative: there is none. */
double survey_quantile(const struct survey_counters *c, double share);
/* Under way at the replica, of all routers. */
double survey_in_flight(const json_t *replica);

#endif
