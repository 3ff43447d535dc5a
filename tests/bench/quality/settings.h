/* The settings of the bench, their defaults and bounds, and how they are read. */
#ifndef TESTS_BENCH_QUALITY_SETTINGS_H
#define TESTS_BENCH_QUALITY_SETTINGS_H

struct settings {
    const char *traces;   /* folder of tests/bench/traces.sh */
    const char *section;  /* cases, coding, miniswe, arrivals or draws; NULL: all */
    const char *policy;   /* one of the rows; NULL: all */
    const char *json;     /* where results go as JSON lines; NULL: nowhere */
    const char *workload; /* a case or trace; NULL: all */
    const char *without;  /* parts of the rule, with commas between them; NULL: none */
    const char *known;    /* promises that are known to be broken (record.h); NULL: none */
    double regret;        /* most of it, of mean TTFT against the best policy of a case */
    double half, talks;   /* of the coding sessions */
    double routers;       /* 0: 1, 4 and 8 */
    double speed;         /* 0: 1, 30 and 0.1 */
    double seed, draws, asks;
    double mixed; /* draws beside those, of fleets whose engines are as fast as they happen to be */
    double draw;  /* 1 ...: only that one, with its table; 0: all */
    double engines, clients, cache, block;
    double seeds, events_delay_ms; /* events alone: seeds of a mean; a message takes so long */
    double answers; /* 1: they come back in the next prompt; coding and miniswe alone */
    double delay_ms, displaced_weight, decode_weight, generation_s; /* coding and miniswe alone */
};

/* Exits with a usage if it cannot read them. */
void settings_read(struct settings *s, int argc, char **argv);

#endif
