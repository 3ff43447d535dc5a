/* The measured round trip to a peer, and how long an answer may take (RFC 6298).
 *
 * Every wait for a peer's answer follows from the round trip: a request repeated before the answer
 * can arrive is sent twice for nothing. The first measurement is the handshake.
 */
#ifndef GOSSIP_TRIP_H
#define GOSSIP_TRIP_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct has no measurement. */
struct gossip_trip {
    uint64_t smooth_us; /* 0: not measured */
    uint64_t var_us;    /* smoothed deviation of measurements from smooth_us */
    bool rough;         /* measured by a handshake only */
};

/* A handshake's duration. It only counts until the first real measurement, because the handshake
 * may include a lost packet.
 */
void gossip_trip_guess(struct gossip_trip *t, uint64_t us);

/* Takes another measurement. */
void gossip_trip_take(struct gossip_trip *t, uint64_t us);
/* The time within which an answer should arrive: the round trip and four times the deviation, or
 * `unknown_us` if nothing was measured. */
uint64_t gossip_trip_wait_us(const struct gossip_trip *t, uint64_t unknown_us);
/* How much later a packet may arrive than a packet sent afterwards: the deviation, but at most 1/8
 * of the round trip. On a short path the deviation comes from the machines, not from the
 * network. */
uint64_t gossip_trip_jitter_us(const struct gossip_trip *t);

#endif
