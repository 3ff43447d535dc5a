/* Anti-entropy between two states, in a single process with the real messages: the cost of healing
 * a partition. */
#include <string.h>

#include "base/check.h"
#include "crdt/state.h"
#include "tests/bench/gossip/child.h"
#include "tests/lib/state_help.h"

enum {
    ENTRIES = 1000000,
    POINTS = 165,
    GENERATION = 1000000,
    TTL = 240,
    /* A message travels in parts (gossip/gossip.h). Around each: UDP and IPv4, the sealed packet's
     * header and tag, the frame. */
    PART_BYTES = 1160,
    PART_OVERHEAD = BENCH_HEADERS + 24 + 16,
    STEPS_MAX = 16,
};

static struct crdt_state *state_make(uint64_t self)
{
    struct crdt_state *s = NULL;
    struct crdt_state_config config = {.index = {.bytes_max = 64 << 20,
                                                 .replicas_max = CRDT_REPLICAS_MAX,
                                                 .ttl_generations = TTL,
                                                 .generation = GENERATION,
                                                 .replicated = true},
                                       .self = self};
    CHECK(crdt_state_create(&s, &config) == 0);
    for (unsigned r = 0; r < NODE_REPLICAS; r++) {
        char name[32];
        int len = snprintf(name, sizeof name, "replica-%u:8000", r);
        CHECK(state_replica(s, slice_of(name, (size_t)len)) == (int)r);
    }
    return s;
}

static void observe(struct crdt_state *s, uint64_t number, unsigned points)
{
    static struct chain chain;
    child_chain(&chain, number, points);
    CHECK(crdt_state_observe(s, &chain, number % NODE_REPLICAS) >= 0);
}

/* The partition loses queued deltas. */
static void lose(struct crdt_state *s)
{
    static uint8_t lost[GOSSIP_DELTA_MAX];
    static uint64_t seq;
    while (crdt_state_produce(s, ++seq, lost, sizeof lost) > 0)
        ;
}

static void copy(const struct crdt_state *from, struct crdt_state *to)
{
    struct crdt_snapshot c;
    struct buf chunk = {0};
    crdt_snapshot_begin(&c, 0);
    for (;;) {
        chunk.len = 0;
        int more = crdt_snapshot_next(from, &c, &chunk);
        CHECK(more >= 0);
        if (more == 0)
            break;
        CHECK(crdt_snapshot_apply(to, slice_of(chunk.at, chunk.len)) == 0);
    }
    buf_free(&chunk);
}

static bool equal(const struct crdt_state *a, const struct crdt_state *b)
{
    struct crdt_digest x, y;
    crdt_state_digest(a, 0, &x);
    crdt_state_digest(b, 0, &y);
    return memcmp(&x, &y, sizeof x) == 0;
}

struct exchange {
    double bytes, ms;
    unsigned messages;
    uint64_t differences;
    bool equal;
};

static struct exchange reconcile(struct crdt_state *a, struct crdt_state *b)
{
    struct exchange e = {0};
    struct crdt_state *sides[2] = {a, b};
    struct buf message = {0}, reply = {0};
    double began = bench_cpu_s();
    crdt_state_cut_renew(a);
    crdt_state_cut_renew(b);
    CHECK(crdt_state_summary(a, &message) == 0);
    while (message.len > 0 && e.messages < STEPS_MAX) {
        struct crdt_reconciled done = {0};
        e.messages++;
        size_t parts = (message.len + PART_BYTES - 1) / PART_BYTES;
        e.bytes += (double)(message.len + parts * PART_OVERHEAD);
        CHECK(crdt_state_message(sides[e.messages % 2], slice_of(message.at, message.len), true,
                                 &reply, &done) == 0);
        e.differences += done.differences;
        struct buf swap = message;
        message = reply;
        reply = swap;
        reply.len = 0;
    }
    e.ms = 1e3 * (bench_cpu_s() - began);
    e.equal = equal(a, b);
    buf_free(&message);
    buf_free(&reply);
    return e;
}

static void after_partition(struct crdt_state *a, struct crdt_state *b, unsigned differences,
                            unsigned rounds)
{
    static uint64_t number = UINT64_C(1) << 42;
    double bytes[64], ms[64];
    unsigned messages = 0, failed = 0;
    for (unsigned i = 0; i < rounds; i++) {
        for (unsigned left = differences; left > 0;) { /* half on each side */
            unsigned points = left < POINTS ? left : POINTS;
            observe(left % 2 ? a : b, ++number, points);
            left -= points;
        }
        lose(a);
        lose(b);
        struct exchange e = reconcile(a, b);
        bytes[i] = e.bytes;
        ms[i] = e.ms;
        messages = e.messages > messages ? e.messages : messages;
        failed += !e.equal;
        for (unsigned again = 0; !equal(a, b) && again < 8; again++)
            (void)reconcile(b, a);
    }
    char text[80];
    bool aimed = differences == 1000;
    (void)snprintf(text, sizeof text, "%u differences: bytes, headers counted (median)",
                   differences);
    bench_row(text, bench_quantile(bytes, rounds, 0.5) / 1e3, "KB", aimed ? 25 : 0);
    if (differences > 0) {
        (void)snprintf(text, sizeof text, "%u differences: round trips (most)", differences);
        bench_row(text, messages / 2.0, "", aimed ? 2 : 0);
        (void)snprintf(text, sizeof text, "%u differences: CPU of both sides (median)",
                       differences);
        bench_row(text, bench_quantile(ms, rounds, 0.5), "ms", 0);
        (void)snprintf(text, sizeof text, "%u differences: not equal after one exchange",
                       differences);
        bench_row(text, failed, "", 0);
    }
}

void case_reconcile(const struct bench *b)
{
    static const unsigned differences[] = {0, 10, 100, 1000, 3000};
    unsigned rounds = b->rounds > 0 && b->rounds <= 64 ? b->rounds : b->quick ? 5 : 21;
    struct crdt_state *x = state_make(1), *y = state_make(2);
    for (uint64_t n = 0; n < ENTRIES / POINTS; n++)
        observe(x, n, POINTS);
    lose(x);
    copy(x, y);
    printf("after a partition: two states of %d entries, in one process (%u times)\n", ENTRIES,
           rounds);
    if (!equal(x, y))
        bench_must("a snapshot makes them equal", false, "no", "= yes");
    for (unsigned i = 0; i < sizeof differences / sizeof *differences; i++)
        after_partition(x, y, differences[i], rounds);
    crdt_state_destroy(x);
    crdt_state_destroy(y);
}
