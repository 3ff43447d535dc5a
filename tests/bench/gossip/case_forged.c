/* Sends a live router millions of packets that do not prove the key: random bytes, and the peer's
 * packets, repeated, cut, changed, grown. Half of the forged packets come from the peer's own
 * address. */
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/bench/gossip/group.h"
#include "tests/bench/gossip/relay.h"

enum { BATCH = 64, AWAIT_US = 20000000, INDEX_BYTES = 64 << 20, GROWN_MAX = 1400, HANDSHAKE = 4 };

enum kind { RANDOM, RANDOM_TYPED, REPLAYED, TRUNCATED, FLIPPED, GROWN, RECOUNTED, KINDS };
static const char *const kind_names[KINDS] = {
    "random bytes",
    "random bytes behind a true first byte",
    "replayed",
    "truncated",
    "with bits flipped",
    "with bytes appended",
    "with another receiver index or counter",
};

static uint16_t forge(struct prng *prng, const struct relay *r, enum kind kind, uint8_t *out)
{
    /* The first kept packets are the peer's handshake. They are rare, so they are taken more
     * often. */
    uint32_t kept = prng_below(prng, 4) == 0 ? HANDSHAKE : r->kept->count;
    const struct relay_packet *p = &r->kept->packets[prng_below(prng, kept)];
    uint16_t len = p->len;
    if (kind == RANDOM || kind == RANDOM_TYPED) {
        len = (uint16_t)prng_below(prng, GROWN_MAX);
        for (unsigned i = 0; i < len; i++)
            out[i] = (uint8_t)prng_next(prng);
        if (kind == RANDOM_TYPED)
            out[0] = p->bytes[0];
        return len;
    }
    memcpy(out, p->bytes, len);
    switch (kind) {
    case TRUNCATED:
        return (uint16_t)prng_below(prng, len);
    case FLIPPED:
        for (uint64_t flips = 1 + prng_below(prng, 8), i = 0; i < flips; i++)
            out[prng_below(prng, len)] ^= (uint8_t)(1u << prng_below(prng, 8));
        return len;
    case GROWN:
        for (uint64_t more = 1 + prng_below(prng, 100); more > 0 && len < GROWN_MAX; more--)
            out[len++] = (uint8_t)prng_next(prng);
        return len;
    case RECOUNTED: /* the header, behind the type */
        for (unsigned i = 1; i < 8 && i < len; i++)
            if (prng_below(prng, 2) == 0)
                out[i] = (uint8_t)prng_next(prng);
        return len;
    default:
        return len;
    }
}

/* Bytes that wait in the victim's socket, and datagrams dropped because the socket was full. */
static void queue_look(uint16_t port, uint64_t *waiting, uint64_t *dropped)
{
    char line[512];
    FILE *f = fopen("/proc/net/udp", "r");
    CHECK(f != NULL);
    *waiting = *dropped = 0;
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned at, rx;
        unsigned long drops;
        /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers here */
        if (sscanf(line,
                   "%*s %*8[0-9A-F]:%x %*s %*s %*8[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %*s %*s %lu",
                   &at, &rx, &drops) == 3 &&
            at == port) {
            *waiting = rx;
            *dropped = drops;
        }
    }
    (void)fclose(f);
}

static uint64_t answers(int fd)
{
    uint64_t count = 0;
    uint8_t bytes[2048];
    while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) >= 0)
        count++;
    return count;
}

static uint64_t attack(const struct relay *r, int own_fd, uint64_t packets, uint64_t *by_kind,
                       uint64_t *answered)
{
    static uint8_t bytes[BATCH][GROWN_MAX + 100];
    struct mmsghdr messages[BATCH];
    struct iovec at[BATCH];
    struct sockaddr_in victim = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons(r->victim)};
    struct prng prng;
    uint64_t sent = 0, waiting, dropped;
    prng_seed(&prng, 1);
    for (uint64_t batch = 0; sent < packets; batch++) {
        memset(messages, 0, sizeof messages);
        for (unsigned i = 0; i < BATCH; i++) {
            enum kind kind = (enum kind)prng_below(&prng, KINDS);
            by_kind[kind]++;
            at[i] = (struct iovec){bytes[i], forge(&prng, r, kind, bytes[i])};
            messages[i].msg_hdr = (struct msghdr){.msg_name = &victim,
                                                  .msg_namelen = sizeof victim,
                                                  .msg_iov = &at[i],
                                                  .msg_iovlen = 1};
        }
        int n = sendmmsg(batch % 2 ? own_fd : r->back_fd, messages, BATCH, 0);
        CHECK(n > 0);
        sent += (unsigned)n;
        *answered += answers(own_fd);
        if (batch % 16 != 0)
            continue;
        do /* packets that the kernel would drop test nothing */
            queue_look(r->victim, &waiting, &dropped);
        while (waiting > 1000000 && usleep(100) == 0);
    }
    return sent;
}

