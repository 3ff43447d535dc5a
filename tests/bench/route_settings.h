/* The settings of route_bench, their defaults and bounds, and how they are read. */
#ifndef TESTS_BENCH_ROUTE_SETTINGS_H
#define TESTS_BENCH_ROUTE_SETTINGS_H

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { ROUTERS_MAX = 64 };

static struct settings {
    double replicas, sessions, files, prompt_max, seed;
    double cache_tokens, rate, step_base_s, step_context_s, chunk_tokens;
    double displaced_weight, decode_weight, horizon_s, near_tie, generation_s;
    double think_max_s;                   /* 0: pauses as long as they were */
    double believed_cache, believed_rate; /* times the true one; 0: told by the engine */
    double cached_told;                   /* whether answers tell their cached tokens */
    double routers, shared, delay_ms;
    double speed; /* of engines and clients, times what stands here */
    double told;  /* whether the router is given their rates; 0: it has its defaults */
    double half;  /* of the sessions, 1 or 2; 0: all */
    const char *policy;
} set = {
    .replicas = 8,
    .sessions = 4,
    .files = 120,
    .prompt_max = 128000,
    .seed = 1,
    .cache_tokens = 400000,
    .rate = 10000,
    .step_base_s = 0.015,
    .step_context_s = 30e-9,
    .chunk_tokens = 2048,
    .displaced_weight = 6,
    .decode_weight = 0.25,
    .horizon_s = 120,
    .near_tie = 0.02,
    .generation_s = 15,
    .think_max_s = 60,
    .believed_rate = 1,
    .speed = 1,
    .told = 1,
    .cached_told = 1,
    .routers = 1,
    .shared = 1,
    .delay_ms = 0.5,
};

static const struct {
    const char *name;
    double *value;
    double min, max;
} settings[] = {
    {"--cache", &set.cache_tokens, 6400, 1e8},
    {"--sessions", &set.sessions, 1, 64},
    {"--replicas", &set.replicas, 1, 64},
    {"--files", &set.files, 0, 1e6},
    {"--prompt-max", &set.prompt_max, 0, 1e8},
    {"--think-max", &set.think_max_s, 0, 1e6},
    {"--seed", &set.seed, 0, 1e9},
    {"--displaced-weight", &set.displaced_weight, 0, 1e3},
    {"--decode-weight", &set.decode_weight, 0, 1e3},
    {"--horizon", &set.horizon_s, 1, 1e6},
    {"--near-tie", &set.near_tie, 0, 1},
    {"--generation", &set.generation_s, 1, 600},
    {"--believed-cache", &set.believed_cache, 0, 100},
    {"--believed-rate", &set.believed_rate, 0.001, 1000},
    {"--cached-told", &set.cached_told, 0, 1},
    {"--routers", &set.routers, 1, ROUTERS_MAX},
    {"--shared", &set.shared, 0, 1},
    {"--delay", &set.delay_ms, 0, 10000},
    {"--speed", &set.speed, 0.001, 1000},
    {"--told", &set.told, 0, 1},
    {"--half", &set.half, 0, 2},
};

/* Returns how many arguments it took; 0 if it is none of ours. */
static int setting_take(char **argv)
{
    if (strcmp(argv[0], "--whole") == 0) {
        set.files = 0;
        return 1;
    }
    if (!argv[1])
        return 0;
    if (strcmp(argv[0], "--policy") == 0) {
        set.policy = argv[1];
        return 2;
    }
    for (unsigned i = 0; i < ARRAY_LEN(settings); i++) {
        if (strcmp(argv[0], settings[i].name) != 0)
            continue;
        *settings[i].value = strtod(argv[1], NULL);
        return *settings[i].value >= settings[i].min && *settings[i].value <= settings[i].max ? 2
                                                                                              : 0;
    }
    return 0;
}

#endif
