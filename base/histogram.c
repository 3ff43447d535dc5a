#include "base/histogram.h"

const double histogram_bounds_s[HISTOGRAM_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   25,
                                                     50,    100,    250,   500,  1000};

void histogram_add(struct histogram *h, double seconds)
{
    unsigned i = 0;
    if (seconds < 0)
        seconds = 0;
    while (i < HISTOGRAM_BOUNDS && seconds > histogram_bounds_s[i])
        i++;
    h->counts[i]++;
    h->count++;
    h->sum_s += seconds;
}

double histogram_quantile(const uint64_t *counts, double share)
{
    uint64_t total = 0;
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
        total += counts[i];
    if (total == 0)
        return -1;
    double wanted = share * (double)total, below = 0;
    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
        double here = (double)counts[i], low = i > 0 ? histogram_bounds_s[i - 1] : 0;
        if (here > 0 && below + here >= wanted)
            return low + (histogram_bounds_s[i] - low) * (wanted - below) / here;
        below += here;
    }
    return histogram_bounds_s[HISTOGRAM_BOUNDS - 1];
}
