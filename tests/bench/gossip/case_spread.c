/* A cluster of real processes. Measures the time until all routers know, the bytes on the wire, the
 * cost of silence, and the time until a killed router's load is gone. */
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/bench/gossip/group.h"

enum {
    INDEX_BYTES = 64 << 20,
    RATE = 10000, /* observations a second, all routers together */
    AWAIT_US = 20000000,
    BOOKED = 20,
};

static const unsigned sizes[] = {3, 16};

static void wait_ms(unsigned ms)
{
    (void)usleep(ms * 1000);
}

/* Milliseconds until all have the observation. */
static double once(struct group *g, unsigned author, uint64_t number)
{
    struct group_event made, held;
    group_tell(g, author, GROUP_OBSERVE, number);
    CHECK(group_await(g, author, GROUP_MADE, AWAIT_US, &made));
    uint64_t last = 0;
    for (unsigned i = 0; i < g->count; i++) {
        do {
            if (!group_await(g, i, GROUP_HELD, AWAIT_US, &held)) {
                bench_must("an observation comes to all", false, "no", "= yes");
                return 1e9;
            }
        } while (held.value != number);
        last = held.at_us > last ? held.at_us : last;
    }
    return (double)(last - made.at_us) / 1e3;
}

static void streams(struct group *g, enum group_command_kind kind, unsigned authors, unsigned rate)
{
    for (unsigned i = 0; i < authors; i++)
        group_tell(g, i, kind, rate / authors);
}

static void spread(unsigned count, unsigned rounds, const double *aims)
{
    static double times[4096];
    struct group g;
    struct prng prng;
    uint64_t number = 0;
    prng_seed(&prng, count);
    group_start(&g, count, INDEX_BYTES);
    for (unsigned loaded = 0; loaded < 2; loaded++) {
        if (loaded)
            streams(&g, GROUP_REQUEST, count, RATE);
        wait_ms(500);
        for (unsigned i = 0; i < rounds; i++) {
            times[i] = once(&g, (unsigned)prng_below(&prng, count), ++number);
            wait_ms(5 + (unsigned)prng_below(&prng, 30)); /* any phase of the cadence may occur */
        }
        char text[80];
        const char *when = loaded ? "10,000 observations/s" : "idle";
        (void)snprintf(text, sizeof text, "%u routers, %s: p50", count, when);
        bench_row(text, bench_quantile(times, rounds, 0.5), "ms", aims[0]);
        (void)snprintf(text, sizeof text, "%u routers, %s: p99", count, when);
        bench_row(text, bench_quantile(times, rounds, 0.99), "ms", aims[1]);
    }
    group_end(&g);
}

void case_spread(const struct bench *b)
{
    static const double aims[][2] = {{6, 15}, {8, 25}};
    unsigned rounds = b->rounds > 0 && b->rounds <= 4096 ? b->rounds : b->quick ? 100 : 500;
    printf("until all routers hold one new observation (%u times each)\n", rounds);
    for (unsigned i = 0; i < 2; i++)
        spread(sizes[i], rounds, aims[i]);
}

/* --- bytes ---------------------------------------------------------------------------------- */

static double sum_bytes(const struct group_counts *c)
{
    return (double)c->bytes_out + BENCH_HEADERS * (double)c->packets_out;
}

static void bytes(struct group *g, const char *what, enum group_command_kind kind, unsigned authors,
                  unsigned seconds, double aim)
{
    struct group_counts before[GROUP_MAX] = {0}, after[GROUP_MAX] = {0};
    streams(g, kind, authors, RATE);
    wait_ms(1000);
    for (unsigned i = 0; i < g->count; i++)
        before[i] = group_counts_of(g, i);
    wait_ms(seconds * 1000);
    for (unsigned i = 0; i < g->count; i++)
        after[i] = group_counts_of(g, i);
    streams(g, kind, authors, 0);
    double sent = 0, observations = 0, cpu = 0, packets = 0;
    for (unsigned i = 0; i < g->count; i++) {
        sent += sum_bytes(&after[i]) - sum_bytes(&before[i]);
        observations += (double)(after[i].observations - before[i].observations);
        packets += (double)(after[i].packets_out - before[i].packets_out);
        cpu += after[i].cpu_s - before[i].cpu_s;
    }
    char text[96];
    (void)snprintf(text, sizeof text, "%u routers, %s", g->count, what);
    bench_row(text, observations > 0 ? sent / observations / (g->count - 1) : 0, "B", aim);
    printf("      %.0f observations/s, %.0f packets/s in all, %.1f %% of a core per router\n",
           observations / seconds, packets / seconds, 100 * cpu / seconds / g->count);
}

