/* The settings of the bench, their defaults and bounds, and their parser. */
#ifndef TESTS_BENCH_QUALITY_SETTINGS_H
#define TESTS_BENCH_QUALITY_SETTINGS_H

struct settings {
    const char *traces;   /* folder of tests/bench/traces.sh */
    const char *section;  /* cases, coding, miniswe, arrivals or draws; NULL: all */
    const char *policy;   /* a row's policy; NULL: all */
    const char *json;     /* file for results as JSON lines; NULL: none */
    const char *workload; /* a case or trace; NULL: all */
    const char *without;  /* parts of the rule, with commas between them; NULL: none */
    const char *known;    /* promises known to be broken (record.h); NULL: none */
    double regret;        /* largest regret of mean TTFT against the best policy of a case */
    double half, talks;   /* of the coding sessions */
    double routers;       /* 0: 1, 4 and 8 */
    double speed;         /* 0: 1, 30 and 0.1 */
    double seed, draws, asks;
    double mixed; /* more draws, of fleets with random speeds of engines */
    double draw;  /* 1 ...: only that draw, with a table; 0: all */
    double engines, clients, cache, block;
    double seeds, events_delay_ms; /* only for events: seeds of a mean; delay of a message */
    double answers; /* 1: answers return in the next prompt; only for coding and miniswe */
    double delay_ms, displaced_weight, decode_weight, generation_s; /* coding and miniswe only */
};

/* Exits with a usage on an invalid setting. */
void settings_read(struct settings *s, int argc, char **argv);

#endif
