/* The replicas to ask for a request: by their models, and by the context length (docs/adr/0052).
 *
 * The router does not have the tokenizer. A prompt's number of tokens is known only approximately,
 * with a standard deviation (node/replica/tokens.h). So at a replica with a known context length
 * there are three cases: the request fits, may fit, or is too long even at the lowest possible
 * number of tokens. */
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

/* The replicas that serve the model, or serve the base of the name and may know the adapter. vLLM
 * lists adapters by their whole names. */
static struct node_servers servers_of(const struct node_router *r, struct slice model)
{
    struct node_servers s = {.surely = *node_models_surely(r->models, model)};
    struct slice base = node_models_base(r->models, model);
    node_models_serving(r->models, model, &s.may);
    if (base.len == 0)
        return s;
    const struct node_replica_set *surely = node_models_surely(r->models, base);
    struct node_replica_set may;
    node_models_serving(r->models, base, &may);
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].engine == NODE_ENGINE_VLLM)
            continue;
        if (node_replica_set_has(surely, k))
            node_replica_set_add(&s.surely, k);
        if (node_replica_set_has(&may, k))
            node_replica_set_add(&s.may, k);
    }
    return s;
}

bool node_router_replica_serves(const struct node_router *r, unsigned replica, struct slice model)
{
    struct node_servers s = servers_of(r, model);
    return node_replica_set_has(&s.surely, replica);
}

bool node_router_model_known(const struct node_router *r, struct slice model)
{
    return any_present(r, node_models_surely(r->models, model));
}

/* True if a label names the model. */
static bool is_named(const struct node_router *r, const struct node_request *request)
{
    return r->sources != NULL && request->model.len > 0 &&
           discover_names_model(r->sources, request->model, request->model_likely);
}

/* If a label names the model, removes SGLang engines from s->may that may serve any name: those
 * without a list of models, or with adapters on demand. The model belongs to the labelled replica.
 * Engines known to serve the model stay. */
static void named_elsewhere_remove(const struct node_router *r, const struct node_request *request,
                                   struct node_servers *s)
{
    struct node_replica_set left = s->may;
    bool any = false;
    for (unsigned k = 0; k < r->replica_count; k++) {
        bool sure = node_replica_set_has(&s->surely, k) || !node_replica_set_has(&s->may, k);
        if (sure || r->replicas[k].engine != NODE_ENGINE_SGLANG)
            continue;
        node_replica_set_remove(&left, k);
        any = true;
    }
    if (any && is_named(r, request)) /* few fleets have such an engine */
        s->may = left;
}

void node_router_servers_find(struct node_router *r, const struct node_request *request,
                              uint64_t now_ms)
{
    struct node_servers *s = &r->servers;
    r->guesses = (struct node_replica_set){0};
    if (request->replica_wanted >= 0) { /* whatever models the replica serves */
        struct node_replica_set wanted = {0};
        if ((unsigned)request->replica_wanted < r->replica_count)
            node_replica_set_add(&wanted, r->replicas[request->replica_wanted].rank.server);
        *s = (struct node_servers){wanted, wanted, wanted};
        return;
    }
    *s = servers_of(r, request->model);
    if (request->model.len == 0)
        s->surely = s->may;
    named_elsewhere_remove(r, request, s);
    s->asked = s->may;
    for (unsigned k = 0; k < r->replica_count && node_models_denied_any(r->models); k++) {
        if (node_models_denied(r->models, k, request->model, now_ms))
            node_replica_set_remove(&s->asked, k);
    }
    if (any_present(r, &s->asked))
        return;
    struct node_replica_set any_name = {0};
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].engine == NODE_ENGINE_SGLANG)
            node_replica_set_add(&any_name, k);
    }
    if (any_present(r, &any_name) && !is_named(r, request))
        s->asked = any_name;
    else if (!request->model_likely)
        s->asked = s->may;
}

bool node_router_denied_too(const struct node_router *r, const struct node_request *request,
                            struct node_replica_set *set)
{
    bool any = false;
    for (unsigned k = 0; k < r->replica_count && !request->model_likely; k++) {
        if (r->replicas[k].absent || !node_replica_set_has(&r->servers.may, k) ||
            node_replica_set_has(set, k) || !node_models_listed(r->models, k))
            continue;
        node_replica_set_add(set, k);
        any = true;
    }
    return any;
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
    if (node_models_listed(r->models, server) || request->model.len == 0 ||
        request->replica_wanted >= 0 || !any_up_listed(r))
        return false;
    struct node_servers s = servers_of(r, request->model);
    return !any_present(r, &s.surely);
}

/* Milliseconds between two guessed requests to a replica. If the replica is no engine, each guess
 * costs another attempt. If the replica serves the model, the first accepted request proves it. */
enum { GUESS_EVERY_MS = 1000 };

static bool may_guess(const struct node_slot *s, const struct node_request *request,
                      uint64_t now_ms)
{
    return !request->no_guess && (s->guessed_ms == 0 || now_ms >= s->guessed_ms + GUESS_EVERY_MS);
}

/* True if some candidate lists the model. If no candidate does, all that may serve it are equal. */
static bool any_lists(const struct node_router *r)
{
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned server = node_router_server(r, r->candidates[i].replica);
        if (node_replica_set_has(&r->servers.surely, server) &&
            node_models_listed(r->models, server))
            return true;
    }
    return false;
}

/* True if a request for the model to this replica would be a guess: the replica has no list of
 * models, and no answer showed the model. False for SGLang, which serves any requested name, so
 * that answers show nothing. */
static bool is_unproven(const struct node_router *r, unsigned server)
{
    return !node_replica_set_has(&r->servers.surely, server) &&
           !node_models_listed(r->models, server) &&
           r->replicas[server].engine != NODE_ENGINE_SGLANG;
}

