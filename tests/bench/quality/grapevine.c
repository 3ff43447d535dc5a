/* Grapevine's own routers: whole nodes in a world of virtual time, as daemons without options. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/model.h"
#include "node/route/discovered.h"
#include "node/route/policy.h"
#include "tests/bench/quality/chooser.h"
#include "tests/bench/quality/subscribers.h"
#include "tests/lib/alone.h"

struct mind {
    struct world world;
    int slots[ROUTERS_MAX][ENGINES_MAX]; /* each engine's slot in a router's table */
    unsigned engines[ROUTERS_MAX][NODE_REPLICAS_MAX];
    struct subscribers *subscribers; /* NULL: no router reads events */
    unsigned ended;                  /* requests */
    struct node_shadow_sums before;  /* of shadow mode, over the first half */
};

static struct subscribers *subscribers_of(const struct play *p)
{
    return ((struct mind *)p->mind)->subscribers;
}

static struct world *world_of(const struct play *p)
{
    return &((struct mind *)p->mind)->world;
}

static unsigned slot_of(const struct play *p, unsigned router, unsigned engine)
{
    return (unsigned)((struct mind *)p->mind)->slots[router][engine];
}

static struct node_router *router_at(const struct play *p, unsigned number)
{
    return world_of(p)->nodes[number].node->router;
}

static const struct hash_secret *secret_of(const struct play *p, unsigned router)
{
    return &node_state_config_of(world_of(p)->nodes[router].node->state)->secret;
}

/* Brings the routers' time up to the engines'. */
static uint64_t routers_now_ms(struct play *p)
{
    world_run_until(world_of(p), p->now_ns / 1000);
    return world_ms(world_of(p));
}

/* Lists the models as the engine's /v1/models. */
static void models_list(struct play *p, struct node_router *r, unsigned slot)
{
    enum { MODELS_MAX = 512 };
    static char names[MODELS_MAX][24];
    struct slice ids[MODELS_MAX] = {slice_of_cstr("base")};
    uint32_t count = workload_adapter_count(p->setup->work);
    CHECK(count < MODELS_MAX);
    if (count == 0)
        return;
    for (uint32_t i = 1; i <= count; i++) {
        (void)snprintf(names[i], sizeof names[i], "adapter-%u", i);
        ids[i] = slice_of_cstr(names[i]);
    }
    CHECK(node_router_models(r, slot, ids, count + 1) == ERR_OK);
    for (uint32_t i = 1; i <= count; i++)
        node_models_adapter(node_router_model_table(r), ids[i], ids[0]);
}

/* Labels give the tiers that an engine does not report. */
static void tier_label(struct play *p, struct node_router *r, struct slice name, unsigned engine)
{
    const struct sim_model_config *m = &p->engines[engine].spec->model;
    char text[64];
    struct node_labels labels;
    if (m->tier_blocks == 0)
        return;
    int len = snprintf(text, sizeof text, "cache-tokens=%llu",
                       ((unsigned long long)m->cache_blocks + m->tier_blocks) * m->block_tokens);
    CHECK(node_labels_parse(slice_of(text, (size_t)len), &labels) == NULL);
    struct discover_host host = node_router_discover_host(r);
    CHECK(host.use(host.context, name, &labels) == ERR_OK);
}

static unsigned ranks_of(const struct play *p)
{
    return p->setup->ranks > 0 ? p->setup->ranks : 1;
}

/* All ranks behind an address begin under the address's name: routers detect them. */
static void introduce(struct play *p, unsigned number, unsigned engine)
{
    char name[32];
    int len = snprintf(name, sizeof name, "replica-%u:8000", engine);
    int at = node_router_name(router_at(p, number), slice_of(name, (size_t)len), NODE_ENGINE_VLLM);
    CHECK(at >= 0);
    struct mind *m = p->mind;
    for (unsigned i = 0; i < ranks_of(p); i++)
        m->slots[number][engine + i] = at;
    m->engines[number][at] = engine;
    node_router_probed(router_at(p, number), (unsigned)at, (struct node_check){.ok = true},
                       world_ms(world_of(p)));
    models_list(p, router_at(p, number), (unsigned)at);
    tier_label(p, router_at(p, number), slice_of(name, (size_t)len), engine);
}

