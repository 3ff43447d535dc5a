/* Data-parallel ranks as replicas of their own (node/replica/rank.h). This router's settings, or
 * the address's metrics, say how many ranks an address has. A router that knows the ranks names
 * them in the registry; the others learn of them as of any replica. */
#include "base/check.h"
#include "base/err.h"
#include "node/replica/rank.h"
#include "node/route/router_internal.h"

static unsigned ranks_wanted(const struct node_router *r, const struct node_replica *server)
{
    unsigned ranks =
        server->said.ranks > 0 ? server->said.ranks : node_router_slot(r, server)->ranks_read;
    return ranks > 1 ? ranks : 0;
}

/* True if this router may name the ranks: the address is in its settings, or operators added it. */
static bool speaks_for(const struct node_router *r, unsigned slot)
{
    const struct node_replica *k = &r->replicas[slot];
    bool ours = node_router_is_ours(r, slot) || node_router_wish(r, slot) == CRDT_WISH_ADDED;
    return !k->absent && !k->rank.is_one && ours;
}

static void ranks_name(struct node_router *r, unsigned server)
{
    char text[NODE_RANK_NAME_BYTES];
    for (unsigned rank = 0; rank < ranks_wanted(r, &r->replicas[server]); rank++) {
        struct slice name = node_rank_name_write(node_router_replica_name(r, server), rank, text);
        if (!crdt_registry_is_ours(crdt_state_registry(r->crdt), name))
            DISCARD(node_router_name(r, name, r->replicas[server].engine));
    }
}

/* True if the address has got this router's name since the rank was named
 * (node_router_apart_follow). */
static bool is_renamed(const struct node_replica *k, const struct node_replica *server)
{
    struct node_rank_name name;
    return node_rank_name_parse(node_replica_name(k), &name) &&
           !slice_equal(name.address, node_replica_name(server));
}

/* True if a rank that this router named should go. That is so if its address has fewer ranks or
 * another name. It is also so if the router knew the ranks by metrics that another router now
 * reads, and that router names them. */
static bool goes(const struct node_router *r, const struct node_replica *k, uint64_t now_ms)
{
    const struct node_replica *server = &r->replicas[k->rank.server];
    bool orphan = server == k || is_renamed(k, server) || !speaks_for(r, k->rank.server);
    bool reads = server->said.ranks > 0 || node_scraped_due(server, 0, now_ms);
    return orphan || k->rank.number >= ranks_wanted(r, server) ||
           (!reads && node_router_slot(r, k)->naming.state == NODE_NAMING_NAMED);
}

void node_router_ranks_tick(struct node_router *r, uint64_t now_ms)
{
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        if (k->rank.is_one && node_router_is_ours(r, slot) && goes(r, k, now_ms))
            node_router_unname(r, node_replica_name(k));
    }
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *k = &r->replicas[slot];
        if (speaks_for(r, slot) && (k->said.ranks > 0 || node_scraped_due(k, 0, now_ms)))
            ranks_name(r, slot);
    }
    node_router_ranks_inherit(r);
}

/* --- what their metrics say ------------------------------------------------------------------ */

void node_router_ranks_scraped(struct node_router *r, unsigned server,
                               const struct node_scrape *ranks, unsigned count, uint64_t now_ms)
{
    struct node_replica *k = node_router_replica_at(r, server);
    if (node_replica_misses_ranks(k))
        return;
    r->slots[server].ranks_read = count;
    if (k->rank.ranks != ranks_wanted(r, k))
        node_router_ranks_tick(r, now_ms);
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct node_replica *rank = &r->replicas[slot];
        if (rank->rank.is_one && rank->rank.server == server && rank->rank.number < count &&
            !rank->absent)
            (void)node_router_scraped(r, slot, &ranks[rank->rank.number], now_ms);
    }
}
