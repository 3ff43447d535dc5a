/* A process between a router and its peer that keeps what the peer sent: ammunition for forgeries.
 *
 *   peer  ->  front  ~>  victim        front: what the peer believes to be the victim
 *   peer  <~  back   <-  victim        back: what the victim believes to be the peer
 */
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
    int front_fd, back_fd; /* UDP; also open in the process that started it */
    int tcp_fd;            /* of the front, for calls */
    uint16_t victim, peer;
    struct {
        _Atomic uint64_t to_peer; /* datagrams of the victim to the peer's address */
        _Atomic uint32_t count;   /* of packets that were kept, the oldest first */
        struct relay_packet packets[RELAY_KEPT];
    } * kept; /* shared memory */
};

void relay_open(struct relay *r);
/* From now on it forwards. */
void relay_start(struct relay *r, uint16_t victim, uint16_t peer);
void relay_end(struct relay *r);

#endif
