/* The services of --replica-kubernetes. Sends the requests of node/discover/kubernetes.h by
 * libcurl's multi interface in the loop. Each service has a request under way, mostly a watch.
 *
 * Requests are sent as by any client in a pod. The API server is at KUBERNETES_SERVICE_HOST and
 * KUBERNETES_SERVICE_PORT. The CA, the token and the router's namespace are in a folder mounted by
 * Kubernetes. Token and CA change while the router runs, so both are read for each request. libcurl
 * handles proxies (HTTPS_PROXY, NO_PROXY). No message and no log contains the token. */
#ifndef NODE_IO_REPLICA_KUBERNETES_H
#define NODE_IO_REPLICA_KUBERNETES_H

#include <uv.h>

#include "base/err.h"
#include "base/log.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_KUBERNETES_KEEPALIVE_S = 30,     /* interval of TCP keep-alive */
    REPLICA_KUBERNETES_TOKEN_MAX = 16 << 10, /* bytes of the token's file */
    REPLICA_KUBERNETES_CA_MAX = 1 << 20,
    REPLICA_KUBERNETES_MESSAGE = 1024,
};

struct replica_kubernetes;

/* Registers a source for each service and sends the first requests. `options`, `d` and `log` are
 * borrowed until replica_kubernetes_free(). ERR_NOT_FOUND: not in a pod, ERR_EXISTS: duplicate
 * service; both are logged. ERR_FULL, ERR_NOMEM. */
MUST_USE int replica_kubernetes_open(struct replica_kubernetes **out, uv_loop_t *loop,
                                     const struct node_options *options, struct discover *d,
                                     struct log *log);
/* Checks that `folder` has a readable token and CA. ERR_* with a message of
 * REPLICA_KUBERNETES_MESSAGE bytes. */
MUST_USE int replica_kubernetes_check(const char *folder, char *message);
/* Ends all requests. The loop must run once more afterwards. */
void replica_kubernetes_stop(struct replica_kubernetes *r);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void replica_kubernetes_free(struct replica_kubernetes *r);

#endif
