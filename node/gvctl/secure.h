/* TLS on a blocking socket, for calls to an admin port at https://. */
#ifndef NODE_GVCTL_SECURE_H
#define NODE_GVCTL_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { SECURE_MESSAGE = 256 };

struct secure_trust {
    const char *ca_file;  /* NULL: the system's CAs */
    const char *own_file; /* a peer with this very certificate is trusted too; NULL: none */
    bool insecure;        /* any peer is trusted */
};

struct secure;

/* Performs the handshake. ERR_DENIED with a message of SECURE_MESSAGE bytes; ERR_UNSUPPORTED (the
 * peer does not use TLS), ERR_TIMEOUT, ERR_CLOSED and ERR_NOMEM without. The caller still owns the
 * socket. */
MUST_USE int secure_open(struct secure **out, int fd, const char *host,
                         const struct secure_trust *trust, char *message);
/* As send() and recv(), with errno. */
ssize_t secure_write(struct secure *s, const void *bytes, size_t len);
ssize_t secure_read(struct secure *s, void *out, size_t len);
/* Accepts NULL. */
void secure_free(struct secure *s);

#endif
