#include "node/replica/standing.h"

#include <stdio.h>

#include "base/err.h"

static const struct {
    const char *word, *text;
} whys[NODE_STANDINGS] = {
    [NODE_STANDING_WELL] = {"", ""},
    [NODE_STANDING_ROUTER] = {"router", "a Grapevine router, not an engine"},
    [NODE_STANDING_NO_ADDRESS] = {"no_address", "without an address: its name has none"},
    [NODE_STANDING_DNS_SILENT] = {"dns_silent",
                                  "without an address: no DNS server answers for its name"},
    [NODE_STANDING_DNS_FAILS] = {"dns_fails", "without an address: the look-up of its name fails"},
    [NODE_STANDING_REFUSES] = {"refuses", "down: its port refuses connections"},
    [NODE_STANDING_TLS] = {"tls", "down: TLS fails, because of its certificate or because its port "
                                  "speaks no TLS (replica_tls_failed in the log says which)"},
    [NODE_STANDING_FAILS_CHECKS] = {"checks", "down: its health checks fail"},
    [NODE_STANDING_FAILS_REQUESTS] = {"requests", "down: requests could not connect, or broke"},
    [NODE_STANDING_DRAINED] = {"drained", "draining: by an operator"},
    [NODE_STANDING_VANISHES] = {"vanishes", "draining: its source drops it"},
    [NODE_STANDING_ASLEEP] = {"asleep", "asleep"},
    [NODE_STANDING_LEAVING] = {"leaving", "leaving: its health check says no"},
    [NODE_STANDING_STALLED] = {"stalled", "stalled: it has requests but makes no progress"},
    [NODE_STANDING_QUIET] = {"quiet", "avoided: longer without a sign of life than usual"},
    [NODE_STANDING_FOUND] = {"reported", "avoided: another router reports that it fails"},
    [NODE_STANDING_BROKE] = {"broke", "avoided: its connections failed or broke"},
    [NODE_STANDING_ERRORS] = {"errors",
                              "avoided: its answers failed (5xx), or a share of them broke"},
    [NODE_STANDING_TRIED] = {"trial", "avoided: it failed, and one request tries it"},
    [NODE_STANDING_TRIAL] = {"trial", "avoided: it failed, and one request tries it"},
    [NODE_STANDING_REPORTED] = {"reported", "avoided: another router reports that it fails"},
    [NODE_STANDING_REJECTS] = {"rejects", ""}, /* text_of_rejects() */
    [NODE_STANDING_FULL] = {"full", "avoided: it said that it is full"},
    [NODE_STANDING_KEPT] = {"kept", "kept free for a request that may be poison"},
    [NODE_STANDING_SLOW_START] = {"slow_start", "avoided: it is back, and starts slowly"},
};

const char *node_standing_word(enum node_standing_why why)
{
    return whys[why].word;
}

static const char *text_of_rejects(const struct node_standing *s, char *room)
{
    char what[NODE_REJECT_TEXT_BYTES];
    if (s->denied > 0) {
        (void)snprintf(room, NODE_STANDING_TEXT_BYTES,
                       "%s: it answers that it does not know %u of the models that it lists",
                       s->avoided ? "avoided" : "on trial", s->denied);
        return room;
    }
    (void)snprintf(room, NODE_STANDING_TEXT_BYTES, "%s%s%s",
                   s->beyond    ? "used, though it "
                   : s->avoided ? "avoided: it "
                                : "on trial: it ",
                   node_reject_text(s->status, s->kinds, s->one_model, what),
                   s->beyond ? ": at most half of a model's replicas are avoided for this" : "");
    return room;
}

const char *node_standing_text(const struct node_standing *s, char room[NODE_STANDING_TEXT_BYTES])
{
    if (s->why == NODE_STANDING_REJECTS)
        return text_of_rejects(s, room);
    if (!s->drained)
        return whys[s->why].text;
    (void)snprintf(room, NODE_STANDING_TEXT_BYTES, "%s; drained by an operator, too",
                   whys[s->why].text);
    return room;
}

static enum node_standing_why why_unresolved(int err)
{
    return err == ERR_NOT_FOUND ? NODE_STANDING_NO_ADDRESS
           : err == ERR_TIMEOUT ? NODE_STANDING_DNS_SILENT
                                : NODE_STANDING_DNS_FAILS;
}

static enum node_standing_why why_down(const struct node_replica *k)
{
    if (k->trouble.check.refused)
        return NODE_STANDING_REFUSES;
    if (k->trouble.check.tls_fails)
        return NODE_STANDING_TLS;
    const struct node_trouble *t = &k->trouble;
    return t->gone || t->probe_failures >= t->probe_failures_max ? NODE_STANDING_FAILS_CHECKS
                                                                 : NODE_STANDING_FAILS_REQUESTS;
}

