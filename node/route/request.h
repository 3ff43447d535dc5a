/* A routing request as bytes, to ask another router for the choice there. Only keyed hashes and
 * counts of the prompt are sent. */
#ifndef NODE_ROUTE_REQUEST_H
#define NODE_ROUTE_REQUEST_H

#include "base/err.h"
#include "node/route/router.h"

/* Appends the request to `out`, for a NODE_CALL_EXPLAIN of node/cluster/replication.h. Long texts
 * are cut. ERR_NOMEM; ERR_LIMIT. */
MUST_USE int node_request_pack(const struct node_request *request, struct buf *out);

struct node_request_copy {
    struct node_request request; /* request.chain is `chain` below, or NULL; texts are borrowed */
    struct chain chain;
};

/* Reads a request from node_request_pack(). ERR_SYNTAX. */
MUST_USE int node_request_unpack(struct node_request_copy *out, struct slice bytes);

#endif
