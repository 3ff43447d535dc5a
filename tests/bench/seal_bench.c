/* The cost of sealing: a packet of 1,200 bytes of content, a handshake, a refused hello.
 *
 *   build/tests/bench/seal_bench */
#include <sodium.h>
#include <stdio.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "gossip/session.h"

enum { PACKETS = 200000, HANDSHAKES = 2000, BYTES = 1200, BATCH = 100, ROUNDS = 5 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct gossip_keyring ring;
static struct gossip_session a, b;
static uint32_t index_next = 1;

static void handshake(void)
{
    struct gossip_dial dial = {0};
    struct gossip_hello hello;
    struct gossip_welcome welcome;
    uint8_t random[32], first[GOSSIP_HELLO_BYTES], second[GOSSIP_WELCOME_BYTES];
    randombytes_buf(random, sizeof random);
    gossip_dial_begin(&dial, &ring, random, index_next++,
                      &(struct gossip_identity){.node = 1, .ident = SLICE("a")}, 1, first);
    CHECK(gossip_hello_open(&hello, &ring, slice_of((char *)first, sizeof first)) == ERR_OK);
    randombytes_buf(random, sizeof random);
    CHECK(gossip_session_welcome(&b, &hello, random, index_next++,
                                 &(struct gossip_identity){.node = 2, .ident = SLICE("b")}, 1,
                                 second) == ERR_OK);
    CHECK(gossip_dial_finish(&dial, slice_of((char *)second, sizeof second), 1, &welcome) ==
          ERR_OK);
    gossip_session_install(&a, &welcome);
}

static void packets_measure(double *seal_ns, double *open_ns)
{
    static uint8_t packets[BATCH][BYTES + GOSSIP_DATA_OVERHEAD];
    static char plain[BYTES];
    uint8_t out[BYTES];
    size_t len;
    double sealing = 0, opening = 0;
    for (unsigned i = 0; i < PACKETS; i += BATCH) {
        double begun = now_ns();
        for (unsigned k = 0; k < BATCH; k++)
            CHECK(gossip_session_seal(&a, slice_of(plain, BYTES), 1, packets[k]) == ERR_OK);
        double sealed = now_ns();
        for (unsigned k = 0; k < BATCH; k++)
            CHECK(gossip_session_open(&b, slice_of((char *)packets[k], sizeof packets[k]), 1, out,
                                      &len) == ERR_OK);
        opening += now_ns() - sealed;
        sealing += sealed - begun;
    }
    *seal_ns = sealing / PACKETS;
    *open_ns = opening / PACKETS;
}

static double handshake_measure(void)
{
    double begun = now_ns();
    for (unsigned i = 0; i < HANDSHAKES; i++)
        handshake();
    return (now_ns() - begun) / HANDSHAKES;
}

/* The receiver's cost of a stranger's hello. */
static double forged_measure(void)
{
    uint8_t packet[GOSSIP_HELLO_BYTES] = {GOSSIP_PACKET_HELLO};
    struct gossip_hello hello;
    memcpy(packet + 1, ring.keys[0].id, 4);
    double begun = now_ns();
    for (unsigned i = 0; i < 10 * HANDSHAKES; i++)
        CHECK(gossip_hello_open(&hello, &ring, slice_of((char *)packet, sizeof packet)) ==
              ERR_DENIED);
    return (now_ns() - begun) / (10 * HANDSHAKES);
}

int main(void)
{
    CHECK(sodium_init() >= 0);
    gossip_keyring_insecure(&ring);
    printf("%-8s %14s %14s %16s %18s\n", "round", "seal 1200 B", "open 1200 B", "handshake, both",
           "refuse a hello");
    for (unsigned round = 1; round <= ROUNDS; round++) {
        double seal_ns, open_ns;
        handshake();
        packets_measure(&seal_ns, &open_ns);
        double handshake_ns = handshake_measure();
        printf("%-8u %11.0f ns %11.0f ns %13.1f us %15.1f us\n", round, seal_ns, open_ns,
               handshake_ns / 1e3, forged_measure() / 1e3);
    }
    return 0;
}
