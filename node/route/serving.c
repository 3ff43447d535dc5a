/* Which replicas are asked for a request, by their models; and which of them have a context that is
 * long enough (docs/adr/0052).
 *
 * The router does not have the tokenizer. It knows how many tokens a prompt has about, and how sure
 * that is (node/replica/tokens.h). So there are three cases for each replica whose context length
 * is known: the request fits; it may fit; it is too long even if it has as few tokens as it may
 * have at all. */
#include <math.h>

#include "base/number.h"
#include "node/route/router_internal.h"

static bool any_present(const struct node_router *r, const struct node_replica_set *set)
{
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (!r->replicas[k].absent && node_replica_set_has(set, k))
            return true;
    }
    return false;
}

/* The replicas that serve the model, or its base and may know the adapter in the name. vLLM lists
 * its adapters by their whole names. */
static void serving_find(const struct node_router *r, struct slice model,
                         struct node_replica_set *out)
{
    node_models_serving(r->models, model, out);
    struct slice base = node_models_base(r->models, model);
    if (base.len > 0) {
        struct node_replica_set with_base;
        node_models_serving(r->models, base, &with_base);
        for (unsigned k = 0; k < r->replica_count; k++) {
            if (node_replica_set_has(&with_base, k) && r->replicas[k].engine != NODE_ENGINE_VLLM)
                node_replica_set_add(out, k);
        }
    }
}

static void takers_of_any_name(const struct node_router *r, struct node_replica_set *out)
{
    *out = (struct node_replica_set){0};
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].engine == NODE_ENGINE_SGLANG)
            node_replica_set_add(out, k);
    }
}

void node_router_asked_find(const struct node_router *r, const struct node_request *request,
                            uint64_t now_ms, struct node_replica_set *out)
{
    struct node_replica_set serving, any;
    serving_find(r, request->model, &serving);
    *out = serving;
    node_models_denied_remove(r->models, request->model, r->replica_count, now_ms, out);
    if (any_present(r, out))
        return;
    takers_of_any_name(r, &any);
    if (any_present(r, &any))
        *out = any;
    else if (!request->model_likely)
        *out = serving;
}

bool node_router_denied_too(const struct node_router *r, const struct node_request *request,
                            struct node_replica_set *set)
{
    struct node_replica_set serving;
    bool any = false;
    if (request->replica_wanted >= 0 || request->model_likely)
        return false;
    serving_find(r, request->model, &serving);
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].absent || !node_replica_set_has(&serving, k) ||
            node_replica_set_has(set, k) || !node_models_listed(r->models, k))
            continue;
        node_replica_set_add(set, k);
        any = true;
    }
    return any;
}

/* The replicas that are known to serve the model, or its base. */
static void surely_find(const struct node_router *r, struct slice model,
                        struct node_replica_set *out)
{
    struct slice base = node_models_base(r->models, model);
    struct node_replica_set with_base;
    node_models_surely(r->models, model, out);
    if (base.len == 0)
        return;
    node_models_surely(r->models, base, &with_base);
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (node_replica_set_has(&with_base, k) && r->replicas[k].engine != NODE_ENGINE_VLLM)
            node_replica_set_add(out, k);
    }
}

static bool any_up_listed(const struct node_router *r)
{
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *replica = &r->replicas[k];
        if (!replica->absent && replica->health == NODE_HEALTH_UP &&
            node_models_listed(r->models, k))
            return true;
    }
    return false;
}

bool node_router_is_guess(const struct node_router *r, const struct node_request *request,
                          unsigned server)
{
    struct node_replica_set surely;
    if (node_models_listed(r->models, server) || request->model.len == 0 ||
        request->replica_wanted >= 0 || !any_up_listed(r))
        return false;
    surely_find(r, request->model, &surely);
    return !any_present(r, &surely);
}

bool node_router_may_come(const struct node_router *r, unsigned replica,
                          const struct node_request *request)
{
    unsigned server = node_router_server(r, replica);
    struct node_replica_set surely;
    if (r->replicas[server].health != NODE_HEALTH_DOWN || request->model.len == 0 ||
        request->replica_wanted >= 0 || node_models_listed(r->models, server) || !any_up_listed(r))
        return true;
    surely_find(r, request->model, &surely);
    return node_replica_set_has(&surely, server);
}

bool node_router_is_unknown(const struct node_router *r, const struct node_request *request,
                            const struct node_replica_set *serving)
{
    bool any = false;
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].absent || r->replicas[k].health == NODE_HEALTH_ROUTER)
            continue;
        if (node_replica_set_has(serving, k) && node_router_may_come(r, k, request))
            return false;
        any = true;
    }
    if (!any || request->model.len == 0)
        return false;
    return r->sources == NULL ||
           !(discover_names_model(r->sources, request->model, request->model_likely) ||
             discover_may_have(r->sources));
}

/* --- whether it fits ------------------------------------------------------------------------- */

/* Standard deviations by which an estimate may be too high, or too low. What is taken for too long
 * is not sent there as long as another replica will do, so that takes more. */
static const double surely_deviations = 3, likely_deviations = 2;

/* A prompt has no more tokens than this for each byte (digits of old tokenizers have 1.4), and its
 * template no more than these. */
enum { TOKENS_PER_BYTE = 2, TEMPLATE_TOKENS = 512, TOKEN_ID_BYTES = 4 };

