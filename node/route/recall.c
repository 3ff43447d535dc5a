#include "node/route/recall.h"

#include <stdlib.h>

#include "base/check.h"
#include "node/replica/learned.h"
#include "node/replica/model_keep.h"
#include "node/route/router_internal.h"

bool node_router_learned(const struct node_router *r, unsigned replica, struct crdt_learned *out)
{
    if (replica >= r->replica_count || r->replicas[replica].absent)
        return false;
    *out = node_replica_report(&r->replicas[replica]);
    return true;
}

void node_router_recall(struct node_router *r, unsigned replica, const struct crdt_learned *learned)
{
    if (r->recalled == NULL) /* without memory, the figures are learned again */
        r->recalled = calloc(NODE_REPLICAS_MAX, sizeof *r->recalled);
    if (r->recalled == NULL || replica >= NODE_REPLICAS_MAX)
        return;
    r->recalled[replica] = (struct node_recalled){.any = true, .learned = *learned};
    if (replica < r->replica_count && !r->replicas[replica].absent)
        node_router_recalled_take(r, replica);
}

void node_router_recalled_take(struct node_router *r, unsigned replica)
{
    if (r->recalled == NULL || !r->recalled[replica].any)
        return;
    struct node_recalled *was = &r->recalled[replica];
    struct node_heard h = {.rkey = r->replicas[replica].rkey};
    was->any = false;
    node_heard_add(&h, &was->learned);
    node_replica_hear(&r->replicas[replica], &h, r->now_ms);
    r->fleet_stale = true;
}

/* --- figures from answers -------------------------------------------------------------------- */

enum { OF_MODELS, OF_PROMPTS, KINDS };

/* `at`: the kind, and the position in it */
int node_router_told(struct node_router *r, unsigned at[2], struct buf *out)
{
    size_t start = out->len;
    int more = 0;
    while (more == 0 && at[0] < KINDS) {
        out->len = start;
        more = buf_append_char(out, (char)at[0]);
        if (more == ERR_OK && at[0] == OF_MODELS)
            more = node_models_keep(r->models, &at[1], out);
        else if (more == ERR_OK)
            more = node_ruler_keep(r->ruler, &at[1], out);
        if (more == 0) {
            at[0]++;
            at[1] = 0;
        }
    }
    if (more == 0)
        out->len = start;
    return more;
}

void node_router_told_recall(struct node_router *r, struct slice told)
{
    if (told.len == 0)
        return;
    struct slice rest = slice_skip(told, 1);
    if (told.at[0] == OF_MODELS)
        node_models_recall(r->models, rest);
    else if (told.at[0] == OF_PROMPTS)
        node_ruler_recall(r->ruler, rest);
}
