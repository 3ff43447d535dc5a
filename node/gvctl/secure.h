/* TLS on a socket that blocks, for calls to an admin port at https://. */
#ifndef NODE_GVCTL_SECURE_H
#define NODE_GVCTL_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { SECURE_MESSAGE = 256 };

struct secure_trust {
    const char *ca_file;  /* NULL: the CAs of the system */
    const char *own_file; /* whoever shows this very certificate is believed too; NULL: none */
    bool insecure;        /* whoever answers is believed */
};

struct secure;

/* The handshake. ERR_DENIED with a message of SECURE_MESSAGE bytes; ERR_UNSUPPORTED (who answers
 * speaks no TLS), ERR_TIMEOUT, ERR_CLOSED and ERR_NOMEM without. The socket stays the caller's. */
MUST_USE int secure_open(struct secure **out, int fd, const char *host,
                         const struct secure_trust *trust, char *message);
/* As send() and recv(), with errno. */
ssize_t secure_write(struct secure *s, const void *bytes, size_t len);
ssize_t secure_read(struct secure *s, void *out, size_t len);
/* NULL is fine. */
void secure_free(struct secure *s);

#endif