static void add(double *sum, double more)
{
    *sum = *sum < 0 || more < 0 ? -1 : *sum + more;
}

/* An address reports the sums of the ranks, and each rank by itself. */
static bool address_scrape(struct play *p, unsigned first, struct node_scrape *all,
                           struct node_scrape *ranks)
{
    for (unsigned i = 0; i < ranks_of(p); i++) {
        if (!engine_scrape(&p->engines[first + i], &ranks[i]))
            return false;
        const struct node_scrape *s = &ranks[i];
        if (i == 0) {
            *all = *s;
            continue;
        }
        add(&all->running, s->running);
        add(&all->waiting, s->waiting);
        add(&all->cache_tokens, s->cache_tokens);
        add(&all->prefix_queries, s->prefix_queries);
        add(&all->prefix_hits, s->prefix_hits);
        add(&all->prompt_tokens, s->prompt_tokens);
        add(&all->generation_tokens, s->generation_tokens);
        add(&all->prefill_s, s->prefill_s);
        add(&all->prefill_tokens, s->prefill_tokens);
        add(&all->steps, s->steps);
        add(&all->steps_s, s->steps_s);
        add(&all->preemptions, s->preemptions);
    }
    return true;
}

static void tick(struct play *p)
{
    uint64_t now_ms = routers_now_ms(p);
    unsigned ranks = p->setup->unpinned ? 1 : ranks_of(p);
    for (unsigned k = 0; k < p->engine_count; k += ranks_of(p)) {
        struct node_scrape s, each[NODE_RANKS_MAX];
        if (!address_scrape(p, k, &s, each))
            continue;
        for (unsigned i = 0; i < p->setup->routers; i++) {
            unsigned slot = slot_of(p, i, k);
            if (!node_scraped_due(node_router_replica(router_at(p, i), slot), SCRAPE_S * 1000,
                                  now_ms))
                continue;
            DISCARD(node_router_scraped(router_at(p, i), slot, &s, now_ms));
            if (ranks > 1)
                node_router_ranks_scraped(router_at(p, i), slot, each, ranks, now_ms);
        }
    }
    for (unsigned i = 0; i < p->setup->routers; i++)
        world_touch(&world_of(p)->nodes[i]);
}

static void open_routers(struct play *p)
{
    const struct quality_case *c = p->setup;
    struct node_config config = alone_config();
    config.router.policy = p->chooser->policy;
    config.router.shadow = c->shadow != NULL;
    if (c->shadow)
        config.router.plain_policy = c->shadow;
    config.router.control_share = c->control_share;
    config.router.seed = c->seed + c->router_seed;
    if (c->displaced_weight > 0)
        config.router.displaced_weight = c->displaced_weight;
    if (c->decode_weight > 0)
        config.router.decode_weight = c->decode_weight;
    if (c->generation_s > 0)
        config.state.generation_ms = (uint32_t)(c->generation_s * 1000);
    if (c->generation_s > 0) /* 450 generations, as by default */
        config.state.ttl_ms = 450 * config.state.generation_ms;
    p->mind = calloc(1, sizeof(struct mind));
    CHECK(p->mind != NULL);
    struct world *w = world_of(p);
    world_open(w, c->routers, c->seed);
    w->checks = false; /* once, at the end */
    w->net.delay_min_us = w->net.delay_max_us = (uint64_t)(c->delay_ms * 1000);
    world_configure(w, &config, c->routers > 1);
    world_start_all(w);
    w->net.loss = c->loss;
    for (unsigned i = 0; i < c->routers; i++) {
        for (unsigned k = 0; k < c->engines; k += ranks_of(p))
            introduce(p, i, k);
        world_touch(&w->nodes[i]);
    }
    p->now_ns = w->now_us * 1000;
    if (c->ranks > 0 || c->events)
        tick(p); /* a daemon reads metrics as soon as an engine is up */
    CHECK(!c->events || (c->ranks == 0 && c->replaced == 0));
    if (c->events)
        ((struct mind *)p->mind)->subscribers = subscribers_open(p, w);
}

