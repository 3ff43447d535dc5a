#include "node/proxy/timing.h"

static double seconds(uint64_t from_ms, uint64_t to_ms)
{
    return to_ms > from_ms ? (double)(to_ms - from_ms) / 1000 : 0;
}

void proxy_timing_add(struct proxy_timing *t, const struct proxy_timed *answer)
{
    histogram_add(&t->total[answer->stream], seconds(answer->begun_ms, answer->ended_ms));
    if (!answer->stream || answer->first_token_ms == 0)
        return;
    histogram_add(&t->first_token, seconds(answer->begun_ms, answer->first_token_ms));
    if (answer->tokens > 1)
        histogram_add(&t->inter_token, seconds(answer->first_token_ms, answer->ended_ms) /
                                           (double)(answer->tokens - 1));
}

void proxy_timing_metrics(const struct proxy_timing *t, struct prometheus *p)
{
    prometheus_histograms(p, "time_to_first_token_seconds",
                          "Time from a stream's request head to its first token.");
    prometheus_histogram(p, NULL, slice_of("", 0), &t->first_token);
    prometheus_histograms(p, "inter_token_seconds",
                          "Mean time between two tokens, one value per stream.");
    prometheus_histogram(p, NULL, slice_of("", 0), &t->inter_token);
    prometheus_histograms(p, "request_seconds",
                          "Time from a request's head to its answer's end (requests for tokens).");
    prometheus_histogram(p, "streamed", SLICE("false"), &t->total[0]);
    prometheus_histogram(p, "streamed", SLICE("true"), &t->total[1]);
}
