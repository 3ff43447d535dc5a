/* What replicas hold of a prompt: what was recorded there, and how much of that is believed to be
 * there still. */
#include "base/checkpoint.h"
#include "node/route/router_internal.h"

/* Tokens in a block of the index there, over all models and kinds of prompts that it is sent. */
double node_router_block_tokens(const struct node_replica *replica)
{
    return CHECKPOINT_BLOCK_BYTES / node_ratio_value(&replica->bytes_per_token);
}

static double reported_blocks(const struct node_router *r, const struct node_replica *k)
{
    return node_replica_cache_tokens(k, (double)r->config.cache_tokens) /
           node_router_block_tokens(k);
}

void node_router_beliefs_refresh(struct node_router *r)
{
    for (unsigned k = 0; k < r->replica_count; k++) {
        struct node_replica *replica = &r->replicas[k];
        if (!replica->belief.stale)
            continue;
        struct crdt_index_ring ring = crdt_index_ring(r->index, k);
        replica->belief.near_blocks =
            node_replica_near_tokens(replica) / node_router_block_tokens(replica);
        node_belief_refresh(&replica->belief, &ring, reported_blocks(r, replica));
    }
}

void node_router_match(struct node_router *r, const struct node_request *request)
{
    if (!request->chain || request->chain->length == 0) {
        memset(r->lengths, 0, r->replica_count * sizeof r->lengths[0]);
        memset(r->covered, 0, r->replica_count * sizeof r->covered[0]);
        memset(r->generations, 0, r->replica_count * sizeof r->generations[0]);
        return;
    }
    for (unsigned k = 0; k < r->replica_count; k++)
        r->floors[k] = r->replicas[k].belief.floor;
    if (request->chain->chunks)
        crdt_index_cover(r->index, request->chain, r->floors, r->replica_count, r->covered,
                         r->generations);
    else
        crdt_index_match(r->index, request->chain, r->floors, r->replica_count, r->lengths,
                         r->generations);
}

double node_router_held_blocks(const struct node_router *r, unsigned k,
                               const struct node_request *request)
{
    const struct chain *chain = request->chain;
    if (!chain)
        return 0;
    double blocks = 0;
    if (chain->chunks)
        blocks = r->covered[k];
    else if (r->lengths[k] > 0)
        blocks = chain->points[r->lengths[k] - 1].blocks;
    const struct node_belief *b = &r->replicas[k].belief;
    return r->generations[k] == b->floor ? blocks * b->floor_share : blocks;
}

struct node_held node_router_held(const struct node_router *r, unsigned k,
                                  const struct node_request *request, const struct node_size *size,
                                  double held_blocks)
{
    const struct node_replica *replica = &r->replicas[k];
    double present = r->generations[k] == replica->belief.floor ? replica->belief.floor_share : 1;
    double matched = present > 0 ? held_blocks / present * size->block_tokens : 0;
    return (struct node_held){
        .prompt = size->prompt_tokens,
        .matched = matched < size->prompt_tokens ? matched : size->prompt_tokens,
        .present = present,
        .all = request->chain && !request->chain->chunks && r->lengths[k] > 0 &&
               r->lengths[k] == request->chain->length,
        .block = node_replica_block_tokens(replica),
        .share = replica->evidence.share,
    };
}

/* --- what was recorded, believed or not --------------------------------------------------------
 */

static bool recorded(const struct node_router *r, const struct chain *chain, unsigned point,
                     unsigned k, uint32_t *generation)
{
    const struct chain_point *p = &chain->points[point];
    return crdt_index_get(r->index, p->id, k, p->code, generation) == ERR_OK;
}

/* Points of the prompt's start that were ever recorded there, `known` at least. */
static unsigned recorded_length(const struct node_router *r, const struct chain *chain, unsigned k,
                                unsigned known)
{
    unsigned low = known, high = chain->length;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        uint32_t generation;
        if (recorded(r, chain, middle, k, &generation))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first point before `end` that was used last when the last one was. */
static unsigned part_begin(const struct node_router *r, const struct chain *chain, unsigned k,
                           unsigned end, uint32_t *generation)
{
    if (!recorded(r, chain, end - 1, k, generation))
        return end; /* a hole: the index was full */
    unsigned low = 0, high = end - 1;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        uint32_t found = 0;
        if (recorded(r, chain, middle, k, &found) && found <= *generation)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static uint32_t blocks_before(const struct chain *chain, unsigned point)
{
    return point == 0 ? 0 : chain->points[point - 1].blocks;
}

/* A prompt's parts were used last at a few times: the system prompt a moment ago, by all, its own
 * history when its last turn came. The oldest is the last. */
void node_router_reach(const struct node_router *r, unsigned k, const struct chain *chain,
                       double token_scale, struct node_reach *out)
{
    *out = (struct node_reach){0};
    unsigned end = recorded_length(r, chain, k, r->lengths[k]);
    double unit = reported_blocks(r, &r->replicas[k]);
    struct crdt_index_ring ring = crdt_index_ring(r->index, k);
    struct node_part parts[NODE_PARTS_MAX];
    unsigned count = 0;
    while (end > 0 && count < NODE_PARTS_MAX) {
        uint32_t generation;
        unsigned begin = part_begin(r, chain, k, end, &generation);
        if (begin == end)
            break;
        if (count == NODE_PARTS_MAX - 1)
            begin = 0;
        double newer, among;
        node_belief_depth(&ring, generation, &newer, &among);
        uint32_t blocks = chain->points[end - 1].blocks - blocks_before(chain, begin);
        parts[count++] = (struct node_part){
            .tokens = (float)(blocks * token_scale),
            .from = (float)(newer / unit),
            .to = (float)((newer + among) / unit),
        };
        end = begin;
    }
    out->count = count;
    for (unsigned i = 0; i < count; i++)
        out->parts[i] = parts[count - 1 - i];
}
