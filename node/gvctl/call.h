/* A blocking HTTP call to an admin port. */
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
    const char *session;       /* session key of the request to explain; NULL: none */
    struct secure_trust trust; /* for an admin port at https:// */
    double timeout_s;          /* for the whole call */
    bool awaited;              /* CALL_REFUSED prints no message: the router may not listen yet */
    bool quiet;                /* no failure prints a message */
};

enum { CALL_FAILED = -1, CALL_REFUSED = -2 };

/* Returns the time by the monotonic clock. */
double call_seconds(void);
/* Waits for this time, or until a signal comes. */
void call_pause(double seconds);

/* Returns true for http[s]://HOST:PORT or HOST:PORT; prints an error otherwise. */
bool call_address_good(const char *admin);

/* Makes a call. `admin` is http[s]://HOST:PORT or HOST:PORT. Appends the body of the answer to
 * `out`. Returns the HTTP status, CALL_REFUSED, or CALL_FAILED after printing the error and the
 * remedy. An answer from a router's client port always counts as a failure. */
MUST_USE int call_admin(const char *admin, const struct call *call, struct buf *out);

#endif
