/* The engines' rendering of a client's prompts: learned here, and shared with the other routers
 * (node/replica/renderings.h).
 *
 * Routers must read prompts alike, or no router finds another's records. So a learned rendering is
 * a binding in the shared index, from the kind and the rendering to the replica whose answer taught
 * the rendering. The newest binding counts; among equally new bindings all routers choose the
 * same. */
#include "base/checkpoint.h"
#include "node/route/router_internal.h"

#include "base/check.h"

enum {
    LOOK_MS = 100,         /* interval between look-ups of others' bindings, while the kind of
                            * client is in use */
    TELL_GENERATIONS = 16, /* interval between publications of a binding by this router */
    AGAIN_MAX = 64,        /* most prompts recorded again under a new rendering */
    BINDING_TAG = 0x72656e64,
    LATE_TAG = 0x6c617465,
};

static uint64_t binding_id(const struct node_router *r, const struct node_client_kind *k,
                           uint8_t code)
{
    const uint64_t words[] = {k->key, code, BINDING_TAG};
    return hash64(&r->common->secret, words, sizeof words);
}

static void tell(struct node_router *r, struct node_client_kind *k)
{
    if (k->replica >= r->replica_count || r->replicas[k->replica].absent)
        return;
    /* If the index is full, the other routers learn the rendering themselves. */
    DISCARD(crdt_state_bind(r->crdt, binding_id(r, k, rendering_code(k->rendering)), k->replica));
    k->generation = crdt_index_now(r->index);
}

static void record_again(void *context, const struct chain *chain, unsigned replica)
{
    struct node_router *r = context;
    if (replica >= r->replica_count || r->replicas[replica].absent)
        return;
    DISCARD(crdt_state_observe(r->crdt, chain, replica));
    node_belief_moved(&r->replicas[replica].belief);
}

/* Records recent prompts again, under the new rendering. */
static void follow(struct node_router *r, const struct node_client_kind *k)
{
    node_renderings_each(r->renderings, k, AGAIN_MAX, record_again, r);
}

/* The rendering that is known without answers. SGLang shows Claude Code's header to the model, vLLM
 * does not: the more frequent of the two engines counts. */
static struct rendering known_of(const struct node_router *r, struct slice model)
{
    struct node_replica_set serving;
    unsigned vllm = 0, sglang = 0;
    node_models_serving(r->models, model, &serving);
    for (unsigned i = 0; i < r->replica_count; i++) {
        if (r->replicas[i].absent || !node_replica_set_has(&serving, i))
            continue;
        vllm += r->replicas[i].engine == NODE_ENGINE_VLLM;
        sglang += r->replicas[i].engine == NODE_ENGINE_SGLANG;
    }
    return (struct rendering){.counts_header = sglang > vllm};
}

/* Adopts the newest rendering that any router published. Returns true if this changed the
 * rendering. */
static bool adopt(struct node_router *r, struct node_client_kind *k, uint64_t now_ms)
{
    uint8_t own = rendering_code(k->rendering), newest = own;
    uint32_t generation = k->generation;
    unsigned replica = k->replica;
    k->looked_ms = now_ms;
    for (unsigned i = 0; i < RENDERING_CODES; i++) {
        uint8_t code = (uint8_t)i;
        unsigned slot;
        uint32_t when;
        if (rendering_of(code).lead >= RENDERING_LEADS ||
            crdt_index_newest(r->index, binding_id(r, k, code), CHECKPOINT_CODE_BINDING, &slot,
                              &when) != ERR_OK ||
            when < generation || (when == generation && code < newest))
            continue;
        newest = code;
        generation = when;
        replica = slot;
    }
    if (newest == own)
        return false;
    node_renderings_set(r->renderings, k, rendering_of(newest), NODE_RENDERING_ROUTER);
    k->generation = generation;
    k->replica = (uint16_t)replica;
    follow(r, k);
    return true;
}

void node_router_renderings_tick(struct node_router *r, uint64_t now_ms)
{
    for (unsigned i = 0; i < NODE_KINDS_MAX; i++) {
        struct node_client_kind *k = node_renderings_kind_at(r->renderings, i);
        if (k->key != 0 && k->watch > 0)
            (void)adopt(r, k, now_ms);
    }
}

static void look(struct node_router *r, struct node_client_kind *k, struct slice model,
                 uint64_t now_ms)
{
    if (adopt(r, k, now_ms))
        return;
    if (k->from == NODE_RENDERING_KNOWN)
        k->rendering = known_of(r, model);
    else if (crdt_index_now(r->index) >= k->generation + TELL_GENERATIONS)
        tell(r, k);
}

/* True if the prompt has a part that engines render differently. */
static bool has_choice(const struct http_prompt_form *form)
{
    const unsigned plain = 1U << HTTP_PROMPT_SYSTEM | 1U << HTTP_PROMPT_TEXT;
    return (form->filled & ~plain) != 0 || (form->arguments.low | form->arguments.high) != 0 ||
           http_prompt_has_late(form);
}

static uint64_t late_id(const struct node_router *r, const struct node_client_kind *k,
                        const struct http_prompt_form *form)
{
    const uint64_t words[] = {k->key, form->late.low, form->late.high, LATE_TAG};
    return hash64(&r->common->secret, words, sizeof words);
}

void node_router_late_sent(struct node_router *r, struct node_rendered *what, unsigned k)
{
    uint32_t generation;
    if (what->late == 0)
        return;
    what->late_new =
        crdt_index_get(r->index, what->late, k, CHECKPOINT_CODE_BINDING, &generation) != ERR_OK;
    DISCARD(crdt_state_bind(r->crdt, what->late, k)); /* in a full index the message will be new
                                                       * again */
}

void node_router_render(struct node_router *r, const struct node_client *client, struct slice model,
                        const struct http_prompt_form *form, const struct chain *points,
                        uint64_t now_ms, struct node_rendered *out)
{
    *out = (struct node_rendered){.key = 0};
    if (points->chunks || !has_choice(form))
        return;
    node_router_clock(r, now_ms);
    struct node_client_kind *k =
        node_renderings_kind(r->renderings, client->agent, client->form, model, now_ms);
    if (k->looked_ms == 0 || now_ms >= k->looked_ms + LOOK_MS)
        look(r, k, model, now_ms);
    *out = node_renderings_of(k);
    if (http_prompt_has_late(form))
        out->late = late_id(r, k, form);
    node_renderings_print(r->renderings, k, form, points, out);
}

void node_router_render_shown(struct node_router *r, struct slice model, struct node_rendered *out)
{
    const struct node_client_kind *k = node_renderings_latest(r->renderings, model);
    *out =
        k != NULL ? node_renderings_of(k) : (struct node_rendered){.rendering = known_of(r, model)};
}

void node_router_rendering_learn(struct node_router *r, const struct node_work *work,
                                 const struct node_rendered_answer *answer)
{
    if (!node_renderings_answered(r->renderings, &work->rendered, answer))
        return;
    struct node_client_kind *k = node_renderings_find(r->renderings, work->rendered.key);
    k->replica = (uint16_t)work->replica;
    tell(r, k);
    follow(r, k);
}
