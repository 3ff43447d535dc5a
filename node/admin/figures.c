#include "node/admin/figures.h"

#include <string.h>

#include "base/check.h"
#include "node/proxy/timing.h"
#include "node/route/brief.h"

enum { EVERY_MS = 1000, MINUTE_MS = 60000 };

static void look(struct proxy *proxy, const struct node_router *router,
                 struct admin_figures_seen *out)
{
    const struct proxy_stats *s = proxy_stats(proxy);
    *out = (struct admin_figures_seen){.requests = s->requests,
                                       .hidden = s->hidden,
                                       .unauthorized = s->unauthorized,
                                       .first_token = proxy_timing(proxy)->first_token};
    for (unsigned i = 1; i < ARRAY_LEN(s->responses); i++)
        out->answers += s->responses[i];
    memcpy(out->results, s->results, sizeof out->results);
    for (unsigned i = 0; i < RETRY_REASONS; i++)
        out->retries += s->retries[i];
    node_router_answered(router, &out->prompt_tokens, &out->cached_tokens);
}

/* Returns the increase, or 0: sums over replicas fall when a replica goes. */
static uint64_t risen(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static struct admin_figures_second second_of(const struct admin_figures_seen *before,
                                             const struct admin_figures_seen *now,
                                             const struct proxy *proxy,
                                             const struct node_router *router)
{
    uint64_t counts[HISTOGRAM_BOUNDS + 1];
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
        counts[i] = now->first_token.counts[i] - before->first_token.counts[i];
    struct admin_figures_second s = {
        .requests = (now->requests - before->requests),
        .answers = (now->answers - before->answers),
        .retries = (now->retries - before->retries),
        .hidden = (now->hidden - before->hidden),
        .unauthorized = (now->unauthorized - before->unauthorized),
        .in_flight = node_router_booked(router),
        .queued = proxy_waiting(proxy),
        .prompt_tokens = risen(before->prompt_tokens, now->prompt_tokens),
        .cached_tokens = risen(before->cached_tokens, now->cached_tokens),
        .first_tokens = (now->first_token.count - before->first_token.count),
        .ttft_p50 = (float)histogram_quantile(counts, 0.5),
        .ttft_p95 = (float)histogram_quantile(counts, 0.95),
    };
    for (unsigned i = 0; i < NODE_RESULTS; i++)
        s.results[i] = (now->results[i] - before->results[i]);
    return s;
}

void admin_figures_tick(struct admin_figures *f, struct proxy *proxy,
                        const struct node_router *router, uint64_t now_ms, uint64_t unix_ms)
{
    struct admin_figures_seen now;
    if (f->looked_ms == 0)
        f->minute_ms = now_ms;
    if (f->looked_ms == 0) /* all earlier counts go to the first second */
        f->looked_ms = now_ms;
    if (now_ms < f->looked_ms + EVERY_MS)
        return;
    look(proxy, router, &now);
    struct admin_figures_second *s = &f->seconds[f->at];
    *s = second_of(&f->seen, &now, proxy, router);
    s->unix_ms = unix_ms;
    s->ms = (now_ms - f->looked_ms);
    f->at = (f->at + 1) % FIGURES_SECONDS;
    f->count += f->count < FIGURES_SECONDS;
    f->seen = now;
    f->looked_ms = now_ms;
    if (now_ms < f->minute_ms + MINUTE_MS)
        return;
    s = &f->minutes[f->minute_at];
    *s = second_of(&f->minute_seen, &now, proxy, router);
    s->unix_ms = unix_ms;
    s->ms = now_ms - f->minute_ms;
    f->minute_at = (f->minute_at + 1) % FIGURES_MINUTES;
    f->minute_count += f->minute_count < FIGURES_MINUTES;
    f->minute_seen = now;
    f->minute_ms = now_ms;
}

struct admin_figures_sum admin_figures_sum(const struct admin_figures *f, unsigned seconds)
{
    struct admin_figures_sum sum = {0};
    unsigned count = f->count < seconds ? f->count : seconds;
    for (unsigned i = 1; i <= count; i++) {
        const struct admin_figures_second *s =
            &f->seconds[(f->at + FIGURES_SECONDS - i) % FIGURES_SECONDS];
        sum.requests += s->requests;
        sum.unauthorized += s->unauthorized;
        for (unsigned k = 0; k < NODE_RESULTS; k++)
            sum.results[k] += s->results[k];
    }
    return sum;
}

uint64_t admin_figures_waited(const struct admin_figures *f, unsigned seconds)
{
    uint64_t least = f->count >= seconds ? UINT64_MAX : 0;
    for (unsigned i = 1; i <= seconds && least > 0; i++) {
        uint64_t queued = f->seconds[(f->at + FIGURES_SECONDS - i) % FIGURES_SECONDS].queued;
        least = queued < least ? queued : least;
    }
    return least;
}

static void put_seconds(struct json_writer *w, const char *key, float value)
{
    json_key(w, key);
    if (value < 0)
        json_nil(w);
    else
        json_double(w, (double)(int64_t)((double)value * 1e4 + 0.5) / 1e4);
}

/* Writes failures by reason, in the words of grapevine_requests_failed_total. */
static void put_failed(struct json_writer *w, const struct admin_figures_second *s)
{
    json_key(w, "failed");
    json_object_begin(w);
    for (unsigned i = 0; i < NODE_RESULTS; i++) {
        if (node_result_failed((enum node_result)i))
            json_put_u64(w, node_result_text((enum node_result)i), s->results[i]);
    }
    json_object_end(w);
}

/* Writes the fields of a second into an open JSON object. */
static void put_counts(struct json_writer *w, const struct admin_figures_second *s)
{
    json_put_u64(w, "time_ms", s->unix_ms);
    json_put_u64(w, "ms", s->ms);
    json_put_u64(w, "requests", s->requests);
    json_put_u64(w, "answers", s->answers);
    put_failed(w, s);
    json_put_u64(w, "client_errors", s->results[NODE_RESULT_CLIENT_ERROR]);
    json_put_u64(w, "unauthorized", s->unauthorized);
    json_put_u64(w, "client_gone", s->results[NODE_RESULT_CLIENT_GONE]);
    json_put_u64(w, "retries", s->retries);
    json_put_u64(w, "hidden", s->hidden);
    json_put_u64(w, "in_flight", s->in_flight);
    json_put_u64(w, "queued", s->queued);
    json_put_u64(w, "prompt_tokens", s->prompt_tokens);
    json_put_u64(w, "cached_tokens", s->cached_tokens);
    json_put_u64(w, "first_tokens", s->first_tokens);
    put_seconds(w, "ttft_p50_s", s->ttft_p50);
    put_seconds(w, "ttft_p95_s", s->ttft_p95);
}

static void put_second(struct json_writer *w, const struct admin_figures_second *s)
{
    json_object_begin(w);
    put_counts(w, s);
    json_object_end(w);
}

void admin_figures_last_write(const struct admin_figures *f, struct json_writer *w)
{
    if (f->count > 0)
        put_second(w, &f->seconds[(f->at + FIGURES_SECONDS - 1) % FIGURES_SECONDS]);
    else
        json_nil(w);
}

static void put_last(const struct admin_figures *f, unsigned most, struct json_writer *w)
{
    unsigned count = f->count < most ? f->count : most;
    for (unsigned i = 0; i < count; i++)
        put_second(w, &f->seconds[(f->at + FIGURES_SECONDS - count + i) % FIGURES_SECONDS]);
}

void admin_figures_now_write(const struct admin_figures *f, unsigned most, struct proxy *proxy,
                             const struct node_router *router, uint64_t now_ms, uint64_t unix_ms,
                             struct json_writer *w)
{
    struct admin_figures_seen now;
    look(proxy, router, &now);
    struct admin_figures_second s = second_of(&f->seen, &now, proxy, router);
    s.unix_ms = unix_ms;
    s.ms = f->looked_ms > 0 ? (now_ms - f->looked_ms) : 0;
    json_array_begin(w);
    put_last(f, most, w);
    put_second(w, &s);
    json_array_end(w);
}

static void put_ttft_counts(struct json_writer *w, const struct histogram *first_token)
{
    json_key(w, "ttft_counts");
    json_array_begin(w);
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++)
        json_u64(w, first_token->counts[i]);
    json_array_end(w);
}

