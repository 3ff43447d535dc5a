/* Microbenchmark of the prefix index: memory, learning, matching. Prints figures and targets.
 * Missed targets are reported but not enforced, because the machine may be busy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "base/hash.h"
#include "crdt/counts.h"
#include "crdt/index.h"
#include "crdt/registry.h"
#include "crdt/spans.h"

enum { NOW = 1000000, TTL = 240, POINTS = 148, BATCH = 16, RUN = 500 };

/* CPU time of this process: the machine's other load matters less. */
static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Cheap pseudo-random ids, so that making them is not measured. */
static uint64_t id_of(uint64_t n)
{
    return hash_mix(n * UINT64_C(0x9e3779b97f4a7c15));
}

static bool replicated; /* digests and sketches are kept */

static struct crdt_index *make(uint64_t bytes)
{
    struct crdt_index *x = NULL;
    struct crdt_index_config config = {.bytes_max = bytes,
                                       .replicas_max = crdt_registry_slots(1024),
                                       .ttl_generations = TTL,
                                       .generation = NOW,
                                       .replicated = replicated};
    /* Sizes the table as if there were only 1,024 slots. */
    config.bytes_max += crdt_counts_bytes(config.replicas_max, TTL + 2, false) -
                        crdt_counts_bytes(1024, TTL + 2, false);
    if (replicated) { /* more memory, so that the table is as large as without digests */
        config.bytes_max += crdt_spans_bytes(config.replicas_max, TTL) +
                            crdt_counts_bytes(config.replicas_max, TTL + 2, true) -
                            crdt_counts_bytes(config.replicas_max, TTL + 2, false) + 65536 * 4;
    }
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

/* Makes passes over n observations, in runs of a single replica and generation, as deltas carry
 * them. Returns seconds, without the making of the runs. */
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

static uint64_t run_ids[RUN];
static uint8_t run_codes[RUN];

static void run_fill(uint64_t from)
{
    for (unsigned i = 0; i < RUN; i++) {
        run_ids[i] = id_of(from + i);
        run_codes[i] = (uint8_t)((from + i) % 24);
    }
}

static void bench_table(uint64_t n, double bytes_per_entry)
{
    struct crdt_index *x = make((uint64_t)((double)n * bytes_per_entry));
    struct crdt_index_stats s;
    printf("%.0f M observations, each id on one replica, budget %.1f B each%s\n", (double)n / 1e6,
           bytes_per_entry, replicated ? ", digests and sketches kept" : "");
    double insert = pass(x, n, NOW);
    crdt_index_stats(x, &s);
    row("bytes per observation, everything that is allocated", (double)s.bytes / (double)s.entries,
        "B", n >= 10000000 && !replicated ? 12 : 0, true);
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

/* Matches a prompt of 100,000 tokens against a table with 4 M other entries. */
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
    for (unsigned i = 0; i < POINTS; i++) { /* each point at another half of the replicas */
        for (unsigned r = 0; r < replicas; r++) {
            if ((hash_mix(i * 1024 + r) & 1) != 0)
                DISCARD(crdt_index_observe(x, chain.points[i].id, r, chain.points[i].code, NOW));
        }
    }
    match_row(x, "each point on half of them", NULL, replicas, 1, 0);
    match_row(x, "each point on half of them, but believed gone", floors, replicas, 1, 0);
    crdt_index_destroy(x);
}

/* Many system prompts, each cached by all of 1,000 replicas. */
static void bench_sets(void)
{
    struct crdt_index *x = make(UINT64_C(96) << 20); /* an eighth is for sets */
    struct crdt_index_stats s;
    crdt_index_stats(x, &s);
    uint64_t used = s.bytes_used;
    enum { IDS = 2000, REPLICAS = 1000 };
    double start = now_s();
    for (unsigned r = 0; r < REPLICAS; r++) {
        for (unsigned i = 0; i < IDS; i++)
            DISCARD(crdt_index_observe(x, id_of(i), (r * 7) % REPLICAS, 0, NOW));
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

/* A router's usual work with 10 M entries of all ages. Of five runs of 500 observations, two are
 * known already (the same delta by another way). Two move entries of a random age to the present.
 * The last is new and pushes out the oldest if the table is full. */
static void bench_mix(void)
{
    enum { ENTRIES = 10000000, OPERATIONS = 4000000 };
    struct crdt_index *x = make((uint64_t)(ENTRIES * 11.6));
    for (uint64_t from = 0; from < ENTRIES; from += RUN) {
        run_fill(from);
        CHECK(crdt_index_observe_run(x, run_ids, run_codes, RUN, from / RUN % 1000,
                                     NOW - TTL + 1 + (uint32_t)(from / RUN * 7919 % TTL),
                                     NULL) >= 0);
    }
    crdt_index_advance(x, NOW);
    struct crdt_index_stats before;
    struct crdt_index_stats after;
    crdt_index_stats(x, &before);
    double total = 0;
    uint64_t next = ENTRIES;
    uint64_t inflated[(RUN + 63) / 64];
    for (uint64_t i = 0; i < OPERATIONS / RUN; i++) {
        uint64_t run = hash_mix(i / 5 * 5 + i % 5 / 2) % (ENTRIES / RUN); /* each run twice */
        uint64_t from = i % 5 == 4 ? next : run * RUN;
        next += i % 5 == 4 ? RUN : 0;
        run_fill(from);
        double start = now_s();
        DISCARD(crdt_index_observe_run(x, run_ids, run_codes, RUN, from / RUN % 1000, NOW + 1,
                                       inflated));
        total += now_s() - start;
    }
    crdt_index_stats(x, &after);
    uint64_t inserted = after.inserted - before.inserted;
    uint64_t refreshed = after.refreshed - before.refreshed;
    printf("%.1f M entries of %d ages; merged: %.0f %% new, %.0f %% newer, the rest known%s\n",
           (double)before.entries / 1e6, TTL, 100.0 * (double)inserted / OPERATIONS,
           100.0 * (double)refreshed / OPERATIONS, replicated ? "; digests and sketches kept" : "");
    row("merge, mixed, one core", OPERATIONS / total / 1e6, "M/s", 4, false);
    double start = now_s();
    uint64_t digest = 0;
    for (unsigned i = 0; replicated && i < 1000; i++)
        digest += crdt_index_digest(x, NOW - TTL + i % 8);
    if (replicated)
        row("digest of the whole index", (now_s() - start) * 1e3 + (double)(digest & 1) * 1e-9,
            "us", 0, true);
    crdt_index_destroy(x);
}

/* Measures the added cost of a change outside the table, by part. */
static void bench_sketch_update(void)
{
    enum { SPANS = 34, COUNT = 20000000 };
    struct crdt_sketch *sketch = calloc(SPANS, sizeof *sketch);
    CHECK(sketch != NULL);
    printf("what a change of one entry adds\n");
    uint64_t sum = 0;
    double start = now_s();
    for (uint64_t i = 0; i < COUNT; i++) {
        struct crdt_symbol s = {.id48 = i * 0x9e3779b9, .rkey = 77, .generation = i & 4095};
        sum += crdt_symbol_hash(&s);
    }
    row("hash of a symbol (digest)", (now_s() - start) / COUNT * 1e9, "ns", 0, true);
    for (unsigned spans = 1; spans <= SPANS; spans += SPANS - 1) {
        start = now_s();
        for (uint64_t i = 0; i < COUNT; i++) {
            struct crdt_symbol s = {.id48 = i * 0x9e3779b9, .rkey = 77, .generation = i & 4095};
            crdt_sketch_flip(&sketch[i % spans], &s, 1);
        }
        char text[80];
        (void)snprintf(text, sizeof text, "hash and one sketch update, %u sketches in turn", spans);
        row(text, (now_s() - start) / COUNT * 1e9 + (double)(sum & 1) * 1e-9, "ns", 0, true);
    }
    free(sketch);
}

/* Two routers share 1 M equal entries. Of 1,000 more entries, each router has half. */
static void bench_reconcile(void)
{
    enum { ENTRIES = 1000000, DIFFERENCES = 1000, MAX = CRDT_SKETCH_ROWS * CRDT_SKETCH_CELLS };
    static struct crdt_sketch sketch[2];
    static struct crdt_cell cells[2][MAX];
    static struct crdt_symbol symbols[MAX];
    struct crdt_index *x[2];
    for (unsigned side = 0; side < 2; side++) {
        x[side] = make(UINT64_C(16) << 20);
        for (uint64_t from = 0; from < ENTRIES; from += RUN) {
            run_fill(from);
            CHECK(crdt_index_observe_run(x[side], run_ids, run_codes, RUN, from / RUN % 1000,
                                         NOW - (uint32_t)(from / RUN % TTL), NULL) == RUN);
        }
        run_fill((side + 1) * UINT64_C(100000000));
        CHECK(crdt_index_observe_run(x[side], run_ids, run_codes, DIFFERENCES / 2, 5, NOW, NULL) ==
              DIFFERENCES / 2);
    }
    printf("1 M entries, 1,000 differences\n");
    uint32_t from = crdt_index_sketch_from(x[0], NOW - TTL);
    uint8_t estimate[2][CRDT_ESTIMATE_COUNTERS];
    double start = now_s();
    for (unsigned i = 0; i < 1000; i++)
        crdt_index_estimate(x[0], from, estimate[0]);
    row("counters of the estimate", (now_s() - start) * 1e3, "us", 0, true);
    crdt_index_estimate(x[1], from, estimate[1]);
    uint64_t about = crdt_sketch_estimate(estimate[0], estimate[1]);
    uint32_t width = crdt_sketch_width(about);
    row("estimate", (double)about, "", 0, true);
    row("cells on the wire", (double)CRDT_SKETCH_ROWS * width * CRDT_CELL_BYTES, "B", 25000, true);
    double parts[3] = {0};
    enum { ROUNDS = 200 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        start = now_s();
        crdt_index_sketch(x[0], from, &sketch[0]);
        parts[0] += now_s() - start;
        crdt_index_sketch(x[1], from, &sketch[1]);
        start = now_s();
        crdt_sketch_fold(&sketch[0], width, cells[0]);
        parts[1] += now_s() - start;
        crdt_sketch_fold(&sketch[1], width, cells[1]);
        start = now_s();
        crdt_cells_add(cells[0], cells[1], CRDT_SKETCH_ROWS * width);
        CHECK(crdt_sketch_decode(cells[0], width, symbols, MAX) == DIFFERENCES);
        parts[2] += now_s() - start;
    }
    row("sum of the sketches of all spans", parts[0] / ROUNDS * 1e6, "us", 0, true);
    row("fold", parts[1] / ROUNDS * 1e6, "us", 0, true);
    row("XOR and decode", parts[2] / ROUNDS * 1e6, "us", 0, true);
    crdt_index_destroy(x[0]);
    crdt_index_destroy(x[1]);
}

int main(void)
{
    bench_table(1000000, 13.5);
    bench_table(10000000, 11.6);
    bench_mix();
    replicated = true;
    bench_table(10000000, 11.6);
    bench_mix();
    bench_reconcile();
    bench_sketch_update();
    replicated = false;
    bench_sets();
    printf("a prompt of 100,000 tokens (%d points) in a table with 4 M others\n", POINTS);
    bench_match(96);
    bench_match(1000);
    return 0;
}
