/* Durations, counted by upper bounds, as in a Prometheus histogram. All histograms have the same
 * bounds, so the counts of several routers can be added up. Adding a value takes a few comparisons
 * and allocates nothing.
 */
#ifndef BASE_HISTOGRAM_H
#define BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BOUNDS = 19 }; /* 1 ms to 1,000 s: 1, 2.5, 5, 10, ... */

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* values by upper bound, each value counted once; last:
                                            * values beyond all bounds */
    uint64_t count;
    double sum_s;
};

/* The upper bounds in seconds, rising. */
extern const double histogram_bounds_s[HISTOGRAM_BOUNDS];

/* Adds a value. A value equal to a bound counts below that bound. A negative value counts as 0. */
void histogram_add(struct histogram *h, double seconds);
/* Returns an estimate of the value that a `share` (0 to 1) of all values do not exceed. The
 * estimate is interpolated between two bounds and is at most the last bound. -1: there are no
 * values. `counts` has HISTOGRAM_BOUNDS + 1 elements. */
double histogram_quantile(const uint64_t *counts, double share);

#endif
