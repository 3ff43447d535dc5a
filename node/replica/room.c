#include "node/replica/room.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"

bool node_room_waited(double took_s, double takes_s, double step_s)
{
    return took_s > RULE(CLEARLY) * takes_s + RULE(WAITED_STEPS) * step_s;
}

bool node_room_exceeds(const struct node_room *r, struct node_room_amount amount)
{
    return (r->most.requests > 0 && amount.requests > r->most.requests) ||
           (r->most.tokens > 0 && amount.tokens > r->most.tokens);
}

void node_room_add(struct node_room *r, struct node_room_amount ran, uint64_t now_ms)
{
    if (!(ran.requests > 0 && ran.tokens > 0))
        return;
    node_speed_add(&r->requests, ran.requests, now_ms);
    node_speed_add(&r->tokens, ran.tokens, now_ms);
}

static int compare(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Of the last `count` samples. `spread` is that of the middle half, as a share of the median. */
static double median_of(const struct node_speed *s, unsigned count, double *spread)
{
    float sorted[NODE_SPEED_RECENT_MAX];
    for (unsigned i = 0; i < count; i++)
        sorted[i] = s->recent[s->fresh - count + i];
    qsort(sorted, count, sizeof sorted[0], compare);
    double median = (double)sorted[count / 2];
    *spread = (double)(sorted[count * 3 / 4] - sorted[count / 4]) / median;
    return median;
}

/* How many run at once is a setting, so what ran once has room. An end is heard of a little late:
 * half a request, or one of eight, may be too many. */
static bool is_disproved(double limit, double ran)
{
    return ran > limit + number_max(0.5, (RULE(SLIGHTLY) - 1) * limit);
}

struct node_room_amount node_room_own(const struct node_room *r, uint64_t now_ms)
{
    unsigned count = node_speed_fresh(&r->requests, now_ms);
    if (count <= RULE(FEW))
        return (struct node_room_amount){0};
    double requests_spread, tokens_spread;
    double requests = median_of(&r->requests, count, &requests_spread);
    double tokens = median_of(&r->tokens, count, &tokens_spread);
    if (number_min(tokens_spread, requests_spread) > 1 / RULE(CLEARLY))
        return (struct node_room_amount){0};
    if (tokens_spread < requests_spread)
        return (struct node_room_amount){.tokens = tokens};
    if (is_disproved(requests, r->ran_surely))
        return (struct node_room_amount){0};
    return (struct node_room_amount){.requests = requests};
}

bool node_room_told(struct node_room *r, double running, double waiting, double booked,
                    bool restarted)
{
    if (restarted)
        r->ran_surely = 0;
    node_room_streamed(r, running);
    bool none_waits = waiting == 0 && r->most.requests > 0 && booked > r->most.requests;
    if (none_waits)
        r->requests = r->tokens = (struct node_speed){0};
    return none_waits;
}

void node_room_streamed(struct node_room *r, double requests)
{
    r->ran_surely = number_max(r->ran_surely, requests);
}

bool node_room_ran(struct node_room *r, struct node_room_amount ran)
{
    r->ran.requests = number_max(r->ran.requests, ran.requests);
    r->ran.tokens = number_max(r->ran.tokens, ran.tokens);
    return ran.requests > r->ran_anywhere.requests || ran.tokens > r->ran_anywhere.tokens;
}

/* As a share of what ran. A little more is likely to fit, twice as much is not. */
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
    if (ran.tokens > 0) /* as many of this size as run anywhere, or it alone */
        ran.tokens = number_max(ran.tokens, more.tokens * (few ? RULE(ENGINE_RUNS) : 1));
    return residence_s * number_max(beyond(booked.requests, more.requests, ran.requests),
                                    beyond(booked.tokens, more.tokens, ran.tokens));
}

/* The share of what is there that has to end. */
static double lacks(double booked, double more, double most)
{
    double lacking = booked + more - most;
    return most > 0 && booked > 0 && lacking > 0 ? number_min(lacking / booked, 1) : 0;
}

double node_room_wait_s(const struct node_room *r, struct node_room_amount booked,
                        struct node_room_amount more, double residence_s)
{
    return residence_s * number_max(lacks(booked.requests, more.requests, r->most.requests),
                                    lacks(booked.tokens, more.tokens, r->most.tokens));
}