static void moved(struct play *p, unsigned engine)
{
    if (subscribers_of(p) == NULL)
        return;
    DISCARD(routers_now_ms(p));
    subscribers_moved(subscribers_of(p), engine);
}

static void print_replicas(const struct play *p)
{
    struct buf text = {0};
    CHECK(node_router_replicas_json(router_at(p, 0), world_ms(world_of(p)), &text) == ERR_OK);
    fprintf(stderr, "%.*s\n", (int)text.len, text.at);
    buf_free(&text);
}

static struct node_shadow_sums shadow_sums(const struct play *p)
{
    struct node_shadow_sums sums = {0};
    for (unsigned i = 0; i < p->setup->routers; i++) {
        const struct node_shadow *s = node_router_shadow(router_at(p, i));
        node_shadow_sums_add(&sums, &s->totals[s->mode]);
    }
    return sums;
}

static void close_routers(struct play *p)
{
    for (unsigned i = 0; i < p->setup->routers; i++) {
        node_router_check(router_at(p, i));
    }
    p->out->shadow = shadow_sums(p);
    node_shadow_sums_subtract(&p->out->shadow, &((struct mind *)p->mind)->before);
    if (getenv("QUALITY_VERBOSE"))
        print_replicas(p);
    struct subscribers *subscribers = subscribers_of(p);
    p->out->gossip_bytes = (double)world_of(p)->net.bytes;
    if (subscribers != NULL) {
        subscribers_sum(subscribers, &p->out->events);
        subscribers_close(subscribers);
    }
    world_close(world_of(p));
    if (subscribers != NULL)
        subscribers_free(subscribers);
    free(p->mind);
}

/* The process's choice for unpinned requests: the first of equal ranks, as in vLLM. */
static unsigned least_of(const struct play *p, unsigned first)
{
    unsigned least = first;
    for (unsigned i = first; i < first + ranks_of(p); i++) {
        if (p->engines[i].in_flight < p->engines[least].in_flight)
            least = i;
    }
    return least;
}

/* Reads the prompt as a router does if the client puts a line in front. */
static struct node_rendered read_leading(struct play *p, struct flight *f, uint64_t now_ms)
{
    static struct http_prompt prompt;
    struct node_rendered rendered = {.key = 0};
    if (p->setup->leading == LEADING_NONE)
        return rendered;
    const struct node_client client = {SLICE("bench"), "chat"};
    leading_read(&f->ask->prompt, p->setup->bytes_per_token, p->setup->leading, f->unique,
                 (uint64_t)(f->talk - p->setup->work->talks) + 1, f->turn, secret_of(p, f->router),
                 &prompt);
    node_router_render(router_at(p, f->router), &client, SLICE("base"), &prompt.form, &prompt.chain,
                       now_ms, &rendered);
    http_prompt_join(&prompt.form, prompt.secret, rendered.rendering, &prompt.chain);
    f->chain = prompt.chain;
    return rendered;
}

/* Looks at the router's beliefs about all engines, for some of the prompts. */
static void belief_look(struct play *p, const struct flight *f, const struct node_request *request,
                        uint64_t now_ms)
{
    struct node_router *r = router_at(p, f->router);
    unsigned each = p->setup->belief_each;
    if (subscribers_of(p) == NULL || each == 0 || f->unique % each != 0 ||
        p->setup->leading != LEADING_NONE)
        return;
    beliefs_ask(r, request, now_ms);
    for (unsigned k = 0; k < p->engine_count; k++)
        beliefs_look(subscribers_beliefs(subscribers_of(p)), f, k, r, slot_of(p, f->router, k),
                     &p->out->events);
}

