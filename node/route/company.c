/* Replicas that are kept for a suspect: it is placed where nothing else of ours is under way, and
 * others are not placed beside it where they can be elsewhere. */
#include "base/check.h"
#include "node/route/router_internal.h"

void node_router_keep(struct node_router *r, unsigned replica, bool kept)
{
    struct node_replica *k = node_router_process_at(r, replica);
    CHECK(kept || (k->kept > 0 && r->kept > 0));
    k->kept = kept ? k->kept + 1 : k->kept - 1;
    r->kept = kept ? r->kept + 1 : r->kept - 1;
}

unsigned node_router_kept(const struct node_router *r)
{
    return r->kept;
}

int node_router_quietest(struct node_router *r, const struct node_request *request,
                         const uint64_t *excluded, uint64_t now_ms)
{
    struct node_request bare = *request;
    bare.chain = NULL;
    bare.company = NODE_COMPANY_ANY;
    bare.may_wait = false;
    struct node_size size;
    int err = node_router_evaluate(r, &bare, excluded, false, now_ms, &size);
    if (err != ERR_OK)
        return err;
    unsigned least = 0;
    for (unsigned i = 1; i < r->candidate_count; i++) {
        if (r->candidates[i].requests < r->candidates[least].requests)
            least = i;
    }
    return (int)node_router_server(r, r->candidates[least].replica);
}
