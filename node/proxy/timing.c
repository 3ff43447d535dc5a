#include "node/proxy/timing.h"

#include "node/proxy/exchange.h"

static double seconds(uint64_t from_ms, uint64_t to_ms)
{
    return to_ms > from_ms ? (double)(to_ms - from_ms) / 1000 : 0;
}

void proxy_timing_add(struct proxy_timing *t, const struct exchange *x, uint64_t now_ms)
{
    bool stream = x->scan == EXCHANGE_SCAN_USAGE && x->usage.form == HTTP_USAGE_SSE;
    if (x->scan == EXCHANGE_SCAN_NONE || x->status / 100 != 2)
        return;
    histogram_add(&t->total[stream], seconds(x->started_ms, now_ms));
    if (!stream || !x->first_token)
        return;
    histogram_add(&t->first_token, seconds(x->started_ms, x->first_byte_ms));
    int64_t tokens = x->usage.completion_tokens > 0 ? x->usage.completion_tokens
                                                    : (int64_t)x->usage.token_events;
    if (tokens > 1)
        histogram_add(&t->inter_token, seconds(x->first_byte_ms, now_ms) / (double)(tokens - 1));
}

void proxy_timing_metrics(const struct proxy_timing *t, struct prometheus *p)
{
    prometheus_family(p, "time_to_first_token_seconds", PROMETHEUS_HISTOGRAM,
                      "Of streams, from the head of the request to the first token.");
    prometheus_histogram(p, NULL, slice_of("", 0), &t->first_token);
    prometheus_family(p, "inter_token_seconds", PROMETHEUS_HISTOGRAM,
                      "Of streams, the mean time between two tokens, once a stream.");
    prometheus_histogram(p, NULL, slice_of("", 0), &t->inter_token);
    prometheus_family(p, "request_seconds", PROMETHEUS_HISTOGRAM,
                      "From the head of a request for tokens to the end of its answer.");
    prometheus_histogram(p, "streamed", SLICE("false"), &t->total[0]);
    prometheus_histogram(p, "streamed", SLICE("true"), &t->total[1]);
}
