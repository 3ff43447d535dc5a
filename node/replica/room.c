#include "node/replica/room.h"

#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"

bool node_room_waited(double took_s, double takes_s, double step_s)
{
    return took_s > RULE(CLEARLY) * takes_s + RULE(WAITED_STEPS) * step_s;
}

bool node_room_ran(struct node_room *r, struct node_room_amount ran)
{
    r->ran.requests = number_max(r->ran.requests, ran.requests);
    r->ran.tokens = number_max(r->ran.tokens, ran.tokens);
    return ran.requests > r->ran_anywhere.requests || ran.tokens > r->ran_anywhere.tokens;
}

/* Returns ((`booked` + `more` - `ran`) / `ran`) to the power of 1.5, or 0 without an excess. `ran`:
 * the most ever seen running. A little more work is likely to fit, twice as much is not. */
static double beyond(double booked, double more, double ran)
{
    double excess = booked + more - ran;
    double share = ran > 0 && excess > 0 ? excess / ran : 0;
    return share * sqrt(share);
}

double node_room_beyond_s(const struct node_room *r, struct node_room_amount booked,
                          struct node_room_amount more, double requests_typical, double residence_s)
{
    struct node_room_amount ran = r->ran_anywhere;
    if (LEFT_OUT(BEYOND))
        return 0;
    if (ran.requests <= 0) /* load rises for the first time */
        ran.requests = number_max(RULE(CLEARLY) * requests_typical, RULE(ENGINE_RUNS));
    bool few = ran.requests <= RULE(ENGINE_RUNS);
    if (ran.tokens > 0) /* this context fits alone; if few ran, ENGINE_RUNS such contexts fit */
        ran.tokens = number_max(ran.tokens, more.tokens * (few ? RULE(ENGINE_RUNS) : 1));
    return residence_s * number_max(beyond(booked.requests, more.requests, ran.requests),
                                    beyond(booked.tokens, more.tokens, ran.tokens));
}