/* The victim's state soon equals the peer's, which no forgery reached. Meanwhile time goes on. */
static bool agrees(struct group *g)
{
    for (unsigned tries = 0; tries < 200; tries++) {
        struct group_counts own = group_counts_of(g, 0), peers = group_counts_of(g, 1);
        if (memcmp(&own.digest, &peers.digest, sizeof own.digest) == 0)
            return true;
        (void)usleep(100000);
    }
    return false;
}

static void must_count(const char *what, uint64_t is, const char *relation, uint64_t limit)
{
    char text[2][32];
    (void)snprintf(text[0], sizeof text[0], "%" PRIu64, is);
    (void)snprintf(text[1], sizeof text[1], "%s %" PRIu64, relation, limit);
    bench_must(what, *relation == '=' ? is == limit : is <= limit, text[0], text[1]);
}

static void report(uint64_t sent, uint64_t dropped, const uint64_t *by_kind, double seconds,
                   const struct group_counts *before, const struct group_counts *after)
{
    bench_row("sent at it", (double)sent / 1e6, "M", 0);
    bench_row("of them, dropped by the kernel before it saw them", (double)dropped / 1e6, "M", 0);
    for (unsigned i = 0; i < KINDS; i++)
        printf("      %10" PRIu64 " %s\n", by_kind[i], kind_names[i]);
    bench_row("counted as refused (empty ones are not counted)",
              (double)(after->refused - before->refused) / 1e6, "M", 0);
    bench_row("a second", (double)(sent - dropped) / seconds / 1e3, "k", 0);
    bench_row("CPU of the router for one",
              1e6 * (after->cpu_s - before->cpu_s) / (double)(sent - dropped), "us", 0);
    must_count("members that it believes in", after->members, "=", before->members);
}

void case_forged(const struct bench *b)
{
    uint64_t packets = b->quick ? 1000000 : 10000000;
    struct relay r;
    struct group g;
    struct group_event e;
    printf("forged, replayed, truncated and random packets at a live router\n");
    relay_open(&r);
    group_init(&g, INDEX_BYTES);
    g.count = 2;
    g.children[0].port = group_port();
    g.children[1].port = group_port();
    g.children[0].told = g.children[1].seed = r.front;
    g.children[1].told = r.back;
    relay_start(&r, g.children[0].port, g.children[1].port);
    group_child_start(&g, 0, 0);
    CHECK(group_await(&g, 0, GROUP_READY, AWAIT_US, &e));
    group_child_start(&g, 1, 1);
    CHECK(group_await(&g, 1, GROUP_READY, AWAIT_US, &e));
    group_tell(&g, 1, GROUP_REQUEST, 20000); /* a state worth keeping */
    for (unsigned tries = 0; r.kept->count < 500 && tries < 200; tries++)
        (void)usleep(50000);
    group_tell(&g, 1, GROUP_REQUEST, 0);
    (void)usleep(3000000);
    printf("  %u true packets of its peer to begin with\n", r.kept->count);
    uint64_t quiet_from = r.kept->to_peer, quiet_us = bench_now_us();
    (void)usleep(3000000); /* packets that the peer gets anyway */
    double quiet_rate =
        (double)(r.kept->to_peer - quiet_from) * 1e6 / (double)(bench_now_us() - quiet_us);

    int own = socket(AF_INET, SOCK_DGRAM, 0);
    uint64_t by_kind[KINDS] = {0}, answered = 0, waiting, dropped_before, dropped;
    CHECK(own >= 0);
    queue_look(g.children[0].port, &waiting, &dropped_before);
    struct group_counts before = group_counts_of(&g, 0);
    uint64_t to_peer = r.kept->to_peer;
    uint64_t began = bench_now_us();
    uint64_t sent = attack(&r, own, packets, by_kind, &answered);
    struct group_counts after = group_counts_of(&g, 0);
    double seconds = (double)(bench_now_us() - began) / 1e6;
    (void)usleep(500000);
    answered += answers(own);
    to_peer = r.kept->to_peer - to_peer;
    queue_look(g.children[0].port, &waiting, &dropped);
    report(sent, dropped - dropped_before, by_kind, seconds, &before, &after);
    bool same = agrees(&g);
    bench_must("digests of all classes, its own and its peer's", same, same ? "equal" : "differ",
               "= equal");
    must_count("answers to a stranger's address", answered, "=", 0);
    /* A busy router repeats a few packets; answers to forgeries would be hundreds of thousands. */
    must_count("datagrams to its peer's address, as in a quiet time", to_peer,
               "<=", 100 + (uint64_t)(4 * quiet_rate * (seconds + 0.5)));

    group_tell(&g, 1, GROUP_OBSERVE, 1);
    bool works = group_await(&g, 0, GROUP_HELD, AWAIT_US, &e);
    bench_must("it still hears its peer", works, works ? "yes" : "no", "= yes");
    (void)close(own);
    group_end(&g);
    relay_end(&r);
}
