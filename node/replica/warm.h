/* Slow start of a replica that is back: its engine is cold (memory to map, kernels to compile, an
 * empty cache), and its empty queue would attract everything at once. For some seconds it takes a
 * bounded number of requests, which doubles each second: 4, 8, 16, ... in flight, those of all
 * routers together. Beyond that it is avoided, so requests go there all the same where no other
 * replica will do.
 *
 * The bound is beside what is believed of its speed: that is only ever learned from answers.
 */
#ifndef NODE_REPLICA_WARM_H
#define NODE_REPLICA_WARM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NODE_WARM_REQUESTS = 4, /* in flight at first */
    NODE_WARM_MS = 8000,    /* until there is no bound: 512 in flight by then */
};

/* `since_ms`: when it came back; 0: it did not. */
static inline bool node_warm_full(uint64_t since_ms, uint64_t requests, uint64_t now_ms)
{
    if (since_ms == 0 || now_ms >= since_ms + NODE_WARM_MS)
        return false;
    uint64_t seconds = now_ms > since_ms ? (now_ms - since_ms) / 1000 : 0;
    return requests >= (uint64_t)NODE_WARM_REQUESTS << seconds;
}

#endif
