/* Durations, counted by upper bounds, as in a Prometheus histogram. All histograms have the same
 * bounds, so that those of several routers can be summed. Adding a value takes a few comparisons;
 * nothing is allocated.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 19 }; /* 1 ms to 1,000 s: 1, 2.5, 5, 10, ... */

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* values by bound; the last count is of values beyond
                                            * all bounds */
    uint64_t count;
    double sum_s;
};

/* The upper bounds in seconds, rising. */
extern const double histogram_bounds_s[HISTOGRAM_BOUNDS];

/* Adds a value. A value equal to a bound counts below it. A negative one counts as 0. */
void histogram_add(struct histogram *h, double seconds);
/* The value that a `share` of the values do not exceed, interpolated between two bounds. At most
 * the last bound; -1: there are no values. `counts` has HISTOGRAM_BOUNDS + 1 elements. */
double histogram_quantile(const uint64_t *counts, double share);

#endif