static uint32_t context_of(const struct node_router *r, unsigned replica)
{
    return node_replica_context(node_router_process_at(r, replica));
}

void node_router_contexts_follow(struct node_router *r)
{
    r->context_least = 0;
    for (unsigned k = 0; k < r->replica_count; k++) {
        uint32_t context = node_replica_context(&r->replicas[k]);
        if (context > 0 && (r->context_least == 0 || context < r->context_least))
            r->context_least = context;
    }
}

void node_router_context_listed(struct node_router *r, unsigned replica, uint32_t tokens)
{
    node_router_replica_at(r, replica)->context_listed = tokens;
    node_router_contexts_follow(r);
}

void node_router_context_told(struct node_router *r, unsigned replica, uint32_t tokens)
{
    node_router_replica_at(r, replica)->context_told = tokens;
    node_router_contexts_follow(r);
}

uint32_t node_router_context(const struct node_router *r, unsigned replica)
{
    return context_of(r, replica);
}

static uint32_t tokens_of(double tokens)
{
    return tokens < UINT32_MAX / 2 ? (uint32_t)tokens : UINT32_MAX / 2;
}

struct node_need node_router_need(const struct node_router *r, const struct node_request *request)
{
    const struct chain *chain = request->chain;
    struct node_need need = {.over = request->context_over};
    if (request->too_long)
        need.most = UINT32_MAX;
    if (r->context_least == 0 || chain == NULL)
        return need;
    uint32_t answer = request->output_tokens_max > 0 ? request->output_tokens_max : 1;
    uint64_t at_most = chain->bytes * TOKENS_PER_BYTE + TEMPLATE_TOKENS + answer;
    if (chain_media(&chain->content) == 0 && at_most <= r->context_least)
        return need;
    const struct node_model *row = node_models_row(r->models, request->model);
    double tokens = (double)chain->bytes / TOKEN_ID_BYTES, deviation = 0;
    if (!chain->token_ids) {
        tokens = node_tokens_of(&row->tokens, chain->bytes, &chain->content, NULL);
        deviation = node_tokens_deviation(&row->tokens, chain->bytes, &chain->content);
    }
    need.least = tokens_of(tokens * exp(-surely_deviations * deviation)) + answer;
    if (!request->too_long)
        need.most = tokens_of(tokens * exp(likely_deviations * deviation)) + answer;
    return need;
}

enum node_fit node_router_fit(const struct node_router *r, unsigned replica,
                              const struct node_need *need)
{
    uint32_t context = context_of(r, replica);
    if (context == 0) /* believed to be no shorter than any that is known */
        return need->most > r->context_least ? NODE_FIT_UNKNOWN : NODE_FIT_WELL;
    if (context <= need->over || need->least > context)
        return NODE_FIT_NOT;
    return need->most > context ? NODE_FIT_MAYBE : NODE_FIT_WELL;
}

bool node_router_fit_keep(const struct node_router *r, const struct node_need *need,
                          struct node_replica_set *set)
{
    if (need->over == 0 && need->least <= r->context_least)
        return false;
    struct node_replica_set fit = *set;
    bool cut = false;
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (!node_replica_set_has(set, k) || node_router_fit(r, k, need) != NODE_FIT_NOT)
            continue;
        node_replica_set_remove(&fit, k);
        cut |= !r->replicas[k].absent;
    }
    if (!cut || (need->over == 0 && !any_present(r, &fit)))
        return false;
    *set = fit;
    return true;
}

void node_router_candidates_fit(struct node_router *r, const struct node_need *need)
{
    enum node_fit best = NODE_FIT_NOT;
    uint32_t longest = 0;
    unsigned left = 0;
    if (need->most <= r->context_least && need->over == 0)
        return;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        enum node_fit fit = node_router_fit(r, r->candidates[i].replica, need);
        uint32_t context = context_of(r, r->candidates[i].replica);
        best = fit > best ? fit : best;
        longest = context > longest ? context : longest;
    }
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned k = r->candidates[i].replica;
        bool kept = best >= NODE_FIT_UNKNOWN ? node_router_fit(r, k, need) == best
                                             : context_of(r, k) == longest;
        if (kept)
            r->candidates[left++].replica = k;
    }
    r->candidate_count = left;
}

enum node_longer node_router_longer(struct node_router *r, const struct node_request *request,
                                    unsigned replica, uint64_t now_ms)
{
    struct node_replica_set serving;
    struct node_need need = node_router_need(r, request);
    unsigned server = node_router_server(r, replica);
    uint32_t here = context_of(r, replica);
    enum node_longer longer = NODE_LONGER_NONE;
    if (request->replica_wanted >= 0)
        return longer;
    node_router_asked_find(r, request, now_ms, &serving);
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *other = &r->replicas[k];
        uint32_t there = context_of(r, k);
        bool shorter = here > 0 && there > 0 && there <= here;
        if (other->absent || k == server || other->is_rank || shorter ||
            other->health == NODE_HEALTH_ROUTER || !node_replica_set_has(&serving, k))
            continue;
        if (here > 0 && there > 0 && need.least <= there)
            return NODE_LONGER_SURELY;
        longer = NODE_LONGER_MAYBE;
    }
    return longer;
}

bool node_router_context_doubted(const struct node_router *r, const struct node_request *request,
                                 unsigned replica)
{
    struct node_need need = node_router_need(r, request);
    return context_of(r, replica) > 0 && node_router_fit(r, replica, &need) == NODE_FIT_WELL;
}
