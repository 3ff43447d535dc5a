/* Requests that steer engines, sent to all replicas: control paths of the client port
 * (engine-control-paths=all), and the reset of caches that the admin port has.
 *
 * Each process gets the request once, whatever its health: one that sleeps is woken so, too.
 * Several are asked at a time. The answer has a row for each:
 *
 *     {"status":200,"replicas":[{"replica":"10.0.0.1:8000","status":200,"answer":"..."},
 *                               {"replica":"10.0.0.2:8000","status":502,"error":"..."}]}
 *
 * Its own status is 200 if all rows have 2xx, else the highest of them. A replica that was not
 * reached has 502, one that took too long 504. One that is listed and to which this router can send
 * nothing has `left_out`, the reason in words, and no status.
 *
 * A replica that confirms that its cache is empty (2xx, and not "success":false) is believed: what
 * is known of its cache is forgotten by all routers, as after a restart. If the client leaves,
 * replicas that were not asked yet are not, and the connections to the others are cut: they may
 * still do it, but their caches are not forgotten.
 */
#ifndef NODE_PROXY_OWN_CONTROL_H
#define NODE_PROXY_OWN_CONTROL_H

#include "node/proxy/exchange/exchange.h"

enum {
    CONTROL_AT_ONCE = 64,            /* replicas that are asked for one client at a time */
    CONTROL_ASKS_MAX = 4,            /* clients for which that is done at a time; then 503 */
    CONTROL_ANSWER_BYTES_MAX = 4096, /* of a replica's answer in its row */
};

/* Of all replicas those whose name or whose model it is; empty: of any. */
struct control_whom {
    struct slice replica, model;
};

/* A request for a control path. ?replica= and ?model= say whom it is for, and go no further. */
void control_answer(struct exchange *x, const struct http_head *head);

/* Empties caches: by the path that the engine has, which is tried where it is not known. */
void control_reset(struct exchange *x, const struct control_whom *whom);

#endif
