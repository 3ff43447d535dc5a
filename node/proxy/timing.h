/* How long requests took, as their clients saw it: histograms of the answers that came whole. */
#ifndef NODE_PROXY_TIMING_H
#define NODE_PROXY_TIMING_H

#include "base/histogram.h"
#include "base/prometheus.h"

struct proxy_timing {
    struct histogram first_token; /* of streams: from the head of the request to the first token */
    struct histogram inter_token; /* of streams: the mean time between two tokens, once a stream */
    struct histogram total[2];    /* to the end; [1]: streamed */
};

/* An answer with tokens that came whole. */
struct proxy_timed {
    bool stream;
    uint64_t begun_ms;       /* the head of its request */
    uint64_t first_token_ms; /* of a stream; 0: none came */
    uint64_t ended_ms;
    int64_t tokens;
};

void proxy_timing_add(struct proxy_timing *t, const struct proxy_timed *answer);
void proxy_timing_metrics(const struct proxy_timing *t, struct prometheus *p);

#endif
