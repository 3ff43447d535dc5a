/* A routing request as bytes, to ask another router for the choice there. Only keyed hashes and
 * counts of the prompt are sent. */
#ifndef NODE_ROUTE_REQUEST_H
#define NODE_ROUTE_REQUEST_H

#include "base/err.h"
#include "node/route/router.h"

/* For a NODE_CALL_EXPLAIN of node/cluster/replication.h. */
MUST_USE int node_request_pack(const struct node_request *request, struct buf *out);

struct node_request_copy {
    struct node_request request; /* `chain` is the one below; texts are borrowed */
    struct chain chain;
};

/* ERR_SYNTAX. */
MUST_USE int node_request_unpack(struct node_request_copy *out, struct slice bytes);

#endif