/* The reason why the replica gets no requests at all; WELL: none. */
static enum node_standing_why why_out(const struct node_replica *k)
{
    if (k->health == NODE_HEALTH_ROUTER)
        return NODE_STANDING_ROUTER;
    if (k->trouble.check.unresolved != 0 && k->health != NODE_HEALTH_UP)
        return why_unresolved(k->trouble.check.unresolved);
    if (k->health == NODE_HEALTH_DOWN)
        return why_down(k);
    if (k->draining)
        return k->vanishing ? NODE_STANDING_VANISHES : NODE_STANDING_DRAINED;
    return k->asleep ? NODE_STANDING_ASLEEP : NODE_STANDING_WELL;
}

static bool warms_up(const struct node_replica *k, uint64_t now_ms)
{
    return k->trouble.back_ms != 0 && now_ms < k->trouble.back_ms + NODE_WARM_MS;
}

/* True in slow start with as many requests as allowed. */
static bool is_cold(const struct node_replica *k, uint64_t now_ms)
{
    uint64_t back_ms = k->trouble.back_ms;
    if (!warms_up(k, now_ms))
        return false;
    uint64_t seconds = now_ms > back_ms ? (now_ms - back_ms) / 1000 : 0;
    return node_replica_requests(k) >= (uint64_t)NODE_WARM_REQUESTS << seconds;
}

unsigned node_replica_against(const struct node_replica *k, uint64_t now_ms)
{
    const struct node_signs *s = &k->signs;
    const struct node_trouble *t = &k->trouble;
    bool asked = node_replica_own_requests(k) > 0, tried = node_replica_on_trial(k);
    bool alone = k->breaker.heard == NODE_BREAKER_CLOSED;
    bool others_turn = (tried || !alone) && node_breaker_avoids(k, now_ms);
    bool stalled = s->stall != NODE_STALL_NONE || s->stalls.until_ms > now_ms;
    bool backs_off = t->failing.until_ms > now_ms;
    bool on_trial = (t->failing.trial && asked) || (tried && alone && others_turn);
    return (unsigned)s->leaving << NODE_STANDING_LEAVING |
           (unsigned)stalled << NODE_STANDING_STALLED | (unsigned)s->quiet << NODE_STANDING_QUIET |
           (unsigned)s->warned << NODE_STANDING_FOUND |
           (unsigned)(backs_off && t->broke) << NODE_STANDING_BROKE |
           (unsigned)(backs_off && !t->broke) << NODE_STANDING_ERRORS |
           (unsigned)(s->stalls.trial && asked) << NODE_STANDING_TRIED |
           (unsigned)on_trial << NODE_STANDING_TRIAL |
           (unsigned)others_turn << NODE_STANDING_REPORTED |
           (unsigned)(t->busy_until_ms > now_ms) << NODE_STANDING_FULL |
           (unsigned)is_cold(k, now_ms) << NODE_STANDING_SLOW_START;
}

/* Time at which the reason `why` ends, or ended, by time alone; 0: by other events. */
static uint64_t until(const struct node_replica *k, enum node_standing_why why)
{
    switch (why) {
    case NODE_STANDING_STALLED:
        return k->signs.stalls.until_ms;
    case NODE_STANDING_BROKE:
    case NODE_STANDING_ERRORS:
        return k->trouble.failing.until_ms;
    case NODE_STANDING_REJECTS:
        return k->reject.backoff.until_ms;
    case NODE_STANDING_FULL:
        return k->trouble.busy_until_ms;
    case NODE_STANDING_SLOW_START:
        return k->trouble.back_ms + NODE_WARM_MS;
    default:
        return 0;
    }
}

struct node_standing node_replica_standing(const struct node_replica *k, uint64_t now_ms)
{
    enum node_standing_why why = why_out(k);
    if (why != NODE_STANDING_WELL)
        return (struct node_standing){
            .why = why, .drained = k->draining && !k->vanishing && why != NODE_STANDING_DRAINED};
    const struct node_reject *j = &k->reject;
    unsigned avoided = node_replica_against(k, now_ms) |
                       (unsigned)node_reject_avoids_any(j, now_ms) << NODE_STANDING_REJECTS |
                       (unsigned)(k->kept > 0) << NODE_STANDING_KEPT;
    /* Adds reasons which keep no request away: the next request is the trial, other kinds are
     * accepted, or there is room. */
    bool due = (avoided & NODE_IN_TROUBLE) == 0 && node_replica_on_trial(k);
    unsigned all = avoided | (unsigned)due << NODE_STANDING_TRIAL |
                   (unsigned)(node_reject_kinds(j) != 0) << NODE_STANDING_REJECTS |
                   (unsigned)warms_up(k, now_ms) << NODE_STANDING_SLOW_START;
    if (all == 0)
        return (struct node_standing){.why = NODE_STANDING_WELL};
    why = (enum node_standing_why)__builtin_ctz(all);
    uint64_t until_ms = until(k, why);
    return (struct node_standing){.why = why,
                                  .avoided = (avoided >> why & 1) != 0,
                                  .until_ms = until_ms > now_ms ? until_ms : 0,
                                  .status = node_reject_status(j),
                                  .kinds = node_reject_kinds(j),
                                  .one_model = j->kinds != 0 && j->about != 0};
}
