/* The services of --replica-kubernetes: libcurl's multi interface in the loop carries what
 * node/discover/kubernetes.h asks for. Each service has one request under way, mostly a watch.
 *
 * As a client in a pod does: the API server is at KUBERNETES_SERVICE_HOST and _PORT, its CA, the
 * token and the router's own namespace are in the folder that Kubernetes mounts. Token and CA
 * change while the router runs: both are read for each request. Proxies are libcurl's business
 * (HTTPS_PROXY, NO_PROXY). The token is in no message and in no log.
 */
#ifndef NODE_IO_REPLICA_KUBERNETES_H
#define NODE_IO_REPLICA_KUBERNETES_H

#include <uv.h>

#include "base/err.h"
#include "base/log.h"
#include "node/discover/discover.h"
#include "node/settings/options.h"

enum {
    REPLICA_KUBERNETES_KEEPALIVE_S = 30,     /* of TCP */
    REPLICA_KUBERNETES_TOKEN_MAX = 16 << 10, /* bytes */
    REPLICA_KUBERNETES_CA_MAX = 1 << 20,
    REPLICA_KUBERNETES_MESSAGE = 1024,
};

struct replica_kubernetes;

/* Registers a source for each service and begins to ask. `options`, `d` and `log` are borrowed
 * until replica_kubernetes_free(). ERR_NOT_FOUND: it does not run in a pod, ERR_EXISTS: a service
 * is there twice; both are logged. ERR_FULL, ERR_NOMEM. */
MUST_USE int replica_kubernetes_open(struct replica_kubernetes **out, uv_loop_t *loop,
                                     const struct node_options *options, struct discover *d,
                                     struct log *log);
/* Whether `folder` has a token and a CA that can be read. ERR_* with a message of
 * REPLICA_KUBERNETES_MESSAGE bytes. */
MUST_USE int replica_kubernetes_check(const char *folder, char *message);
/* No more asking; the loop has to run once more. */
void replica_kubernetes_stop(struct replica_kubernetes *r);
/* The loop has ended, or never ran. NULL is fine. */
void replica_kubernetes_free(struct replica_kubernetes *r);

#endif