void admin_figures_counters_write(struct proxy *proxy, const struct node_router *router,
                                  uint64_t since_ms, uint64_t unix_ms, struct json_writer *w)
{
    const struct admin_figures_seen nothing = {0};
    struct admin_figures_seen now;
    look(proxy, router, &now);
    struct admin_figures_second s = second_of(&nothing, &now, proxy, router);
    json_object_begin(w);
    json_put_u64(w, "since_ms", since_ms);
    json_put_u64(w, "time_ms", unix_ms);
    json_put_u64(w, "requests", s.requests);
    put_failed(w, &s);
    json_put_u64(w, "client_errors", s.results[NODE_RESULT_CLIENT_ERROR]);
    json_put_u64(w, "in_flight", s.in_flight);
    json_put_u64(w, "queued", s.queued);
    json_put_u64(w, "prompt_tokens", s.prompt_tokens);
    json_put_u64(w, "cached_tokens", s.cached_tokens);
    put_ttft_counts(w, &now.first_token);
    node_router_shadow_write(router, "shadow", proxy_now_ms(proxy), w);
    json_object_end(w);
}

void admin_figures_total_write(struct proxy *proxy, const struct node_router *router,
                               uint64_t since_ms, uint64_t unix_ms, struct json_writer *w)
{
    const struct proxy_stats *stats = proxy_stats(proxy);
    const struct admin_figures_seen nothing = {0};
    struct admin_figures_seen now;
    uint64_t refused = 0;
    look(proxy, router, &now);
    struct admin_figures_second s = second_of(&nothing, &now, proxy, router);
    s.unix_ms = unix_ms;
    s.ms = unix_ms - since_ms;
    for (unsigned i = REFUSALS_OF_CLIENTS; i < REFUSALS; i++)
        refused += stats->requests_refused[i];
    json_object_begin(w);
    put_counts(w, &s);
    json_put_u64(w, "refused", refused);
    json_put_u64(w, "connections_refused", stats->connections_refused);
    json_key(w, "ttft_sum_s");
    json_double(w, now.first_token.sum_s);
    put_ttft_counts(w, &now.first_token);
    json_key(w, "by_replica");
    node_router_counts_write(router, w);
    json_object_end(w);
}

void admin_figures_write(const struct admin_figures *f, struct json_writer *w)
{
    json_array_begin(w);
    put_last(f, FIGURES_SECONDS, w);
    json_array_end(w);
}

void admin_figures_minutes_write(const struct admin_figures *f, struct json_writer *w)
{
    json_array_begin(w);
    for (unsigned i = 0; i < f->minute_count; i++)
        put_second(
            w,
            &f->minutes[(f->minute_at + FIGURES_MINUTES - f->minute_count + i) % FIGURES_MINUTES]);
    json_array_end(w);
}

void admin_figures_minute_write(const struct admin_figures *f, struct json_writer *w)
{
    if (f->minute_count > 0)
        put_second(w, &f->minutes[(f->minute_at + FIGURES_MINUTES - 1) % FIGURES_MINUTES]);
    else
        json_nil(w);
}
