/* Microbenchmark of the prefix index: memory, learning, asking. Prints figures beside their
 * targets; which of them are met is said, not enforced, because the machine may be busy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"
#include "crdt/index.h"

enum { NOW = 1000000, TTL = 240, POINTS = 148, BATCH = 16, RUN = 500 };

/* CPU time of this process: what others do on the machine at the same time matters less. */
static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Cheap pseudo-random ids, so that their making is not what is measured. */
static uint64_t id_of(uint64_t n)
{
    return hash_mix(n * UINT64_C(0x9e3779b97f4a7c15));
}

static struct crdt_index *make(uint64_t bytes)
{
    struct crdt_index *x = NULL;
    struct crdt_index_config config = {.bytes_max = bytes,
                                       .replicas_max = CRDT_REPLICAS_MAX,
                                       .ttl_generations = TTL,
                                       .generation = NOW};
    CHECK(crdt_index_create(&x, &config) == 0);
    return x;
}

static void row(const char *what, double value, const char *unit, double target, bool at_most)
{
    bool met = at_most ? value <= target : value >= target;
    if (target > 0)
        printf("  %-58s %9.3f %-7s %s %g%s\n", what, value, unit, at_most ? "<=" : ">=", target,
               met ? "" : "   MISSED");
    else
        printf("  %-58s %9.3f %s\n", what, value, unit);
}

static struct chain chain;

/* Passes over n observations, in runs of one replica and generation, as deltas carry them. Returns
 * seconds, the making of the runs excluded. */
static double pass(struct crdt_index *x, uint64_t n, uint32_t generation)
{
    double total = 0;
    for (uint64_t from = 0; from < n; from += RUN) {
        chain.length = (uint16_t)(n - from < RUN ? n - from : RUN);
        for (unsigned i = 0; i < chain.length; i++)
            chain.points[i] = (struct chain_point){
                .id = id_of(from + i), .blocks = i + 1, .code = (uint8_t)((from + i) % 24)};
        double start = now_s();
        CHECK(crdt_index_observe_chain(x, &chain, from / RUN % 1000, generation, NULL) >= 0);
        total += now_s() - start;
    }
    return total;
}

static void bench_table(uint64_t n, double bytes_per_entry)
{
    struct crdt_index *x = make((uint64_t)((double)n * bytes_per_entry));
    struct crdt_index_stats s;
    printf("%.0f M observations, each id on one replica, budget %.1f B each\n", (double)n / 1e6,
           bytes_per_entry);
    double insert = pass(x, n, NOW);
    crdt_index_stats(x, &s);
    row("bytes per observation, everything that is allocated", (double)s.bytes / (double)s.entries,
        "B", n >= 10000000 ? 12 : 0, true);
    row("share of slots that is live", 100 * (double)s.slots_live / (double)s.slots, "%", 0, true);
    row("refused", 100 * (double)s.refused / (double)n, "%", 0.1, true);
    row("insert", (double)n / insert / 1e6, "M/s", 0, false);
    row("merge, nothing new", (double)n / pass(x, n, NOW) / 1e6, "M/s", 4, false);
    row("merge, newer generation", (double)n / pass(x, n, NOW + 1) / 1e6, "M/s", 4, false);
    uint64_t hits = 0;
    uint32_t generation = 0;
    enum { LOOKUPS = 2000000 };
    for (unsigned miss = 0; miss < 2; miss++) {
        double start = now_s();
        uint64_t from = miss ? n : 0;
        for (uint64_t i = 0; i < LOOKUPS + BATCH; i++) {
            uint64_t j = (i * 7919) % n;
            uint64_t k = (i + n - BATCH) * 7919 % n;
            if (i < BATCH)
                k = j;
            crdt_index_prefetch(x, id_of(from + j));
            if (i >= BATCH)
                k = ((i - BATCH) * 7919) % n;
            hits += crdt_index_get(x, id_of(from + k), k / RUN % 1000, (uint8_t)(k % 24),
                                   &generation) == 0;
        }
        row(miss ? "look-up, batched, miss" : "look-up, batched, hit",
            (now_s() - start) / LOOKUPS * 1e9, "ns", 0, true);
    }
    CHECK(hits >= LOOKUPS * 99 / 100 && hits <= LOOKUPS + BATCH);
    double start = now_s();
    crdt_index_advance(x, NOW + TTL + 5);
    row("expire everything", (now_s() - start) * 1e3, "ms", 0, true);
    start = now_s();
    (void)crdt_index_sweep(x, UINT32_MAX);
    row("one lap of the sweeper, all dead", (now_s() - start) * 1e3, "ms", 0, true);
    crdt_index_destroy(x);
}

