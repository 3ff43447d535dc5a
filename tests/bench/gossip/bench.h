/* Shared by the cases: clocks, rows of the report, medians.
 *
 * A case prints measurements and targets. It reports missed targets but does not enforce them,
 * because the machine may be busy. A result that must be right on any machine fails the program. */
#ifndef TESTS_BENCH_GOSSIP_BENCH_H
#define TESTS_BENCH_GOSSIP_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* IPv4 and UDP headers of a datagram are counted, but not Ethernet's. */
enum { BENCH_HEADERS = 20 + 8 };

struct bench {
    bool quick;      /* fewer and shorter rounds */
    unsigned rounds; /* 0: the case's default */
};

static inline uint64_t bench_now_us(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline uint64_t bench_wall_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* CPU time of this process: the machine's other load matters less. */
static inline double bench_cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void bench_row(const char *what, double value, const char *unit, double at_most)
{
    if (at_most > 0)
        printf("  %-62s %10.4g %-5s <= %g%s\n", what, value, unit, at_most,
               value <= at_most ? "" : "   MISSED");
    else
        printf("  %-62s %10.4g %s\n", what, value, unit);
    (void)fflush(stdout);
}

extern unsigned bench_wrong; /* number of wrong results */

/* `must` names the expectation. */
static inline void bench_must(const char *what, bool so, const char *is, const char *must)
{
    printf("  %-62s %10s       %s%s\n", what, is, must, so ? "" : "   WRONG");
    (void)fflush(stdout);
    bench_wrong += !so;
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sorts the values. `q` is 0 to 1. */
static inline double bench_quantile(double *values, unsigned count, double q)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, bench_by_value);
    unsigned at = (unsigned)(q * count);
    return values[at < count ? at : count - 1];
}

/* The cases; each leaves no process behind. */
void case_spread(const struct bench *b);    /* time until all routers know */
void case_bytes(const struct bench *b);     /* bytes of an observation on the wire */
void case_idle(const struct bench *b);      /* cost of a silent cluster */
void case_killed(const struct bench *b);    /* time until the load of a dead router is gone */
void case_forged(const struct bench *b);    /* packets of strangers */
void case_reconcile(const struct bench *b); /* after a partition */
void case_join(const struct bench *b);      /* time until a new router is ready */

#endif