void case_bytes(const struct bench *b)
{
    unsigned seconds = b->quick ? 3 : 10;
    printf("bytes on the wire per observation and receiver at 10,000 observations/s, everything "
           "that was sent, UDP and IPv4 headers counted\n");
    for (unsigned i = 0; i < 2; i++) {
        struct group g;
        group_start(&g, sizes[i], INDEX_BYTES);
        bytes(&g, "observations alone, all from one", GROUP_STREAM, 1, seconds, 7);
        bytes(&g, "observations alone, spread over all", GROUP_STREAM, sizes[i], seconds, 7);
        bytes(&g, "requests (their load too), all at one", GROUP_REQUEST, 1, seconds, 0);
        bytes(&g, "requests, spread over all", GROUP_REQUEST, sizes[i], seconds, 0);
        group_end(&g);
    }
}

/* --- silence -------------------------------------------------------------------------------- */

void case_idle(const struct bench *b)
{
    unsigned seconds = b->quick ? 5 : 20;
    printf("a cluster without requests, over %u s\n", seconds);
    for (unsigned i = 0; i < 2; i++) {
        struct group g;
        struct group_counts before[GROUP_MAX];
        group_start(&g, sizes[i], INDEX_BYTES);
        wait_ms(1500);
        uint64_t began = bench_now_us();
        for (unsigned j = 0; j < g.count; j++)
            before[j] = group_counts_of(&g, j);
        wait_ms(seconds * 1000);
        double elapsed = (double)(bench_now_us() - began) / 1e6, cpu = 0, most = 0, sent = 0;
        for (unsigned j = 0; j < g.count; j++) {
            struct group_counts after = group_counts_of(&g, j);
            double share = (after.cpu_s - before[j].cpu_s) / elapsed;
            cpu += share / g.count;
            most = share > most ? share : most;
            sent += (sum_bytes(&after) - sum_bytes(&before[j])) / elapsed / g.count;
        }
        char text[80];
        (void)snprintf(text, sizeof text, "%u routers: share of a core, mean", g.count);
        bench_row(text, 100 * cpu, "%", 0.5);
        (void)snprintf(text, sizeof text, "%u routers: the most of one", g.count);
        bench_row(text, 100 * most, "%", 0);
        (void)snprintf(text, sizeof text, "%u routers: sent by each, headers counted", g.count);
        bench_row(text, sent / 1e3, "KB/s", 0);
        group_end(&g);
    }
}

/* --- a router that is killed ---------------------------------------------------------------- */

/* Seconds until the victim's load is gone everywhere. */
static double killed(struct group *g)
{
    unsigned victim = g->count - 1;
    struct group_event e;
    group_tell(g, victim, GROUP_BOOK, BOOKED);
    for (unsigned i = 0; i < victim; i++)
        CHECK(group_await(g, i, GROUP_LOADED, AWAIT_US, &e));
    wait_ms(300);
    uint64_t began = bench_now_us(), last = began;
    group_kill(g, victim);
    for (unsigned i = 0; i < victim; i++) {
        if (!group_await(g, i, GROUP_UNLOADED, AWAIT_US, &e)) {
            bench_must("the load of a router that was killed is gone", false, "no", "= yes");
            return 1e9;
        }
        last = e.at_us > last ? e.at_us : last;
    }
    group_child_start(g, victim, victim); /* with the same name */
    CHECK(group_await(g, victim, GROUP_READY, AWAIT_US, &e));
    wait_ms(500);
    return (double)(last - began) / 1e6;
}

void case_killed(const struct bench *b)
{
    unsigned rounds = b->rounds > 0 && b->rounds <= 64 ? b->rounds : b->quick ? 3 : 10;
    printf("kill -9 of a router with %d requests, until no other counts them (%u times)\n", BOOKED,
           rounds);
    for (unsigned i = 0; i < 2; i++) {
        double times[64];
        struct group g;
        group_start(&g, sizes[i], INDEX_BYTES);
        for (unsigned j = 0; j < rounds; j++)
            times[j] = killed(&g);
        group_end(&g);
        char text[80];
        (void)snprintf(text, sizeof text, "%u routers: median", sizes[i]);
        bench_row(text, bench_quantile(times, rounds, 0.5), "s", 3);
        (void)snprintf(text, sizeof text, "%u routers: longest", sizes[i]);
        bench_row(text, bench_quantile(times, rounds, 1), "s", 3);
    }
}
