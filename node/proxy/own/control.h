/* Sends control requests for engines to all replicas: control paths of the client port
 * (engine-control-paths=all), and cache resets of the admin port.
 *
 * Each process gets the request once, even if unhealthy, because a control request may wake a
 * sleeping engine. Several replicas are asked at a time. The router's answer has a row for each:
 *
 *     {"status":200,"replicas":[{"replica":"10.0.0.1:8000","status":200,"answer":"..."},
 *                               {"replica":"10.0.0.2:8000","status":502,"error":"..."}]}
 *
 * The answer's HTTP status is 200 if all rows have 2xx, otherwise the highest other status. An
 * unreachable replica's row has 502, and 504 after a timeout. If this router cannot ask a listed
 * replica, the row has `left_out`, the reason in words, and no status.
 *
 * If a replica confirms an empty cache (2xx, and not "success":false), all routers forget the
 * cache's believed contents, as after a restart. If the client disconnects, the remaining replicas
 * are not asked, and requests under way are cut. Replicas may still act on cut requests, but the
 * routers do not forget these replicas' caches. */
#ifndef NODE_PROXY_OWN_CONTROL_H
#define NODE_PROXY_OWN_CONTROL_H

#include "node/proxy/exchange/exchange.h"

enum {
    CONTROL_AT_ONCE = 64,            /* replicas asked at a time, per client */
    CONTROL_ASKS_MAX = 4,            /* clients with control requests at a time; others get 503 */
    CONTROL_ANSWER_BYTES_MAX = 4096, /* most bytes of a replica's answer in the row */
};

/* Selects the replicas to ask, by name and by model. Empty: all. */
struct control_whom {
    struct slice replica, model;
};

/* Answers a request for a control path. ?replica= and ?model= select the replicas and are not
 * forwarded. */
void control_answer(struct exchange *x, const struct http_head *head);

/* Resets caches by the path of each engine's type. If the type is unknown, both paths are tried. */
void control_reset(struct exchange *x, const struct control_whom *whom);

#endif
