/* What clients ask: conversations of requests, from a trace or from a generator with a fixed seed.
 *
 * A conversation begins when a client is free (closed loop) or at its time (open loop); each of its
 * requests is sent when the answer to the one before has come and its user has thought.
 */
#ifndef TESTS_BENCH_QUALITY_WORKLOAD_H
#define TESTS_BENCH_QUALITY_WORKLOAD_H

#include "tests/bench/quality/prompt.h"

struct ask {
    double think_s; /* before it */
    struct prompt prompt;
    uint32_t output_tokens; /* > 0 */
    uint32_t adapter;       /* 0: the base model */
    float fetch_s;          /* the engine fetches images before it begins */
    bool whole;             /* not streamed */
};

struct talk {
    double start_s; /* open loop */
    char session[32];
    unsigned count;
    struct ask *asks;
};

struct workload {
    bool open;
    unsigned count;
    struct talk *talks;
    void *units; /* what its prompts borrow */
    void (*units_free)(void *units);
};

void workload_free(struct workload *w);
/* In another order (closed loop), the same one for one seed. */
void workload_shuffle(struct workload *w, uint64_t seed);
/* Leaves out prompts that have more tokens. */
void workload_clip(struct workload *w, uint64_t tokens_max);
unsigned workload_asks(const struct workload *w);
double workload_output_mean(const struct workload *w);

/* --- traces: `folder` is where tests/bench/traces.sh unpacked them; false: it is not there --- */

/* Half 1 is to tune on, 2 to report, 0: all. `talks_max` 0: no limit. */
bool workload_coding(struct workload *out, const char *folder, unsigned half, unsigned talks_max);

#endif