bool node_router_is_unsure(const struct node_router *r, unsigned server)
{
    return is_unproven(r, server) && any_lists(r);
}

void node_router_candidates_sure(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms)
{
    unsigned left = 0;
    r->guesses = (struct node_replica_set){0};
    if (!any_lists(r))
        return;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned k = r->candidates[i].replica, server = node_router_server(r, k);
        bool guess = is_unproven(r, server);
        if (guess && !may_guess(&r->slots[server], request, now_ms))
            continue;
        if (guess)
            node_replica_set_add(&r->guesses, server);
        r->candidates[left++].replica = k;
    }
    r->candidate_count = left;
}

bool node_router_may_come(const struct node_router *r, unsigned replica)
{
    unsigned server = node_router_server(r, replica);
    return r->replicas[server].health != NODE_HEALTH_DOWN ||
           node_replica_set_has(&r->servers.surely, server) ||
           node_models_listed(r->models, server) || !any_up_listed(r);
}

bool node_router_is_unknown(const struct node_router *r, const struct node_request *request)
{
    bool any = false;
    if (request->replica_wanted >= 0)
        return false;
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].absent || r->replicas[k].health == NODE_HEALTH_ROUTER)
            continue;
        if (node_replica_set_has(&r->servers.asked, k) && node_router_may_come(r, k))
            return false;
        any = true;
    }
    return any && request->model.len > 0 &&
           (r->sources == NULL || !(is_named(r, request) || discover_may_have(r->sources)));
}

bool node_router_model_away(const struct node_router *r, struct slice model)
{
    struct node_servers s = servers_of(r, model);
    bool known = false;
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (r->replicas[k].absent || !node_replica_set_has(&s.surely, k))
            continue;
        if (r->replicas[k].health == NODE_HEALTH_UP)
            return false;
        known |= r->replicas[k].health != NODE_HEALTH_ROUTER;
    }
    return known || (r->sources != NULL && (discover_names_model(r->sources, model, false) ||
                                            discover_may_have(r->sources)));
}

/* --- context length -------------------------------------------------------------------------- */

/* Standard deviations by which an estimate may be too high (surely) or too low (likely). Leaving
 * out a replica as too small for the prompt requires more certainty than preferring a longer
 * context. */
static const double surely_deviations = 3, likely_deviations = 2;

/* Upper limits: tokens per byte of a prompt (digits of old tokenizers have 1.4), and tokens of a
 * chat template. */
enum { TOKENS_PER_BYTE = 2, TEMPLATE_TOKENS = 512, TOKEN_ID_BYTES = 4 };

uint32_t node_router_context(const struct node_router *r, unsigned replica)
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

bool node_router_context_listed(struct node_router *r, unsigned replica, uint32_t tokens)
{
    bool other = node_replica_context_listed(node_router_replica_at(r, replica), tokens);
    node_router_contexts_follow(r);
    return other;
}

void node_router_context_told(struct node_router *r, unsigned replica, uint32_t tokens)
{
    node_replica_context_info(node_router_replica_at(r, replica), tokens);
    node_router_contexts_follow(r);
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
    uint32_t context = node_router_context(r, replica);
    if (context == 0) /* assumed to be at least the shortest known context */
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

/* A number for the order of candidates: highest for a fitting context, next for an unknown context,
 * and then higher for a longer context. */
static uint64_t fit_rank(const struct node_router *r, unsigned replica,
                         const struct node_need *need)
{
    enum node_fit fit = node_router_fit(r, replica, need);
    return fit >= NODE_FIT_UNKNOWN ? (uint64_t)UINT32_MAX + fit : node_router_context(r, replica);
}

void node_router_candidates_fit(struct node_router *r, const struct node_need *need)
{
    uint64_t best = 0;
    unsigned left = 0;
    if (need->most <= r->context_least && need->over == 0)
        return;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        uint64_t rank = fit_rank(r, r->candidates[i].replica, need);
        best = rank > best ? rank : best;
    }
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned k = r->candidates[i].replica;
        if (fit_rank(r, k, need) == best)
            r->candidates[left++].replica = k;
    }
    r->candidate_count = left;
}

enum node_longer node_router_longer(struct node_router *r, const struct node_request *request,
                                    unsigned replica, uint64_t now_ms)
{
    struct node_need need = node_router_need(r, request);
    unsigned server = node_router_server(r, replica);
    uint32_t here = node_router_context(r, replica);
    enum node_longer longer = NODE_LONGER_NONE;
    if (request->replica_wanted >= 0)
        return longer;
    node_router_servers_find(r, request, now_ms);
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *other = &r->replicas[k];
        uint32_t there = node_router_context(r, k);
        bool shorter = here > 0 && there > 0 && there <= here;
        if (other->absent || k == server || other->rank.is_one ||
            other->health == NODE_HEALTH_ROUTER || !node_replica_set_has(&r->servers.asked, k))
            continue;
        if (here > 0 && there > here && need.least <= there)
            return NODE_LONGER_SURELY;
        bool told = other->said.context_tokens > 0 || other->health != NODE_HEALTH_UP;
        if (!shorter)
            longer = NODE_LONGER_MAYBE;
        else if (longer == NODE_LONGER_NONE && !told)
            longer = NODE_LONGER_IF_ANEW;
    }
    return longer;
}

bool node_router_context_doubted(const struct node_router *r, const struct node_request *request,
                                 unsigned replica)
{
    struct node_need need = node_router_need(r, request);
    return node_router_context(r, replica) > 0 &&
           node_router_fit(r, replica, &need) == NODE_FIT_WELL;
}
