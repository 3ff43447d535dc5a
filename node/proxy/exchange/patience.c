/* Decides how long to wait for a replica's answer and its first token, and what follows when a time
 * limit has passed. */
#include "base/number.h"
#include "node/proxy/exchange/exchange_internal.h"

#include <math.h>

/* upstream-first-token-timeout "auto" is the predicted time to first token multiplied by
 * token_ttft_times. The minimum is PROXY_FIRST_TOKEN_MIN_MS. The maximum is
 * PROXY_FIRST_TOKEN_MAX_MS, or the predicted time multiplied by token_ttft_times_max if this is
 * longer. Predictions may be far off, and leaving an engine just before the answer costs a client
 * more than waiting. */
static const double token_ttft_times = 10, token_ttft_times_max = 3;

bool exchange_replica_moves(const struct exchange *x)
{
    return node_router_replica_moves(x->proxy->config.router, x->now.decision.replica,
                                     x->proxy->now_ms);
}

uint64_t exchange_token_wait_ms(double ttft_s)
{
    double ttft_ms = ttft_s * 1000;
    double most_ms = number_max(PROXY_FIRST_TOKEN_MAX_MS, token_ttft_times_max * ttft_ms);
    if (ttft_ms <= 0)
        return (uint64_t)most_ms;
    return (uint64_t)number_min(number_max(token_ttft_times * ttft_ms, PROXY_FIRST_TOKEN_MIN_MS),
                                most_ms);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns how long the replica has sent no byte of this answer, and shown no sign of work on any
 * request. Pauses of the router itself do not count. */
static uint64_t silence_ms(const struct exchange *x)
{
    const struct proxy *p = x->proxy;
    uint64_t worked_ms = node_router_replica_worked(p->config.router, x->now.decision.replica);
    uint64_t since_ms = later(x->now.upstream->silent_ms, later(worked_ms, p->resumed_ms));
    return p->now_ms > since_ms ? p->now_ms - since_ms : 0;
}

/* Returns the longest wait between two pieces of an answer. An engine that does not report steps
 * gets more time. */
static uint64_t idle_wait_ms(const struct exchange *x)
{
    return node_router_replica_tells(x->proxy->config.router, x->now.decision.replica)
               ? PROXY_IDLE_MS
               : PROXY_IDLE_BLIND_MS;
}

/* Returns true if the wait should go on: the setting of the passed limit is "auto", and the silence
 * is still shorter than the limit that the router computes. */
static bool may_come(const struct exchange *x)
{
    const struct node_options *o = x->proxy->config.options;
    const struct upstream *u = x->now.upstream;
    if (u->in_body && !u->awaits_token)
        return o->upstream_idle_timeout_ms == NODE_OPTION_AUTO && silence_ms(x) < idle_wait_ms(x);
    if (o->upstream_first_token_timeout_ms != NODE_OPTION_AUTO)
        return false;
    if (u->awaits_token)
        return silence_ms(x) < exchange_token_wait_ms(x->now.decision.ttft_s);
    bool whole = u->request->answered_whole && u->request_sent;
    return !whole && silence_ms(x) < PROXY_FIRST_TOKEN_MAX_MS;
}

bool exchange_time_left(struct exchange *x)
{
    struct upstream *u = x->now.upstream;
    if (u->state == UPSTREAM_BUSY && may_come(x)) {
        proxy_arm(x->proxy, PROXY_UPSTREAM_AGAIN, &u->deadline);
        return true;
    }
    (void)exchange_because(x, u->state == UPSTREAM_CONNECTING  ? REFUSED_CONNECT
                              : u->in_body && !u->awaits_token ? REFUSED_IDLE
                              : u->request->answered_whole && u->request_sent
                                  ? REFUSED_WHOLE_ANSWER
                                  : REFUSED_FIRST_TOKEN);
    return false;
}

bool exchange_may_leave_silent(const struct exchange *x)
{
    return x->refusal == REFUSED_FIRST_TOKEN && !x->silent_left && !exchange_replica_moves(x);
}

void exchange_late(struct exchange *x)
{
    char text[EXCHANGE_LATE_TEXT];
    unsigned status = exchange_because(x, REFUSED_REQUEST_TIMEOUT);
    exchange_late_text(x, text);
    if (exchange_is_committed(x)) {
        x->now.outcome = NODE_OUTCOME_SLOW;
        exchange_say_cut(x, status, text);
        exchange_finish_cut(x);
        return;
    }
    exchange_release_booking(x, NODE_OUTCOME_SLOW);
    exchange_forget_answer(x);
    exchange_answer_error(x, status, slice_of("", 0), "%s", text);
}
