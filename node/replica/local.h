/* Local replicas: the address means something else on another machine, such as loopback (127.0.0.1,
 * ::1, localhost), link-local, and "all addresses". Routers on different machines call a local
 * replica ADDRESS@ROUTER: "127.0.0.1:8000@router-1:7490". All routers list such a name, and only
 * ROUTER uses it. A rank's number follows: "127.0.0.1:8000@router-1:7490@3". */
#ifndef NODE_REPLICA_LOCAL_H
#define NODE_REPLICA_LOCAL_H

#include <stdbool.h>

#include "base/slice.h"
#include "node/replica/limits.h"

struct node_local_name {
    struct slice address; /* HOST:PORT or https://HOST:PORT; borrowed from the name, unchanged */
    struct slice owner;   /* the router's name; empty: none */
    struct slice whole;   /* address and owner, without a rank */
    bool is_rank;
};

/* Splits a name, of a rank or not. Returns true if the address is local. */
bool node_local_name_parse(struct slice name, struct node_local_name *out);
/* True if the bytes are valid in a router's name. */
bool node_local_owner_good(struct slice owner);
/* The name of a local replica of the router `owner`; `out` has NODE_NAME_MAX bytes. The router's
 * name gets a trailing dot if it is a number (like a rank) or contains '@'. Empty: too long. */
struct slice node_local_name_write(struct slice address, struct slice owner, char *out);

#endif