static void chain_fill(uint64_t from, unsigned shared)
{
    chain.length = POINTS;
    for (unsigned i = 0; i < POINTS; i++)
        chain.points[i] = (struct chain_point){
            .id = id_of((UINT64_C(1) << 40) + (i < shared ? i : from * 1000 + i)),
            .blocks = checkpoint_blocks(i),
            .code = checkpoint_code(i)};
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median over many prompts. */
static void match_row(const struct crdt_index *x, const char *what, const uint32_t *floors,
                      unsigned replicas, uint64_t conversations, unsigned shared)
{
    uint16_t length[CRDT_REPLICAS_MAX];
    uint32_t generation[CRDT_REPLICAS_MAX];
    enum { ROUNDS = 2001 };
    static double seconds[ROUNDS];
    for (unsigned i = 0; i < ROUNDS; i++) {
        chain_fill(1 + i * 31 % conversations, shared);
        double start = now_s();
        crdt_index_match(x, &chain, floors, replicas, length, generation);
        seconds[i] = now_s() - start;
    }
    qsort(seconds, ROUNDS, sizeof *seconds, by_value);
    char text[80];
    (void)snprintf(text, sizeof text, "%u replicas: %s", replicas, what);
    row(text, seconds[ROUNDS / 2] * 1e6, "us", replicas <= 96 ? 20 : 100, true);
}

/* A prompt of 100,000 tokens against a table that also holds 4 M other entries. */
static void bench_match(unsigned replicas)
{
    enum { CONVERSATIONS = 2000, SHARED = 60 };
    static uint32_t floors[CRDT_REPLICAS_MAX];
    for (unsigned r = 0; r < CRDT_REPLICAS_MAX; r++)
        floors[r] = NOW + 1;
    struct crdt_index *x = make(UINT64_C(128) << 20);
    (void)pass(x, 4000000, NOW);
    match_row(x, "nothing held", NULL, replicas, CONVERSATIONS, 0);
    for (uint64_t c = 1; c <= CONVERSATIONS; c++) { /* deep part on one replica, prefix on all */
        chain_fill(c, SHARED);
        CHECK(crdt_index_observe_chain(x, &chain, c % replicas, NOW, NULL) >= 0);
    }
    match_row(x, "prefix of 60 points on all, rest on one", NULL, replicas, CONVERSATIONS, SHARED);
    match_row(x, "prefix on all, rest on none", NULL, replicas, CONVERSATIONS * 100, SHARED);
    match_row(x, "prefix on all, but believed gone by all", floors, replicas, CONVERSATIONS,
              SHARED);
    double start = now_s();
    unsigned rounds = 0;
    for (uint64_t c = 1; c <= CONVERSATIONS; c++, rounds++) {
        chain_fill(c, SHARED);
        CHECK(crdt_index_observe_chain(x, &chain, c % replicas, NOW + 1, NULL) >= 0);
    }
    char text[80];
    (void)snprintf(text, sizeof text, "%u replicas: recording such a prompt", replicas);
    row(text, (now_s() - start) / rounds * 1e6, "us", 0, true);
    crdt_index_destroy(x);

    x = make(UINT64_C(128) << 20);
    (void)pass(x, 4000000, NOW);
    chain_fill(1, 0);
    for (unsigned i = 0; i < POINTS; i++) { /* every point by another half of the replicas */
        for (unsigned r = 0; r < replicas; r++) {
            if ((hash_mix(i * 1024 + r) & 1) != 0)
                (void)crdt_index_observe(x, chain.points[i].id, r, chain.points[i].code, NOW);
        }
    }
    match_row(x, "each point on half of them", NULL, replicas, 1, 0);
    match_row(x, "each point on half of them, but believed gone", floors, replicas, 1, 0);
    crdt_index_destroy(x);
}

/* Many system prompts, each held by all of 1,000 replicas. */
static void bench_sets(void)
{
    struct crdt_index *x = make(UINT64_C(64) << 20);
    struct crdt_index_stats s;
    crdt_index_stats(x, &s);
    uint64_t used = s.bytes_used;
    enum { IDS = 2000, REPLICAS = 1000 };
    double start = now_s();
    for (unsigned r = 0; r < REPLICAS; r++) {
        for (unsigned i = 0; i < IDS; i++)
            (void)crdt_index_observe(x, id_of(i), (r * 7) % REPLICAS, 0, NOW);
    }
    double insert = now_s() - start;
    crdt_index_stats(x, &s);
    printf("%d ids held by %d replicas each\n", IDS, REPLICAS);
    row("bytes per observation, of the memory in use",
        (double)(s.bytes_used - used) / (double)s.entries, "B", 12, true);
    row("refused", 100 * (double)s.refused / (IDS * REPLICAS), "%", 0.1, true);
    row("insert", IDS * REPLICAS / insert / 1e6, "M/s", 0, false);
    crdt_index_destroy(x);
}

int main(void)
{
    bench_table(1000000, 13.5);
    bench_table(10000000, 11.6);
    bench_sets();
    printf("a prompt of 100,000 tokens (%d points) in a table with 4 M others\n", POINTS);
    bench_match(96);
    bench_match(1000);
    return 0;
}
