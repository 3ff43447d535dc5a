/* Sends control requests for engines to all replicas: control paths of the client port
 * (engine-control-paths=all), and cache resets of the admin port.
 *
 * Each process gets the request once, whatever its health, because a sleeping engine is woken this
 * way. Several replicas are asked at a time. The answer has a row for each:
 *
 *     {"status":200,"replicas":[{"replica":"10.0.0.1:8000","status":200,"answer":"..."},
 *                               {"replica":"10.0.0.2:8000","status":502,"error":"..."}]}
 *
 * The answer's own status is 200 if all rows have 2xx, else the highest of the others. An
 * unreachable replica has 502, and 504 after a timeout. A listed replica outside this router's
 * reach has `left_out`, the reason in words, and no status.
 *
 * If a replica confirms an empty cache (2xx, and not "success":false), all routers forget the
 * cache's believed contents, as after a restart. If the client leaves, the remaining replicas are
 * not asked, and the connections to the others are cut. These may still act, but their caches are
 * not forgotten. */
#ifndef NODE_PROXY_OWN_CONTROL_H
#define NODE_PROXY_OWN_CONTROL_H

#include "node/proxy/exchange/exchange.h"

enum {
    CONTROL_AT_ONCE = 64,            /* replicas asked for one client at a time */
    CONTROL_ASKS_MAX = 4,            /* clients at a time; beyond these 503 */
    CONTROL_ANSWER_BYTES_MAX = 4096, /* of a replica's answer in its row */
};

/* The replicas with that name or that model; empty: any. */
struct control_whom {
    struct slice replica, model;
};

/* Answers a request for a control path. ?replica= and ?model= select the replicas and are not
 * forwarded. */
void control_answer(struct exchange *x, const struct http_head *head);

/* Empties caches by the engine's path; if the type is unknown, both paths are tried. */
void control_reset(struct exchange *x, const struct control_whom *whom);

#endif
