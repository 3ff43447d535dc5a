/* Histograms of request times as clients see them, for complete answers. */
#ifndef NODE_PROXY_TIMING_H
#define NODE_PROXY_TIMING_H

#include "base/histogram.h"
#include "base/prometheus.h"

struct proxy_timing {
    struct histogram first_token; /* streams: from the request's head to the first token */
    struct histogram inter_token; /* streams: the mean time between two tokens, once per stream */
    struct histogram total[2];    /* to the end; [1]: streamed */
};

/* A complete answer with tokens. */
struct proxy_timed {
    bool stream;
    uint64_t begun_ms;       /* the request's head */
    uint64_t first_token_ms; /* of a stream; 0: none */
    uint64_t ended_ms;
    int64_t tokens;
};

void proxy_timing_add(struct proxy_timing *t, const struct proxy_timed *answer);
void proxy_timing_metrics(const struct proxy_timing *t, struct prometheus *p);

#endif
