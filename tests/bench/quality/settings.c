#include "tests/bench/quality/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static const struct {
    const char *name;
    size_t at;
    double min, max;
} numbers[] = {
    {"--half", offsetof(struct settings, half), 0, 2},
    {"--talks", offsetof(struct settings, talks), 0, 1e6},
    {"--routers", offsetof(struct settings, routers), 0, 16},
    {"--speed", offsetof(struct settings, speed), 0, 1000},
    {"--seed", offsetof(struct settings, seed), 0, 1e9},
    {"--draws", offsetof(struct settings, draws), 0, 1e6},
    {"--mixed", offsetof(struct settings, mixed), 0, 1e6},
    {"--asks", offsetof(struct settings, asks), 10, 1e6},
    {"--regret", offsetof(struct settings, regret), 0, 1000},
    {"--draw", offsetof(struct settings, draw), 0, 1e6},
    {"--engines", offsetof(struct settings, engines), 1, 64},
    {"--clients", offsetof(struct settings, clients), 1, 4096},
    {"--cache", offsetof(struct settings, cache), 1024, 1e9},
    {"--block", offsetof(struct settings, block), 1, 4096},
    {"--answers", offsetof(struct settings, answers), 0, 1},
    {"--delay", offsetof(struct settings, delay_ms), 0, 10000},
    {"--events-delay", offsetof(struct settings, events_delay_ms), 0, 10000},
    {"--seeds", offsetof(struct settings, seeds), 1, 100},
    {"--displaced-weight", offsetof(struct settings, displaced_weight), 0, 1000},
    {"--decode-weight", offsetof(struct settings, decode_weight), 0, 1000},
    {"--generation", offsetof(struct settings, generation_s), 0, 600},
};

static const struct {
    const char *name;
    size_t at;
} words[] = {
    {"--traces", offsetof(struct settings, traces)},
    {"--section", offsetof(struct settings, section)},
    {"--policy", offsetof(struct settings, policy)},
    {"--workload", offsetof(struct settings, workload)},
    {"--without", offsetof(struct settings, without)},
    {"--known", offsetof(struct settings, known)},
    {"--json", offsetof(struct settings, json)},
};

static int taken(struct settings *s, const char *name, const char *value)
{
    for (unsigned i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strcmp(name, numbers[i].name) != 0)
            continue;
        double number = strtod(value, NULL);
        *(double *)(void *)((char *)s + numbers[i].at) = number;
        return number >= numbers[i].min && number <= numbers[i].max;
    }
    for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(name, words[i].name) == 0) {
            *(const char **)(void *)((char *)s + words[i].at) = value;
            return 1;
        }
    }
    return 0;
}

void settings_read(struct settings *s, int argc, char **argv)
{
    *s = (struct settings){.traces = "build/traces",
                           .half = 2,
                           .seed = 1,
                           .draws = 52,
                           .mixed = 24,
                           .asks = 1500,
                           .regret = 1.5,
                           .engines = 8,
                           .clients = 32,
                           .cache = 400000,
                           .block = 16,
                           .seeds = 1,
                           .events_delay_ms = 1,
                           .delay_ms = 0.5};
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && taken(s, argv[i], argv[i + 1]))
            continue;
        fprintf(stderr, "quality-bench: bad setting %s; tests/bench/quality/README.md has them\n",
                argv[i]);
        exit(2);
    }
}
