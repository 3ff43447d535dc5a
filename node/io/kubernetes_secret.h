/* Makes a Secret of Kubernetes, once, as a Job in a pod does: gvctl keygen --kubernetes-secret.
 *
 * The API server is at KUBERNETES_SERVICE_HOST and _PORT. Its CA, the token and the namespace are
 * in the folder that Kubernetes mounts into a pod. All that it needs is a right to create Secrets
 * there: a Secret that exists is neither read nor changed. Blocks, for KUBERNETES_SECRET_TIMEOUT_S
 * at most. What is secret stands in no message.
 */
#ifndef NODE_IO_KUBERNETES_SECRET_H
#define NODE_IO_KUBERNETES_SECRET_H

#include "base/err.h"
#include "base/slice.h"

enum {
    KUBERNETES_SECRET_TIMEOUT_S = 30,
    KUBERNETES_SECRET_MESSAGE = 512,
};

/* `folder` is that of the service account. The Secret `name` gets one entry, `key`, with `text`.
 * ERR_EXISTS: there is one with that name. Else an error, and `message`
 * (KUBERNETES_SECRET_MESSAGE bytes) says what is wrong. */
MUST_USE int kubernetes_secret_create(const char *folder, const char *name, const char *key,
                                      struct slice text, char *message);

#endif
