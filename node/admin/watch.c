/* Compares the state of each replica twice a second and makes events of changes, whatever drained
 * the replica and whichever router found the failure. */
#include <stdio.h>

#include "node/admin/admin_internal.h"

/* True for standings that make no event: single requests cause and end them. */
static bool is_passing(enum node_standing_why why)
{
    return why == NODE_STANDING_TRIAL || why == NODE_STANDING_TRIED || why == NODE_STANDING_FULL ||
           why == NODE_STANDING_KEPT || why == NODE_STANDING_SLOW_START ||
           why == NODE_STANDING_QUIET;
}

static enum admin_event_kind kind_of(enum node_standing_why why)
{
    switch (why) {
    case NODE_STANDING_NO_ADDRESS:
    case NODE_STANDING_DNS_SILENT:
    case NODE_STANDING_DNS_FAILS:
    case NODE_STANDING_REFUSES:
    case NODE_STANDING_TLS:
    case NODE_STANDING_FAILS_CHECKS:
    case NODE_STANDING_FAILS_REQUESTS:
        return ADMIN_EVENT_DEATH;
    case NODE_STANDING_DRAINED:
    case NODE_STANDING_VANISHES:
    case NODE_STANDING_LEAVING:
        return ADMIN_EVENT_DRAIN;
    case NODE_STANDING_ROUTER:
        return ADMIN_EVENT_TROUBLE;
    default:
        return ADMIN_EVENT_AVOIDED;
    }
}

/* True if the replica is down or avoided, and neither drains nor sleeps. */
static bool is_out(enum node_standing_why why)
{
    return why != NODE_STANDING_WELL && kind_of(why) != ADMIN_EVENT_DRAIN &&
           why != NODE_STANDING_ASLEEP;
}

static void tell(struct admin *a, unsigned replica, const struct node_standing *s, bool first)
{
    char text[ADMIN_EVENT_TEXT_BYTES + NODE_NAME_MAX], room[NODE_STANDING_TEXT_BYTES];
    enum node_standing_why why = s->why;
    struct slice name = node_router_replica_name(a->config.router, replica);
    struct log *log = a->config.log;
    if (why == NODE_STANDING_WELL)
        (void)snprintf(text, sizeof text,
                       first ? "Replica %.*s is up."
                             : "Replica %.*s is well again, and chosen as before.",
                       SLICE_ARG(name));
    else
        (void)snprintf(text, sizeof text, "Replica %.*s is %s.", SLICE_ARG(name),
                       node_standing_text(s, room));
    (void)admin_events_add(a->events, why == NODE_STANDING_WELL ? ADMIN_EVENT_JOIN : kind_of(why),
                           "replica_standing", name, text, log->clock_ms(log->context));
}

static void look_at(struct admin *a, unsigned replica, uint64_t now_ms)
{
    const struct node_router *r = a->config.router;
    struct admin_seen *seen = &a->seen[replica];
    unsigned era = node_router_replica(r, replica)->era;
    if (seen->era != era || !node_router_replica_present(r, replica))
        *seen = (struct admin_seen){.era = era};
    if (!node_router_replica_present(r, replica))
        return;
    struct node_standing standing = node_router_replica_standing(r, replica, now_ms);
    enum node_standing_why why = standing.why;
    bool unknown = node_router_replica_health(r, replica) == NODE_HEALTH_UNKNOWN;
    seen->came_back |= why == NODE_STANDING_SLOW_START;
    if (is_passing(why) || (unknown && why == NODE_STANDING_WELL))
        return;
    bool again = seen->came_back && is_out(why);
    if (!seen->known || seen->why != why || again)
        tell(a, replica, &standing, !seen->known);
    if (seen->known && is_out(why) && (!is_out(seen->why) || again))
        seen->out_ms[seen->outs++ % ADMIN_FLAPS_OUTS] = now_ms;
    seen->known = true;
    seen->came_back = false;
    seen->why = why;
}

void admin_watch(struct admin *a, uint64_t now_ms)
{
    if (now_ms < a->watched_ms + ADMIN_WATCH_MS)
        return;
    a->watched_ms = now_ms;
    unsigned count = node_router_replica_count(a->config.router);
    for (unsigned k = 0; k < count; k++)
        look_at(a, k, now_ms);
    admin_attention_look(a, now_ms);
}
