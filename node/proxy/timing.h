/* How long requests took, as their clients saw it: histograms of the answers that came whole. */
#ifndef NODE_PROXY_TIMING_H
#define NODE_PROXY_TIMING_H

#include "base/histogram.h"
#include "base/prometheus.h"

struct exchange;

struct proxy_timing {
    struct histogram first_token; /* of streams: from the head of the request to the first token */
    struct histogram inter_token; /* of streams: the mean time between two tokens, once a stream */
    struct histogram total[2];    /* to the end; [1]: streamed */
};

/* It has ended, whole. */
void proxy_timing_add(struct proxy_timing *t, const struct exchange *x, uint64_t now_ms);
void proxy_timing_metrics(const struct proxy_timing *t, struct prometheus *p);

#endif
