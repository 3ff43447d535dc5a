#include "tests/bench/replay/stats.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void samples_add(struct samples *s, double value)
{
    if (s->count == s->cap) {
        s->cap = s->cap == 0 ? 1024 : s->cap * 2;
        s->at = realloc(s->at, s->cap * sizeof *s->at);
        CHECK(s->at != NULL);
    }
    s->at[s->count++] = value;
    s->sum += value;
}

double samples_mean(const struct samples *s)
{
    return s->count == 0 ? 0 : s->sum / (double)s->count;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double samples_quantile(struct samples *s, double q)
{
    if (s->count == 0)
        return 0;
    qsort(s->at, s->count, sizeof *s->at, by_value);
    size_t i = (size_t)(q * (double)(s->count - 1) + 0.5);
    return s->at[i];
}

void tally_add(struct tally *t, const char *name, uint64_t tokens)
{
    size_t i = 0;
    while (i < t->count && strcmp(t->row[i].name, name) != 0)
        i++;
    if (i == STATS_NAMES)
        i--; /* more names than a report can show: the last row takes the rest */
    else if (i == t->count) {
        (void)snprintf(t->row[i].name, sizeof t->row[i].name, "%s", name);
        t->count++;
    }
    t->row[i].requests++;
    t->row[i].tokens += tokens;
}

double stats_cached_share(const struct stats *s)
{
    return s->prompt_tokens == 0 ? 0 : (double)s->cached_tokens / (double)s->prompt_tokens;
}

double stats_spread(const struct stats *s)
{
    double n = (double)s->replicas.count, sum = 0, squares = 0;
    for (size_t i = 0; i < s->replicas.count; i++)
        sum += (double)s->replicas.row[i].tokens;
    if (n < 2 || sum == 0)
        return 0;
    for (size_t i = 0; i < s->replicas.count; i++) {
        double off = (double)s->replicas.row[i].tokens - sum / n;
        squares += off * off;
    }
    return sqrt(squares / n) / (sum / n);
}

static double per_request_us(const struct stats *s)
{
    uint64_t requests = s->ok + s->failed;
    return requests == 0 ? 0 : s->router_cpu_us / (double)requests;
}

static void times_print(FILE *out, const char *name, struct samples *s, double scale)
{
    double times_s[] = {samples_mean(s) * scale, samples_quantile(s, 0.5) * scale,
                        samples_quantile(s, 0.99) * scale};
    bool small = times_s[2] < 0.1;
    if (s->count == 0)
        return;
    (void)fprintf(out, "  %-16s  mean %.3f, p50 %.3f, p99 %.3f %s\n", name,
                  times_s[0] * (small ? 1e3 : 1), times_s[1] * (small ? 1e3 : 1),
                  times_s[2] * (small ? 1e3 : 1), small ? "ms" : "s");
}

void stats_print(struct stats *s, FILE *out)
{
    double x = s->speed_up;
    (void)fprintf(out, "%s\n", s->label);
    (void)fprintf(
        out,
        "  requests          %" PRIu64 " ok, %" PRIu64 " failed, %.2f/s, body %.1f KB on average\n",
        s->ok, s->failed, s->elapsed_s > 0 ? (double)(s->ok + s->failed) / (s->elapsed_s * x) : 0,
        s->ok + s->failed > 0 ? (double)s->body_bytes / 1e3 / (double)(s->ok + s->failed) : 0);
    for (size_t i = 0; i < s->errors.count; i++)
        (void)fprintf(out, "    %-16s%" PRIu64 "\n", s->errors.row[i].name,
                      s->errors.row[i].requests);
    (void)fprintf(out, "  prompt tokens     %" PRIu64 ", %.1f %% served from cache\n",
                  s->prompt_tokens, 100 * stats_cached_share(s));
    times_print(out, "first token", &s->ttft, x);
    if (s->per_token.count > 0)
        (void)fprintf(out, "  per output token  mean %.1f ms\n",
                      samples_mean(&s->per_token) * x * 1e3);
    times_print(out, "time to the end", &s->total, x);
    (void)fprintf(out, "  replicas          %zu, spread of prompt tokens %.2f (deviation/mean)\n",
                  s->replicas.count, stats_spread(s));
    if (s->router)
        (void)fprintf(out, "  router            %.0f us of CPU per request, %.0f MB resident\n",
                      per_request_us(s), (double)s->router_rss_bytes_max / 1e6);
    if (x != 1)
        (void)fprintf(out, "  (time ran %.3g times as fast; seconds are those of the trace)\n", x);
}

static json_t *samples_json(struct samples *s, double scale)
{
    return json_pack("{s:f, s:f, s:f, s:f}", "mean", samples_mean(s) * scale, "p50",
                     samples_quantile(s, 0.5) * scale, "p90", samples_quantile(s, 0.9) * scale,
                     "p99", samples_quantile(s, 0.99) * scale);
}

static json_t *tally_json(const struct tally *t)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < t->count; i++)
        (void)json_array_append_new(rows, json_pack("{s:s, s:I, s:I}", "name", t->row[i].name,
                                                    "requests", (json_int_t)t->row[i].requests,
                                                    "prompt_tokens", (json_int_t)t->row[i].tokens));
    return rows;
}

int stats_write_json(struct stats *s, const char *path)
{
    double x = s->speed_up;
    double trace_s = s->elapsed_s * x;
    uint64_t requests = s->ok + s->failed;
    json_t *doc = json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:f, s:f, s:I}", "label", s->label,
        "requests", (json_int_t)requests, "ok", (json_int_t)s->ok, "failed", (json_int_t)s->failed,
        "speed_up", x, "elapsed_s", s->elapsed_s, "trace_s", trace_s, "requests_per_wall_s",
        s->elapsed_s > 0 ? (double)requests / s->elapsed_s : 0.0, "prompt_tokens",
        (json_int_t)s->prompt_tokens, "cached_tokens", (json_int_t)s->cached_tokens,
        "completion_tokens", (json_int_t)s->completion_tokens, "cached_share",
        stats_cached_share(s), "spread", stats_spread(s), "without_usage",
        (json_int_t)s->without_usage);
    CHECK(doc != NULL);
    (void)json_object_set_new(doc, "ttft_s", samples_json(&s->ttft, x));
    (void)json_object_set_new(doc, "per_output_token_s", samples_json(&s->per_token, x));
    (void)json_object_set_new(doc, "total_s", samples_json(&s->total, x));
    (void)json_object_set_new(doc, "total_wall_us", samples_json(&s->total, 1e6));
    (void)json_object_set_new(doc, "ttft_wall_us", samples_json(&s->ttft, 1e6));
    (void)json_object_set_new(doc, "replicas", tally_json(&s->replicas));
    (void)json_object_set_new(doc, "errors", tally_json(&s->errors));
    if (s->router) {
        (void)json_object_set_new(doc, "router_cpu_us_per_request", json_real(per_request_us(s)));
        (void)json_object_set_new(doc, "router_rss_bytes",
                                  json_integer((json_int_t)s->router_rss_bytes_max));
    }
    int err = json_dump_file(doc, path, JSON_INDENT(2));
    json_decref(doc);
    return err;
}

void stats_free(struct stats *s)
{
    free(s->ttft.at);
    free(s->per_token.at);
    free(s->total.at);
    *s = (struct stats){0};
}
