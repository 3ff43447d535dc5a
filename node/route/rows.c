/* Rows of the replica table: by index, by name; each row's process, and the requests that may go
 * there. */
#include "base/check.h"
#include "node/replica/local.h"
#include "node/replica/rank.h"
#include "node/route/router_internal.h"

struct node_replica *node_router_replica_at(const struct node_router *r, unsigned replica)
{
    CHECK(replica < r->replica_count);
    return &r->replicas[replica];
}

const struct node_replica *node_router_replica(const struct node_router *r, unsigned replica)
{
    return node_router_replica_at(r, replica);
}

struct node_replica *node_router_process_at(const struct node_router *r, unsigned replica)
{
    return &r->replicas[node_router_replica_at(r, replica)->rank.server];
}

const struct node_replica *node_router_process(const struct node_router *r, unsigned replica)
{
    return node_router_process_at(r, replica);
}

int node_router_replica_find(const struct node_router *r, struct slice name)
{
    char text[NODE_NAME_MAX];
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    struct slice shared = node_router_shared_name(r, name, text);
    int slot = crdt_registry_by_name(registry, shared);
    if (slot >= 0)
        name = shared;
    else
        slot = crdt_registry_by_name(registry, name);
    bool taken = slot >= 0 && (unsigned)slot < r->replica_count &&
                 slice_equal(node_replica_name(&r->replicas[slot]), name);
    return taken ? slot : -1;
}

struct slice node_router_replica_name(const struct node_router *r, unsigned replica)
{
    return node_replica_name(node_router_replica_at(r, replica));
}

unsigned node_router_server(const struct node_router *r, unsigned replica)
{
    return node_router_replica_at(r, replica)->rank.server;
}

int node_router_rank(const struct node_router *r, unsigned replica)
{
    const struct node_replica *k = node_router_replica_at(r, replica);
    return k->rank.is_one ? k->rank.number : -1;
}

const struct crdt_replica *node_router_row(const struct node_router *r, unsigned replica)
{
    const struct crdt_registry *registry = crdt_state_registry(r->crdt);
    const struct node_replica *k = node_router_replica_at(r, replica);
    bool known = k->name_len > 0 && crdt_registry_has(registry, replica);
    return known ? crdt_registry_at(registry, replica) : NULL;
}

enum crdt_wish node_router_wish(const struct node_router *r, unsigned replica)
{
    const struct crdt_replica *row = node_router_row(r, replica);
    return row ? row->wish : CRDT_WISH_REMOVED;
}

bool node_router_is_ours(const struct node_router *r, unsigned replica)
{
    const struct crdt_replica *row = node_router_row(r, replica);
    return row && row->ours;
}

/* --- names of the loopback or a link ---------------------------------------------------------- */

/* This router's name in names of local replicas (node/replica/local.h). While all routers are on
 * the loopback of one machine, they share local replicas like any other replica. The first router
 * met elsewhere ends this sharing for good. */

static struct slice own_name(const struct node_router *r)
{
    return slice_of_cstr(r->config.name ? r->config.name : "");
}

/* True if the name ends with this router's name. */
static bool is_own(const struct node_router *r, const struct node_local_name *local)
{
    char text[NODE_NAME_MAX];
    return slice_equal(node_local_name_write(local->address, own_name(r), text), local->whole);
}

struct slice node_router_shared_name(const struct node_router *r, struct slice name, char *out)
{
    struct node_local_name local;
    bool plain = node_local_name_parse(name, &local) && local.owner.len == 0 && !local.is_rank;
    if (!r->apart || !plain)
        return name;
    struct slice shared = node_local_name_write(name, own_name(r), out);
    return shared.len > 0 ? shared : name;
}

struct slice node_router_source_name(const struct node_router *r, struct slice name)
{
    struct node_local_name local;
    bool own = node_local_name_parse(name, &local) && local.owner.len > 0 && !local.is_rank &&
               is_own(r, &local);
    return own ? local.address : name;
}

bool node_router_may_use(const struct node_router *r, unsigned slot)
{
    struct node_local_name local;
    const struct node_replica *k = &r->replicas[slot];
    if (!node_local_name_parse(node_replica_name(k), &local))
        return true;
    if (local.owner.len > 0)
        return is_own(r, &local);
    const struct crdt_replica *row = node_router_row(r, slot);
    return !r->apart || (row && (row->ours || row->asked));
}

struct slice node_router_only_at(const struct node_router *r, unsigned slot)
{
    struct node_local_name local;
    const struct node_replica *k = &r->replicas[slot];
    enum crdt_wish wish = node_router_wish(r, slot);
    bool used = wish == CRDT_WISH_ADDED ||
                (wish != CRDT_WISH_REMOVED && node_naming_in_use(&r->slots[slot].naming));
    if (!used || !node_local_name_parse(node_replica_name(k), &local) ||
        node_router_may_use(r, slot))
        return slice_of("", 0);
    return local.owner;
}

/* --- ranks and their processes --------------------------------------------------------------- */

/* Skips a rank with requests. Until they end, the rank keeps the row, and the address keeps the
 * slot. */
void node_router_ranks_follow(struct node_router *r)
{
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        struct node_replica *k = &r->replicas[slot];
        struct node_rank_name name;
        if (k->load.requests > 0)
            continue;
        bool is_one = k->name_len > 0 && node_rank_name_parse(node_replica_name(k), &name);
        int server = is_one ? node_router_replica_find(r, name.address) : -1;
        node_rank_set(k, is_one ? (int)name.rank : -1, server >= 0 ? (unsigned)server : slot);
    }
}

/* --- for which requests ---------------------------------------------------------------------- */

static bool is_excluded(const struct node_replica_set *excluded, unsigned replica)
{
    return excluded && node_replica_set_has(excluded, replica);
}

bool node_router_is_asked(const struct node_router *r, unsigned replica,
                          const struct node_replica_set *serving,
                          const struct node_request *request,
                          const struct node_replica_set *excluded)
{
    const struct node_replica *k = &r->replicas[replica];
    bool wanted = request->replica_wanted == (int)replica;
    bool of_the_kind = request->unpinned >> k->engine & 1 ? !k->rank.is_one : k->rank.ranks == 0;
    if (request->replica_wanted >= 0 ? !wanted : !of_the_kind)
        return false;
    if (k->rank.is_one && (k->absent || k->draining))
        return false;
    return node_replica_set_has(serving, k->rank.server) &&
           !is_excluded(excluded, k->rank.server) && !is_excluded(excluded, replica);
}
