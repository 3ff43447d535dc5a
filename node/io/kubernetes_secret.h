/* Creates a Kubernetes Secret, once, for a Job in a pod: gvctl keygen --kubernetes-secret.
 *
 * The API server is at KUBERNETES_SERVICE_HOST and _PORT. The CA, the token and the namespace are
 * in a folder mounted by Kubernetes into the pod. The only right needed is to create Secrets in
 * this namespace: an existing Secret is neither read nor changed. Blocks, for at most
 * KUBERNETES_SECRET_TIMEOUT_S. No message contains a secret. */
#ifndef NODE_IO_KUBERNETES_SECRET_H
#define NODE_IO_KUBERNETES_SECRET_H

#include "base/err.h"
#include "base/slice.h"

enum {
    KUBERNETES_SECRET_TIMEOUT_S = 30,
    KUBERNETES_SECRET_MESSAGE = 512,
};

/* `folder` is the service account's. The Secret `name` gets an entry `key` with `text`. ERR_EXISTS:
 * a Secret with this name exists. After another error `message` (KUBERNETES_SECRET_MESSAGE bytes)
 * is the reason. */
MUST_USE int kubernetes_secret_create(const char *folder, const char *name, const char *key,
                                      struct slice text, char *message);

#endif
