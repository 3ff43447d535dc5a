/* Data-parallel ranks as separate replicas (node/replica/rank.h). The number of ranks of an address
 * comes from this router's settings or the address's metrics. A router that knows the ranks names
 * them in the registry. The other routers learn of ranks as of any replica. */
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

/* True if this router may name the ranks: the settings have the address, or operators added it. */
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

/* True if this router's name was added to the address since the rank was named
 * (node_router_apart_follow). */
static bool is_renamed(const struct node_replica *k, const struct node_replica *server)
{
    struct node_rank_name name;
    return node_rank_name_parse(node_replica_name(k), &name) &&
           !slice_equal(name.address, node_replica_name(server));
}

/* True if a rank named by this router should go, for either of two reasons. First, the address has
 * fewer ranks, or another name, or this router no longer speaks for it. Second, another router now
 * reads the metrics from which this router knew the ranks, and names them. */
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
