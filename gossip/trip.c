#include "gossip/trip.h"

enum {
    SMOOTH = 8, /* a measurement has a weight of 1/8 in the smoothed round trip */
    DEVIATE = 4,
    DEVIATE_FIRST = 2,
    DEVIATIONS = 4,
    JITTER_PART = 8,        /* jitter is at most 1/8 of the round trip */
    GUESS_MAX_US = 1000000, /* a longer handshake is ignored: a node slept, or packets were lost */
};

static void begin(struct gossip_trip *t, uint64_t us, bool rough)
{
    *t = (struct gossip_trip){
        .smooth_us = us > 0 ? us : 1, .var_us = us / DEVIATE_FIRST, .rough = rough};
}

void gossip_trip_guess(struct gossip_trip *t, uint64_t us)
{
    if (t->smooth_us == 0 && us <= GUESS_MAX_US)
        begin(t, us, true);
}

void gossip_trip_take(struct gossip_trip *t, uint64_t us)
{
    if (t->smooth_us == 0 || t->rough) {
        begin(t, us, false);
        return;
    }
    uint64_t off_us = us > t->smooth_us ? us - t->smooth_us : t->smooth_us - us;
    t->var_us = ((DEVIATE - 1) * t->var_us + off_us) / DEVIATE;
    t->smooth_us = ((SMOOTH - 1) * t->smooth_us + us) / SMOOTH;
    if (t->smooth_us == 0)
        t->smooth_us = 1;
}

uint64_t gossip_trip_wait_us(const struct gossip_trip *t, uint64_t unknown_us)
{
    return t->smooth_us != 0 ? t->smooth_us + DEVIATIONS * t->var_us : unknown_us;
}

uint64_t gossip_trip_jitter_us(const struct gossip_trip *t)
{
    uint64_t most_us = t->smooth_us / JITTER_PART;
    return t->var_us < most_us ? t->var_us : most_us;
}
