/* Histograms of request durations as clients see them. Only complete answers count. */
#ifndef NODE_PROXY_TIMING_H
#define NODE_PROXY_TIMING_H

#include "base/histogram.h"
#include "base/prometheus.h"

struct proxy_timing {
    struct histogram first_token; /* streams: from the request's head to the first token */
    struct histogram inter_token; /* each stream's mean time between two tokens */
    struct histogram total[2];    /* from the head to the answer's end; [0] whole, [1] streamed */
};

/* A complete answer with tokens, as proxy_timing_add() counts it. */
struct proxy_timed {
    bool stream;
    uint64_t begun_ms;       /* the request's head came */
    uint64_t first_token_ms; /* a stream's first token came; 0: none came */
    uint64_t ended_ms;
    int64_t tokens;
};

void proxy_timing_add(struct proxy_timing *t, const struct proxy_timed *answer);
void proxy_timing_metrics(const struct proxy_timing *t, struct prometheus *p);

#endif
