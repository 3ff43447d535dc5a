/* The admin port: operators, probes and gvctl ask this router, or all routers through this router.
 * Pure: the proxy passes the heads of requests for judgement and sends the answers. An answer is
 * given when the request is whole, or later. Bodies are not kept.
 *
 * Owns the table of calls (calls.h), the pending questions to all routers, and the replicas being
 * added. */
#ifndef NODE_ADMIN_ADMIN_H
#define NODE_ADMIN_ADMIN_H

#include "base/err.h"
#include "node/cluster/replication.h"
#include "node/discover/discover.h"
#include "node/proxy/proxy.h"

struct admin;
struct admin_attention_list;

/* All pointers are borrowed until admin_destroy(). node_create() fills in the router, the sources
 * of replicas, the decisions, the replication and the name. */
struct admin_config {
    const struct node_options *options;
    struct node_router *router;
    struct discover *discover;
    struct node_replication *replication; /* NULL: this router runs alone */
    struct node_decisions *decisions;
    struct log *log;
    const char *name; /* this router's name in the cluster; NULL: runs alone */
    /* Return the present token for changes and the one for reading, valid during the call. `token`
     * may be NULL: only loopback may make changes. `read_token` may be NULL: reading needs no
     * token. */
    struct slice (*token)(void *context);
    struct slice (*read_token)(void *context);
    void *token_context;
    /* Writes the Prometheus text of the whole node. */
    int (*metrics)(void *context, struct buf *out);
    /* Writes the files that are unusable at present, as fields of an open JSON object; NULL:
     * none. */
    void (*files)(void *context, struct json_writer *w);
    /* Adds the files in need of attention to `list`: certificates about to expire; NULL: none. */
    void (*attention)(void *context, struct admin_attention_list *list);
    void *metrics_context; /* for metrics(), files() and attention() */
};

/* ERR_NOMEM. */
MUST_USE int admin_create(struct admin **out, const struct admin_config *config);
/* Called before the first request. */
void admin_start(struct admin *a, struct proxy *proxy);
/* Sets whether loopback reaches the admin port: true also for a port on all addresses. */
void admin_listens(struct admin *a, bool on_loopback);
/* Sets the last loaded settings; changes in need of a restart are shown as waiting. Borrowed until
 * the next call; NULL: the settings in force. */
void admin_options_wanted(struct admin *a, const struct node_options *wanted);
/* Sets the error in the last loaded settings; NULL: none. Borrowed until the next call. */
void admin_options_refused(struct admin *a, const char *why);
/* Advances the replicas being added. */
void admin_tick(struct admin *a);
/* Stops asking replicas; called before the proxy stops. */
void admin_stop(struct admin *a);
/* Ends the streams of viewers (live.h). Exchanges that are still open afterwards are requests. */
void admin_viewers_end(struct admin *a);
void admin_destroy(struct admin *a);

/* For proxy_config.admin_head and .admin; the context is the admin. */
void admin_head(void *admin, struct exchange *x, const struct http_head *head);
void admin_handle(void *admin, struct exchange *x, const struct http_head *head);

#endif
