/* A new router takes a snapshot over TCP. */
#include "base/check.h"
#include "tests/bench/gossip/group.h"
#include "tests/bench/replay/proc.h"

enum { AWAIT_US = 60000000, SAMPLE_US = 2000 };

static const struct {
    uint64_t observations, index_bytes;
    double aim_s;
} joins[] = {{1000000, 64 << 20, 0.5}, {10000000, 256 << 20, 4}};

/* Seconds until ready; raises the maxima to the memory that both sides needed beyond their usual
 * memory. */
static double join(struct group *g, uint64_t *server_max, uint64_t *joiner_max)
{
    struct group_event e;
    uint64_t server_before = proc_rss_bytes(g->children[0].pid), server = 0, joiner = 0;
    group_child_start(g, 1, 1);
    while (!group_await(g, 1, GROUP_READY, SAMPLE_US, &e)) {
        uint64_t rss = proc_rss_bytes(g->children[0].pid);
        server = rss > server ? rss : server;
        rss = proc_rss_bytes(g->children[1].pid);
        joiner = rss > joiner ? rss : joiner;
        CHECK(bench_now_us() < g->children[1].started_us + AWAIT_US);
    }
    uint64_t after = proc_rss_bytes(g->children[1].pid);
    if (server > server_before && server - server_before > *server_max)
        *server_max = server - server_before;
    if (joiner > after && joiner - after > *joiner_max)
        *joiner_max = joiner - after;
    double seconds = (double)(e.at_us - g->children[1].started_us) / 1e6;
    struct group_counts have = group_counts_of(g, 1), want = group_counts_of(g, 0);
    if (have.digest.index != want.digest.index)
        bench_must("digests at once after the join", false, "differ", "= equal");
    group_kill(g, 1);
    return seconds;
}

void case_join(const struct bench *b)
{
    unsigned rounds = b->rounds > 0 && b->rounds <= 64 ? b->rounds : b->quick ? 3 : 7;
    printf("join over TCP: from the start of the process until it is ready (median of %u)\n",
           rounds);
    for (unsigned i = 0; i < sizeof joins / sizeof *joins; i++) {
        double times[64];
        uint64_t server = 0, joiner = 0;
        struct group g;
        struct group_event e;
        group_init(&g, joins[i].index_bytes);
        g.count = 2;
        group_child_start(&g, 0, 0);
        CHECK(group_await(&g, 0, GROUP_READY, AWAIT_US, &e));
        group_tell(&g, 0, GROUP_FILL, joins[i].observations);
        CHECK(group_await(&g, 0, GROUP_FILLED, AWAIT_US, &e));
        for (unsigned j = 0; j < rounds; j++)
            times[j] = join(&g, &server, &joiner);
        group_end(&g);
        char text[80];
        double millions = (double)joins[i].observations / 1e6;
        (void)snprintf(text, sizeof text, "%.0f M observations", millions);
        bench_row(text, bench_quantile(times, rounds, 0.5), "s", joins[i].aim_s);
        (void)snprintf(text, sizeof text, "%.0f M: memory of the one that serves, growth at most",
                       millions);
        bench_row(text, (double)server / 1e6, "MB", 0);
        (void)snprintf(text, sizeof text, "%.0f M: memory of the joiner, beyond what it keeps",
                       millions);
        bench_row(text, (double)joiner / 1e6, "MB", 0);
    }
}
