/* The measurements of a run: samples, counts, load per replica, and their report.
 *
 * Samples are in seconds of the wall clock. The report multiplies them by `speed_up`, so that a
 * compressed run shows seconds of the trace. */
#ifndef TESTS_BENCH_REPLAY_STATS_H
#define TESTS_BENCH_REPLAY_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { STATS_NAMES = 256, STATS_NAME_BYTES = 96 };

struct samples {
    double *at;
    size_t count, cap;
    double sum;
};

void samples_add(struct samples *s, double value);
double samples_mean(const struct samples *s);
/* Sorts the samples; 0 without samples. `q` is 0 to 1. */
double samples_quantile(struct samples *s, double q);

/* Requests and prompt tokens by a name found at run time: a replica, an error. */
struct tally {
    struct {
        char name[STATS_NAME_BYTES];
        uint64_t requests, tokens;
    } row[STATS_NAMES];
    size_t count;
};

void tally_add(struct tally *t, const char *name, uint64_t tokens);

struct stats {
    const char *label;
    double speed_up;
    double elapsed_s; /* wall clock */
    uint64_t ok, failed, without_usage;
    uint64_t prompt_tokens, cached_tokens, completion_tokens, body_bytes;
    struct samples ttft, per_token, total;
    struct tally replicas, errors;
    bool router;          /* a process was watched: */
    double router_cpu_us; /* in all */
    uint64_t router_rss_bytes_max;
};

double stats_cached_share(const struct stats *s);
/* Coefficient of variation of the prompt tokens over the replicas; 0 with fewer than two. */
double stats_spread(const struct stats *s);

void stats_print(struct stats *s, FILE *out);
/* Returns 0, or -1 if the file cannot be written. */
int stats_write_json(struct stats *s, const char *path);
void stats_free(struct stats *s);

#endif
