/* A process between a router and a peer, which keeps the peer's packets, to forge others from them.
 *
 *   peer  ->  front  ~>  victim        front: the victim's address, as the peer believes
 *   peer  <~  back   <-  victim        back: the peer's address, as the victim believes */
#ifndef TESTS_BENCH_GOSSIP_RELAY_H
#define TESTS_BENCH_GOSSIP_RELAY_H

#include <stdint.h>

#include "gossip/gossip.h"

enum { RELAY_KEPT = 4096 };

struct relay_packet {
    uint16_t len;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};

struct relay {
    int pid;
    uint16_t front, back;  /* ports */
    int front_fd, back_fd; /* UDP; also open in the process that started the relay */
    int tcp_fd;            /* of the front, for calls */
    uint16_t victim, peer;
    struct {
        _Atomic uint64_t to_peer; /* datagrams from the victim to the peer's address */
        _Atomic uint32_t count;   /* kept packets, the oldest first */
        struct relay_packet packets[RELAY_KEPT];
    } * kept; /* shared memory */
};

void relay_open(struct relay *r);
/* Starts forwarding. */
void relay_start(struct relay *r, uint16_t victim, uint16_t peer);
void relay_end(struct relay *r);

#endif
