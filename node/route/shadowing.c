/* Choices in shadow mode and with a control group: the policy that routes a request, and the choice
 * of the router's own policy. */
#include "base/err.h"
#include "node/replica/constants.h"
#include "node/route/shade.h"

const struct node_policy *node_router_routed_by(const struct node_router *r,
                                                const struct node_request *request)
{
    bool control = request->conversation != 0 &&
                   node_shadow_is_control(request->conversation, r->config.control_share);
    return r->config.shadow || control ? r->plain : r->policy;
}

bool node_router_wants_session(const struct node_router *r)
{
    bool plain = r->config.shadow || r->config.control_share > 0;
    return r->policy->wants_session || node_router_wants_conversation(r) ||
           (plain && r->plain->wants_session);
}

bool node_router_wants_conversation(const struct node_router *r)
{
    return !r->config.shadow && r->config.control_share > 0;
}

static uint32_t to_u32(double x)
{
    return x <= 0 ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

/* From now on the prompt counts as cached at the replica. */
static void record(struct node_router *r, const struct chain *chain, struct node_work *work)
{
    unsigned k = work->replica;
    uint64_t before = crdt_index_blocks_total(r->index, k);
    DISCARD(crdt_state_observe(r->crdt, chain, k)); /* a full index learns less */
    uint64_t after = crdt_index_blocks_total(r->index, k);
    node_belief_moved(&r->replicas[k].belief);
    work->fresh_blocks = after > before ? (uint32_t)(after - before) : 0;
    work->prompt_id = chain->points[chain->length - 1].id;
}

/* Books and records the choice `own` of the router's own policy. Call between
 * node_router_shadow_enter() and node_router_shadow_leave(). */
static int book(struct node_router *r, const struct node_candidate *own,
                const struct node_size *size, const struct chain *chain, uint64_t now_ms,
                struct node_booking *out)
{
    double tier = (double)own->tier_tokens * node_ratio_value(&r->restore);
    struct node_work work = {
        .replica = own->replica,
        .model = size->model,
        .prompt_tokens = to_u32(size->prompt_tokens),
        .prefill_tokens = to_u32(size->prompt_tokens - (double)own->cached_tokens + tier +
                                 own->load_s * own->tokens_per_s),
        .context_tokens = to_u32(size->prompt_tokens + size->output_tokens / 2),
        .generation = node_router_ring(r, own->replica).newest,
        .by_time = true,
    };
    struct node_load *load = &r->replicas[own->replica].load;
    int err = node_bookings_open(r->bookings, load, &work, now_ms, out);
    if (err == ERR_OK && chain && chain->length > 0)
        record(r, chain, &node_bookings_get(r->bookings, *out)->work);
    return err;
}

void node_router_shadow_place(struct node_router *r, const struct node_request *given,
                              uint64_t now_ms, const struct node_decision *placed)
{
    struct node_work *work = &node_bookings_get(r->bookings, placed->booking)->work;
    struct node_request request = *given;
    struct node_need need = node_router_need(r, given);
    struct node_size size;
    struct node_booking booking;
    if (!node_router_shadow_enter(r, &request))
        return;
    int err = node_router_evaluate(r, &request, &need, NULL, true, now_ms, &size);
    const struct node_candidate *own = NULL;
    if (err == ERR_OK) {
        own = &r->candidates[node_router_choose(r, &request, r->policy)];
        err = book(r, own, &size, request.chain, now_ms, &booking);
    }
    node_router_shadow_leave(r);
    if (err != ERR_OK)
        return;
    bool timed = r->replicas[own->replica].shown.rate.samples >= NODE_LEARNED_FEW;
    work->shadow = (struct node_work_shadow){.booking = booking,
                                             .moved = own->replica != placed->replica,
                                             .prompt_tokens = to_u32(size.prompt_tokens),
                                             .cached_tokens = to_u32((double)own->cached_tokens),
                                             .ttft_s = timed ? own->ttft_s : 0};
    if (r->deepest.id != 0)
        node_followers_note(&r->followers, r->deepest.id, now_ms);
    node_router_placed(r, own->cost.uncached_s, now_ms);
    node_fading_add(&r->slots[own->replica].placed_tokens, size.prompt_tokens, RULE(HALF_LIFE_MS),
                    now_ms);
    node_router_decision_shadow(r, placed->number, own->replica);
}
