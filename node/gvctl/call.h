/* One blocking HTTP call to an admin port. */
#ifndef NODE_GVCTL_CALL_H
#define NODE_GVCTL_CALL_H

#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/secure.h"

struct call {
    const char *method;
    const char *target;
    struct slice body;
    const char *token;         /* NULL: none */
    const char *session;       /* the key of the request that is explained; NULL: none */
    struct secure_trust trust; /* of an admin port at https:// */
    double timeout_s;          /* for all of it */
    bool awaited;              /* CALL_REFUSED prints no message: the router may not listen yet */
    bool quiet;                /* no failure prints one */
};

enum { CALL_FAILED = -1, CALL_REFUSED = -2 };

/* A clock that never goes back. */
double call_seconds(void);
/* Until it has gone on so far, or a signal comes. */
void call_pause(double seconds);

/* Whether it is http[s]://HOST:PORT or HOST:PORT; if not, that is printed. */
bool call_address_good(const char *admin);

/* `admin` is http[s]://HOST:PORT or HOST:PORT. The body of the answer is appended to `out`. Returns
 * the status, CALL_REFUSED, or CALL_FAILED after printing what went wrong and what to do. The
 * client port of a router counts as a failure, whatever it answers. */
MUST_USE int call_admin(const char *admin, const struct call *call, struct buf *out);

#endif
