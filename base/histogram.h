/* How long things took, as counts by upper bounds: what a Prometheus histogram is made of. The
 * bounds are the same for all, so that those of several routers can be added up. Adding is a few
 * compares; nothing is allocated.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 19 }; /* 1 ms to 1,000 s: 1, 2.5, 5, 10, ... */

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* the last: beyond all bounds */
    uint64_t count;
    double sum_s;
};

/* In seconds, rising. */
extern const double histogram_bounds_s[HISTOGRAM_BOUNDS];

/* A value that equals a bound counts below it. Negative ones count as 0. */
void histogram_add(struct histogram *h, double seconds);
/* The value that `share` of them do not exceed, within its bound; the last bound for those beyond
 * all. `counts` has HISTOGRAM_BOUNDS + 1; -1: there are none. */
double histogram_quantile(const uint64_t *counts, double share);

#endif
