/* Rule "avoided for good": each router may use each well engine, at the latest after the longest
 * back-off. Requests for the engine, from this router or others, make no difference. */
#include <string.h>

#include "node/proxy/engine/prober.h"
#include "node/route/router_internal.h"
#include "tests/sim/service/service.h"

enum {
    LOST_US = 1000000,  /* a packet comes again after 200 ms, and two round trips of 300 ms */
    START_US = 3000000, /* a router that starts does not know the replicas' names yet */
    /* For routers' reports, probes and readings of metrics: a second each. */
    NEWS_MS = 3000,
    /* The longest back-off, the time for the trial of the router that found the trouble, and the
     * turns of all routers before this router. */
    AVOIDED_MAX_MS = NODE_BACKOFF_MAX_MS + NODE_STALL_BACKOFF_MS +
                     NODE_BREAKER_TURNS_MAX * NODE_BREAKER_TURN_MS + NEWS_MS,
    /* For a replica that denied a listed model twice (node/replica/model.h). */
    DENIED_MAX_MS = NODE_MODELS_DENIED_MS + NEWS_MS,
};

/* The reason why the router does not use the engine; NULL: none. */
static const char *why_not(const struct service_router *r, unsigned engine, uint64_t *most_ms)
{
    struct node_router *router = r->node->node->router;
    const struct node_replica *k = &router->replicas[engine];
    uint64_t now = world_mono_us(r->node) / 1000;
    *most_ms = AVOIDED_MAX_MS;
    if (!node_replica_usable(k, NODE_HEALTH_UP))
        return "not up";
    if (node_replica_avoided(k, now))
        return k->signs.warned ? "avoided: warned" : "avoided";
    if (node_reject_avoids_any(&k->reject, now) || k->reject.doubts > 0)
        return "rejects";
    if (k->kept > 0)
        return "kept";
    if (k->server.models_stale)
        return "its models are stale";
    *most_ms = DENIED_MAX_MS;
    return node_models_denied(router->models, engine, SLICE("m"), now) ? "it denied the model"
                                                                       : NULL;
}

static unsigned replica_of(const struct service_router *r, const struct service_engine *e)
{
    return (unsigned)node_router_replica_find(r->node->node->router, slice_of_cstr(e->name));
}

static bool is_against(const struct service *s, unsigned router, unsigned engine, unsigned what)
{
    const struct service_router *r = &s->routers[router];
    const struct node_replica *k =
        &r->node->node->router->replicas[replica_of(r, &s->engines[engine])];
    return !node_replica_usable(k, NODE_HEALTH_UP) ||
           (node_replica_against(k, world_mono_us(r->node) / 1000) & what) != 0;
}

bool service_is_blamed(const struct service *s, unsigned router, unsigned engine)
{
    return is_against(s, router, engine, NODE_IN_TROUBLE);
}

bool service_blames(const struct service *s, unsigned router, unsigned engine)
{
    unsigned seen = 1U << NODE_STANDING_QUIET | 1U << NODE_STANDING_REPORTED;
    return is_against(s, router, engine, NODE_IN_TROUBLE & ~seen);
}

bool service_owes_answer(const struct service *s, unsigned router, unsigned engine)
{
    const struct service_router *r = &s->routers[router];
    uint64_t any_ms, health_ms;
    prober_waits(r->node->node->proxy, replica_of(r, &s->engines[engine]), &any_ms, &health_ms);
    return any_ms != 0 || health_ms != 0;
}

/* Failures of connections that a router has charged to an engine, in the router's present life. */
static uint64_t charges_of(const struct service *s, unsigned router, unsigned engine)
{
    const struct service_router *r = &s->routers[router];
    const uint64_t *outcomes =
        r->node->node->router->slots[replica_of(r, &s->engines[engine])].outcomes;
    return outcomes[NODE_OUTCOME_BROKEN] + outcomes[NODE_OUTCOME_CONNECT_FAILED];
}

void service_judge_charges(struct service *s)
{
    uint64_t ills = service_ills(s);
    for (unsigned i = 0; i < s->router_count * s->engine_count; i++) {
        unsigned router = i / s->engine_count, engine = i % s->engine_count;
        if (!service_router_up(&s->routers[router]))
            continue;
        uint64_t *seen = &s->charges[router][engine];
        uint64_t now = charges_of(s, router, engine);
        bool well = ((ills | s->ills_before) & UINT64_C(1) << engine) == 0;
        bool silent = s->engines[engine].habits.silence_s > 0; /* until a limit has passed */
        bool early = s->world.now_us < s->routers[router].began_us + START_US;
        /* Later than round trips explain, because a packet was sent again: no stale connection. */
        uint64_t lost_us = s->links[router][engine].lost_us;
        bool lost = lost_us != 0 && s->world.now_us < lost_us + LOST_US;
        if (now > *seen && well && !silent && !early && !lost)
            service_broken(s, "charged", "router %u charges a failure to engine %u, which is well",
                           router, engine);
        *seen = now;
    }
    s->ills_before = ills;
}

static bool judge(struct service *s, unsigned router, unsigned engine)
{
    const struct service_router *r = &s->routers[router];
    const struct service_engine *e = &s->engines[engine];
    uint64_t now = s->world.now_us, most_ms;
    uint64_t *since_us = &s->avoided_since_us[router][engine];
    uint64_t *before_ms = &s->avoided_most_ms[router][engine];
    const char *why = why_not(r, replica_of(r, e), &most_ms);
    if (most_ms != *before_ms) /* another reason, with another time limit */
        *since_us = now;
    *before_ms = most_ms;
    /* A router with a request waiting there learns from that request, and is not judged. */
    bool waits = node_replica_own_requests(&r->node->node->router->replicas[replica_of(r, e)]) > 0;
    uint64_t well_us = e->well_since_us > r->began_us ? e->well_since_us : r->began_us;
    /* An unsolicited 400 is taken as the answer to a crossing request: a rejection. */
    bool blurts = e->habits.unasked == SERVICE_SAYS_400 && why && strcmp(why, "rejects") == 0;
    if (why == NULL || waits || blurts || !service_is_well(s, engine) || *since_us < well_us) {
        *since_us = now;
        return why == NULL || waits;
    }
    if (now > *since_us + most_ms * SERVICE_MS)
        service_broken(s, "avoided for good",
                       "router %u does not use engine %u, which is well, for %.1f s: %s", router,
                       engine, (double)(now - *since_us) / 1e6, why);
    return false;
}

bool service_judge_use(struct service *s)
{
    bool all = true;
    for (unsigned i = 0; i < s->router_count; i++) {
        if (!service_router_up(&s->routers[i]) || s->routers[i].draining)
            continue;
        for (unsigned k = 0; k < s->engine_count; k++)
            all = judge(s, i, k) && all;
    }
    return all;
}

void service_judge_aftermath(struct service *s)
{
    while (!service_judge_use(s)) {
        world_run(&s->world, 100 * SERVICE_MS);
        service_judge_all(s);
    }
}