static unsigned choose(struct play *p, struct flight *f)
{
    uint64_t now_ms = routers_now_ms(p);
    char model[24];
    int len = f->ask->adapter ? snprintf(model, sizeof model, "adapter-%u", f->ask->adapter) : 0;
    struct node_rendered rendered = read_leading(p, f, now_ms);
    if (node_router_policy(router_at(p, f->router))->wants_chunks)
        prompt_chunks(&f->ask->prompt, p->setup->bytes_per_token, f->unique,
                      secret_of(p, f->router), &f->chain);
    struct node_request request = {
        .rendered = rendered,
        .model = len > 0 ? slice_of(model, (size_t)len) : slice_of_cstr("base"),
        .session = slice_of_cstr(f->talk->session),
        .conversation = hash_mix((uint64_t)(f->talk - p->setup->work->talks) + 1),
        .chain = &f->chain,
        .body_bytes = f->chain.bytes,
        .replica_wanted = -1,
        .answer_whole = f->ask->whole,
    };
    struct node_decision d;
    belief_look(p, f, &request, now_ms);
    CHECK(node_router_place(router_at(p, f->router), &request, NULL, now_ms, &d) == ERR_OK);
    f->booking = d.booking;
    f->cached_predicted = (double)d.cached_tokens;
    world_touch(&world_of(p)->nodes[f->router]);
    unsigned engine = ((struct mind *)p->mind)->engines[f->router][d.server];
    return d.rank >= 0 ? engine + (unsigned)d.rank : least_of(p, engine);
}

static void first(struct play *p, struct flight *f)
{
    node_router_first_byte(router_at(p, f->router), f->booking, routers_now_ms(p));
    world_touch(&world_of(p)->nodes[f->router]);
}

static void done(struct play *p, struct flight *f, enum flight_end how)
{
    struct node_router *r = router_at(p, f->router);
    uint64_t now_ms = routers_now_ms(p);
    struct node_usage usage = engine_usage(&p->engines[f->engine], &f->sim);
    if (how == FLIGHT_ANSWERED)
        p->out->mispredicted_tokens += fabs((double)f->sim.cached_tokens - f->cached_predicted);
    if (f->first_ns != 0)
        node_router_used(r, f->booking, &f->chain, now_ms);
    node_router_finish(r, f->booking,
                       how == FLIGHT_LEFT ? NODE_OUTCOME_CLIENT_GONE : NODE_OUTCOME_OK,
                       how == FLIGHT_ANSWERED ? &usage : NULL, now_ms);
    world_touch(&world_of(p)->nodes[f->router]);
    struct mind *m = p->mind;
    if (++m->ended == workload_asks(p->setup->work) / 2)
        m->before = shadow_sums(p);
}

/* As in a rolling deployment: an engine leaves, and another comes under another name. */
static void replaced(struct play *p, unsigned old, unsigned new)
{
    DISCARD(routers_now_ms(p));
    for (unsigned i = 0; i < p->setup->routers; i++) {
        node_router_vanish(router_at(p, i), slot_of(p, i, old), true);
        introduce(p, i, new);
        world_touch(&world_of(p)->nodes[i]);
    }
}

#define ROUTER(name_)                                                                              \
    const struct chooser chooser_##name_ = {.name = #name_,                                        \
                                            .policy = #name_,                                      \
                                            .open = open_routers,                                  \
                                            .close = close_routers,                                \
                                            .choose = choose,                                      \
                                            .first = first,                                        \
                                            .done = done,                                          \
                                            .moved = moved,                                        \
                                            .tick = tick,                                          \
                                            .replaced = replaced}
ROUTER(cache_aware);
ROUTER(round_robin);
ROUTER(least_request);
ROUTER(session);
ROUTER(prefix_hash);
ROUTER(chunk_aware);
