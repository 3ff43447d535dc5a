/* The admin port: what operators, probes and gvctl ask of one router, or of all of them through it.
 * Pure: requests come from the proxy, are judged by their heads, and answered through it when they
 * are whole, now or later. No body is held.
 *
 * It owns the table of calls (calls.h), the questions to all routers that wait for answers, and the
 * replicas that are being added.
 */
#ifndef NODE_ADMIN_ADMIN_H
#define NODE_ADMIN_ADMIN_H

#include "base/err.h"
#include "node/cluster/replication.h"
#include "node/discover/discover.h"
#include "node/proxy/proxy.h"

struct admin;
struct admin_attention_list;

/* All pointers are borrowed until admin_destroy(). node_create() fills in the router, the
 * sources of replicas, the replication and the name. */
struct admin_config {
    const struct node_options *options;
    struct node_router *router;
    struct discover *discover;
    struct node_replication *replication; /* NULL: this router runs alone */
    struct node_decisions *decisions;
    struct log *log;
    const char *name; /* of this router in the cluster; NULL: it runs alone */
    /* The tokens as they are now, good for the call. NULL: none is asked for; without `token`
     * changes are taken from loopback alone. */
    struct slice (*token)(void *context);
    struct slice (*read_token)(void *context);
    void *token_context;
    /* Prometheus text of the whole node. */
    int (*metrics)(void *context, struct buf *out);
    /* Which files cannot be used as they are now, into an open object; NULL: there are none. */
    void (*files)(void *context, struct json_writer *w);
    /* Adds what needs attention of files: certificates that expire; NULL: there are none. */
    void (*attention)(void *context, struct admin_attention_list *list);
    void *metrics_context; /* of the three */
};

/* ERR_NOMEM. */
MUST_USE int admin_create(struct admin **out, const struct admin_config *config);
/* Before the first request. */
void admin_start(struct admin *a, struct proxy *proxy);
/* Whether the admin port is listened to on loopback: it may be on all addresses. */
void admin_listens(struct admin *a, bool on_loopback);
/* The settings that were loaded last, of which those that want a restart are shown as waiting.
 * Borrowed until the next ones; NULL: those in force. */
void admin_options_wanted(struct admin *a, const struct node_options *wanted);
/* What is wrong with the settings that were loaded last; NULL: nothing. Borrowed until the next. */
void admin_options_refused(struct admin *a, const char *why);
/* Looks at the replicas that are being added. */
void admin_tick(struct admin *a);
/* No more questions to replicas; before the proxy stops. */
void admin_stop(struct admin *a);
/* Ends the streams of those who look (live.h): what is still open then are requests. */
void admin_viewers_end(struct admin *a);
void admin_destroy(struct admin *a);

/* For proxy_config.admin_head and .admin; the context is the admin. */
void admin_head(void *admin, struct exchange *x, const struct http_head *head);
void admin_handle(void *admin, struct exchange *x, const struct http_head *head);

#endif
