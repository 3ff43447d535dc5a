/* Replicas on this machine's loopback or link, as routers of several machines call them
 * (node/replica/local.h). While all routers are on the loopback of one machine they share them as
 * any other. Once a router was met elsewhere that is over, for good. */
#include "node/replica/local.h"
#include "node/route/router_internal.h"

static struct slice own_name(const struct node_router *r)
{
    return slice_of_cstr(r->config.name ? r->config.name : "");
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

bool node_router_is_own(const struct node_router *r, const struct node_local_name *local)
{
    char text[NODE_NAME_MAX];
    return slice_equal(node_local_name_write(local->address, own_name(r), text), local->whole);
}

struct slice node_router_source_name(const struct node_router *r, struct slice name)
{
    struct node_local_name local;
    bool own = node_local_name_parse(name, &local) && local.owner.len > 0 && !local.is_rank &&
               node_router_is_own(r, &local);
    return own ? local.address : name;
}
