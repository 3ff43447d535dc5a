#include "node/replica/standing.h"

#include <stdio.h>

#include "base/err.h"

static const struct {
    const char *word, *text;
} whys[NODE_STANDINGS] = {
    [NODE_STANDING_WELL] = {"", ""},
    [NODE_STANDING_ROUTER] = {"router", "is a Grapevine router, no engine"},
    [NODE_STANDING_NO_ADDRESS] = {"no_address", "without an address: its name has none"},
    [NODE_STANDING_DNS_SILENT] = {"dns_silent",
                                  "without an address: no DNS server answers for its name"},
    [NODE_STANDING_DNS_FAILS] = {"dns_fails", "without an address: the look-up of its name fails"},
    [NODE_STANDING_REFUSES] = {"refuses", "down: its port refuses connections"},
    [NODE_STANDING_TLS] = {"tls", "down: TLS with it fails, by its certificate or as its port "
                                  "speaks none (the log says which: replica_tls_failed)"},
    [NODE_STANDING_FAILS_CHECKS] = {"checks", "down: its health checks fail"},
    [NODE_STANDING_FAILS_REQUESTS] = {"requests", "down: requests could not connect, or broke"},
    [NODE_STANDING_DRAINED] = {"drained", "draining: an operator wishes it"},
    [NODE_STANDING_VANISHES] = {"vanishes", "draining: its source drops it"},
    [NODE_STANDING_ASLEEP] = {"asleep", "asleep"},
    [NODE_STANDING_LEAVING] = {"leaving", "leaving: its health check says no"},
    [NODE_STANDING_STALLED] = {"stalled", "stalled: it stands still with requests"},
    [NODE_STANDING_QUIET] = {"quiet", "avoided: longer without a sign of life than usual"},
    [NODE_STANDING_ERRORS] = {"errors",
                              "avoided: its answers failed (5xx), or a share of them broke"},
    [NODE_STANDING_BROKE] = {"broke", "avoided: its connections failed or broke"},
    [NODE_STANDING_REJECTS] = {"rejects", ""}, /* text_of_rejects() */
    [NODE_STANDING_TRIAL] = {"trial", "avoided: it failed, and one request tries it"},
    [NODE_STANDING_REPORTED] = {"reported", "avoided: another router reports that it fails"},
    [NODE_STANDING_FULL] = {"full", "avoided: it said that it is full"},
    [NODE_STANDING_KEPT] = {"kept", "kept for a request that may be poison"},
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
    return s->why == NODE_STANDING_REJECTS ? text_of_rejects(s, room) : whys[s->why].text;
}

static enum node_standing_why why_unresolved(int err)
{
    return err == ERR_NOT_FOUND ? NODE_STANDING_NO_ADDRESS
           : err == ERR_TIMEOUT ? NODE_STANDING_DNS_SILENT
                                : NODE_STANDING_DNS_FAILS;
}

static enum node_standing_why why_down(const struct node_replica *k)
{
    if (k->refuses)
        return NODE_STANDING_REFUSES;
    if (k->tls_fails)
        return NODE_STANDING_TLS;
    return k->gone || k->probe_failures >= k->probe_failures_max ? NODE_STANDING_FAILS_CHECKS
                                                                 : NODE_STANDING_FAILS_REQUESTS;
}

/* It gets nothing. WELL: that is not so. */
static enum node_standing_why why_out(const struct node_replica *k)
{
    if (k->health == NODE_HEALTH_ROUTER)
        return NODE_STANDING_ROUTER;
    if (k->unresolved != 0 && k->health != NODE_HEALTH_UP)
        return why_unresolved(k->unresolved);
    if (k->health == NODE_HEALTH_DOWN)
        return why_down(k);
    if (k->draining)
        return k->vanishing ? NODE_STANDING_VANISHES : NODE_STANDING_DRAINED;
    return k->asleep ? NODE_STANDING_ASLEEP : NODE_STANDING_WELL;
}

static struct node_standing avoided(enum node_standing_why why, uint64_t until_ms)
{
    return (struct node_standing){.why = why, .avoided = true, .until_ms = until_ms};
}

static uint64_t if_later(uint64_t until_ms, uint64_t now_ms)
{
    return until_ms > now_ms ? until_ms : 0;
}

static struct node_standing still(const struct node_replica *k, uint64_t now_ms)
{
    const struct node_signs *s = &k->signs;
    if (s->stall != NODE_STALL_NONE || s->stalls.until_ms > now_ms)
        return avoided(NODE_STANDING_STALLED, if_later(s->stalls.until_ms, now_ms));
    if (s->quiet)
        return avoided(NODE_STANDING_QUIET, 0);
    return s->warned ? avoided(NODE_STANDING_REPORTED, 0) : (struct node_standing){0};
}

/* What node_replica_in_trouble() goes by, in its order of weight. */
static struct node_standing trouble(const struct node_replica *k, uint64_t now_ms)
{
    const struct node_signs *s = &k->signs;
    uint64_t errors = if_later(k->errors.until_ms, now_ms);
    uint64_t broken = if_later(k->broken.until_ms, now_ms);
    bool on_trial = k->errors.trial || k->broken.trial || s->stalls.trial;
    if (s->leaving)
        return avoided(NODE_STANDING_LEAVING, 0);
    struct node_standing stands = still(k, now_ms);
    if (stands.why != NODE_STANDING_WELL)
        return stands;
    if (broken > 0 && broken >= errors)
        return avoided(NODE_STANDING_BROKE, broken);
    if (errors > 0)
        return avoided(NODE_STANDING_ERRORS, errors);
    if (!node_replica_in_trouble(k, now_ms)) /* the next request tries it */
        return (struct node_standing){.why = on_trial ? NODE_STANDING_TRIAL : NODE_STANDING_WELL};
    bool own =
        on_trial && (node_replica_own_requests(k) > 0 || k->breaker.heard == NODE_BREAKER_CLOSED);
    return avoided(own ? NODE_STANDING_TRIAL : NODE_STANDING_REPORTED, 0);
}

struct node_standing node_rank_standing(const struct node_replica *rank, uint64_t now_ms)
{
    struct node_standing out = still(rank, now_ms);
    if (out.why == NODE_STANDING_WELL && node_replica_stands_still(rank, now_ms))
        out = avoided(NODE_STANDING_TRIAL, 0);
    return out;
}

struct node_standing node_replica_standing(const struct node_replica *k, uint64_t now_ms)
{
    struct node_standing out = {.why = why_out(k)};
    if (out.why != NODE_STANDING_WELL)
        return out;
    out = trouble(k, now_ms);
    if (out.why != NODE_STANDING_WELL)
        return out;
    const struct node_reject *j = &k->reject;
    if (node_reject_holds(j))
        return (struct node_standing){.why = NODE_STANDING_REJECTS,
                                      .avoided = node_reject_avoids_any(j, now_ms),
                                      .until_ms = if_later(j->until_ms, now_ms),
                                      .status = node_reject_status(j),
                                      .kinds = node_reject_kinds(j),
                                      .one_model = j->kinds != 0 && j->about != 0};
    if (k->busy_until_ms > now_ms)
        return avoided(NODE_STANDING_FULL, k->busy_until_ms);
    if (k->kept > 0)
        return avoided(NODE_STANDING_KEPT, 0);
    if (k->back_ms == 0 || now_ms >= k->back_ms + NODE_WARM_MS)
        return out;
    return (struct node_standing){.why = NODE_STANDING_SLOW_START,
                                  .avoided =
                                      node_warm_full(k->back_ms, node_replica_requests(k), now_ms),
                                  .until_ms = k->back_ms + NODE_WARM_MS};
}
