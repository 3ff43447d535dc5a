/* The round trip to one peer, measured, and how long an answer may take (RFC 6298).
 *
 * Every wait for an answer of a peer follows from it: what is asked for again before an answer can
 * have come is sent twice. The first measurement is the handshake.
 */
#ifndef GOSSIP_TRIP_H
#define GOSSIP_TRIP_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed one is not measured. */
struct gossip_trip {
    uint64_t smooth_us; /* 0: not measured */
    uint64_t var_us;    /* how far measurements are from it, smoothed */
    bool rough;         /* by a handshake only */
};

/* A handshake's duration. It counts until a better measurement, because a packet may have been
 * lost.
 */
void gossip_trip_guess(struct gossip_trip *t, uint64_t us);

/* One more measurement. */
void gossip_trip_take(struct gossip_trip *t, uint64_t us);
/* By when an answer should be here: the round trip and four times its deviation; `unknown_us` where
 * it is not measured. */
uint64_t gossip_trip_wait_us(const struct gossip_trip *t, uint64_t unknown_us);
/* How much later than another a packet may come that was sent earlier: the deviation. On a short
 * way it is the machine's and not the network's, and does not count. */
uint64_t gossip_trip_jitter_us(const struct gossip_trip *t);

#endif
