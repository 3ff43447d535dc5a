#include "tests/bench/quality/play.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/bench/quality/chooser.h"

static const double begin_within_s = 60; /* clients of a closed loop do not all begin at once */

void outcome_free(struct outcome *o)
{
    free(o->samples);
    *o = (struct outcome){0};
}

static double cpu_now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t ns_of(double s)
{
    return (uint64_t)llround(s * 1e9);
}

/* --- clients --------------------------------------------------------------------------------- */

static void on_ask(void *context, struct world_event *e);

static void ask_later(struct play *p, unsigned client, struct talk *t, unsigned turn,
                      uint64_t at_ns)
{
    world_queue_put(&p->clients,
                    &(struct world_event){
                        .at_us = at_ns, .happen = on_ask, .node = client, .a = turn, .object = t});
}

static double think_s(const struct play *p, const struct ask *a)
{
    return a->think_s / p->setup->speed / p->setup->pace;
}

static void talk_next(struct play *p, unsigned client, double extra_s)
{
    const struct workload *w = p->setup->work;
    if (p->next_talk == w->count)
        return;
    struct talk *t = &w->talks[p->next_talk++];
    p->talking++;
    ask_later(p, client, t, 0, p->now_ns + ns_of(think_s(p, &t->asks[0]) + extra_s));
}

static void clients_begin(struct play *p)
{
    const struct workload *w = p->setup->work;
    if (w->open) {
        p->talking = w->count;
        for (unsigned i = 0; i < w->count; i++)
            ask_later(p, i, &w->talks[i], 0,
                      p->now_ns + ns_of(w->talks[i].start_s / p->setup->speed / p->setup->pace));
        return;
    }
    for (unsigned i = 0; i < p->setup->clients; i++)
        talk_next(p, i, prng_unit(&p->prng) * begin_within_s / p->setup->speed / p->setup->pace);
}

/* Call after each use of the engine's model. */
static void model_moved(struct play *p, struct engine *e)
{
    e->next_ns = sim_model_next_event_ns(e->model);
    if (p->chooser->moved)
        p->chooser->moved(p, (unsigned)(e - p->engines));
}

/* The answer came, or none will come: picks the client's next step. */
static void answered(struct play *p, const struct flight *f)
{
    if (f->turn + 1 < f->talk->count) {
        const struct ask *next = &f->talk->asks[f->turn + 1];
        ask_later(p, f->client, f->talk, f->turn + 1, p->now_ns + ns_of(think_s(p, next)));
        return;
    }
    p->talking--;
    if (!p->setup->work->open)
        talk_next(p, f->client, 0);
}

/* --- a request ------------------------------------------------------------------------------- */

static void flight_free(struct flight *f)
{
    f->over = true;
    if (f->leaves) /* on_patience_over() still uses the flight */
        return;
    sim_chain_free(&f->sim.chain);
    free(f->ahead);
    free(f->sim.blocks);
    free(f);
}

static void link(struct engine *e, struct flight *f)
{
    f->next = e->flights;
    if (f->next)
        f->next->prev = f;
    e->flights = f;
    e->in_flight++;
    e->in_flight_context += (double)prompt_tokens(&f->ask->prompt);
}

static void unlink(struct engine *e, struct flight *f)
{
    *(f->prev ? &f->prev->next : &e->flights) = f->next;
    if (f->next)
        f->next->prev = f->prev;
    e->in_flight--;
    e->in_flight_context -= (double)prompt_tokens(&f->ask->prompt);
}

static bool is_seen(const struct flight *f)
{
    return f->ask->bypasses == 0;
}

static void ended(struct play *p, struct flight *f, enum flight_end how)
{
    unlink(&p->engines[f->engine], f);
    if (is_seen(f))
        p->chooser->done(p, f, how);
    answered(p, f);
    flight_free(f);
}

/* The client leaves, if the answer is not complete. */
static void on_patience_over(void *context, struct world_event *e)
{
    struct play *p = context;
    struct flight *f = e->object;
    f->leaves = false;
    if (f->over) {
        flight_free(f);
        return;
    }
    struct engine *k = &p->engines[f->engine];
    sim_model_abort(k->model, &f->sim, p->now_ns);
    model_moved(p, k);
    p->out->left++;
    ended(p, f, FLIGHT_LEFT);
}

/* All inputs are at the engine. */
static void on_fetched(void *context, struct world_event *e)
{
    struct play *p = context;
    struct flight *f = e->object;
    struct engine *k = &p->engines[f->engine];
    if (f->ask->refused || sim_model_submit(k->model, &f->sim, p->now_ns) != ERR_OK) {
        p->out->refused++;
        ended(p, f, FLIGHT_REFUSED);
    }
    model_moved(p, k);
}

/* The engine names computed blocks as the next prompt does, as far as that prompt repeats this
 * prompt and the answer. */
static void answer_returns(const struct play *p, struct flight *f)
{
    const struct engine_spec *spec = &p->setup->specs[0];
    if (!p->setup->answers_return || f->turn + 1 == f->talk->count || spec->dropped_tokens > 0)
        return;
    const struct prompt *now = &f->ask->prompt, *next = &f->talk->asks[f->turn + 1].prompt;
    if (!prompt_continues(now, next))
        return;
    struct sim_chain names;
    prompt_names(next, spec->model.block_tokens, spec->model.any_place, p->uniques, 0, &names);
    uint64_t both = (uint64_t)now->count * now->unit_tokens + f->ask->output_tokens;
    uint64_t text = (uint64_t)next->count * next->unit_tokens;
    struct sim_chain *chain = &f->sim.chain;
    f->ahead = names.blocks;
    chain->ahead = names.blocks;
    chain->ahead_count = (size_t)((both < text ? both : text) / spec->model.block_tokens);
    for (size_t i = 0; i < chain->block_count && i < chain->ahead_count; i++)
        chain->blocks[i] = chain->ahead[i];
}

static void on_ask(void *context, struct world_event *e)
{
    struct play *p = context;
    struct talk *t = e->object;
    struct flight *f = calloc(1, sizeof *f);
    CHECK(f != NULL);
    f->talk = t;
    f->turn = (unsigned)e->a;
    f->ask = &t->asks[f->turn];
    f->client = e->node;
    f->sent_ns = p->now_ns;
    f->router = p->setup->routers > 1 ? (unsigned)prng_below(&p->prng, p->setup->routers) : 0;
    f->sim.output_tokens = f->ask->output_tokens;
    f->sim.output_seed = ++p->uniques;
    f->sim.adapter = f->ask->adapter;
    /* All engines of a case have the same block size and the same template. */
    const struct engine_spec *spec = &p->setup->specs[0];
    struct prompt seen = f->ask->prompt;
    f->unique = p->uniques;
    if (p->setup->leading == LEADING_COUNTED)
        seen.space ^= hash_mix(f->unique);
    prompt_names(&seen, spec->model.block_tokens, spec->model.any_place, p->uniques,
                 spec->dropped_tokens, &f->sim.chain);
    answer_returns(p, f);
    prompt_chain(&f->ask->prompt, p->setup->bytes_per_token, &f->chain);
    double before = cpu_now_s();
    f->engine = is_seen(f) ? p->chooser->choose(p, f) : f->ask->bypasses - 1u;
    p->out->choose_cpu_s += cpu_now_s() - before;
    CHECK(f->engine < p->engine_count && !p->engines[f->engine].leaves);
    link(&p->engines[f->engine], f);
    world_queue_put(&p->clients, &(struct world_event){.at_us = p->now_ns + ns_of(f->ask->fetch_s),
                                                       .happen = on_fetched,
                                                       .object = f});
    if (f->ask->patience_s <= 0)
        return;
    CHECK(f->ask->patience_s > f->ask->fetch_s);
    f->leaves = true;
    world_queue_put(&p->clients,
                    &(struct world_event){.at_us = p->now_ns + ns_of((double)f->ask->patience_s),
                                          .happen = on_patience_over,
                                          .object = f});
}

static void sample_add(struct play *p, const struct flight *f)
{
    p->out->samples[p->out->count++] = (struct sample){
        .sent_s = play_s(p, f->sent_ns),
        .ttft_s = (double)(f->first_ns - f->sent_ns) / 1e9,
        .end_s = (double)(p->now_ns - f->sent_ns) / 1e9,
        .prompt_tokens = (double)f->sim.prompt_tokens,
        .cached_tokens = (double)f->sim.cached_tokens,
        .engine = f->engine,
        .turn = f->turn,
        .ask = f->ask,
    };
}

static void done(struct play *p, struct engine *e, struct flight *f)
{
    const struct sim_request *r = &f->sim;
    double computed = (double)(r->prompt_tokens - r->cached_tokens);
    e->prefill_tokens += computed;
    computed += e->spec->model.again * (double)r->cached_tokens;
    e->prefill_s += computed / e->spec->model.prefill_tokens_per_s;
    e->steps += r->generated - 1;
    e->steps_s += (double)(p->now_ns - f->first_ns) / 1e9;
    p->out->computed_s[f->engine] += computed / e->spec->model.prefill_tokens_per_s;
    if (e->spec->swallows > 0 && prng_unit(&p->prng) < e->spec->swallows) {
        e->swallowed_queries += (double)r->prompt_tokens;
        e->swallowed_hits += (double)r->cached_tokens;
    }
    if (is_seen(f))
        sample_add(p, f);
    ended(p, f, FLIGHT_ANSWERED);
}

/* Handles the engine's next event. */
static void engine_moves(struct play *p, struct engine *e)
{
    sim_model_advance(e->model, p->now_ns);
    for (struct sim_request *r; (r = sim_model_changed(e->model)) != NULL;) {
        struct flight *f = (struct flight *)(void *)((char *)r - offsetof(struct flight, sim));
        if (f->first_ns == 0) {
            f->first_ns = p->now_ns;
            if (!f->ask->whole && is_seen(f))
                p->chooser->first(p, f);
        }
        if (r->state == SIM_DONE) {
            if (f->ask->whole && is_seen(f))
                p->chooser->first(p, f);
            done(p, e, f);
        }
    }
    model_moved(p, e);
}

/* --- the loop -------------------------------------------------------------------------------- */

static void tick(struct play *p)
{
    p->next_tick_ns += (uint64_t)SCRAPE_S * 1000000000;
    if (p->chooser->tick)
        p->chooser->tick(p);
}

/* Takes the next step. False: nothing is left to do. */
static bool step(struct play *p)
{
    if (p->talking == 0)
        return false;
    uint64_t at = world_queue_next_us(&p->clients);
    struct engine *first = NULL;
    for (unsigned i = 0; i < p->engine_count; i++) {
        if (p->engines[i].next_ns < at) {
            first = &p->engines[i];
            at = first->next_ns;
        }
    }
    CHECK(at != UINT64_MAX);
    if (p->next_tick_ns <= at) {
        p->now_ns = p->next_tick_ns;
        tick(p);
        return true;
    }
    p->now_ns = at;
    if (first) {
        engine_moves(p, first);
        return true;
    }
    struct world_event e;
    CHECK(world_queue_take(&p->clients, &e));
    e.happen(p, &e);
    return true;
}

static void on_replaced(void *context, struct world_event *e)
{
    (void)e;
    struct play *p = context;
    for (unsigned i = 0; i < p->setup->replaced; i++) {
        unsigned new = p->engine_count++;
        engine_open(&p->engines[new], &p->setup->specs[i]);
        p->engines[i].leaves = true;
        if (p->chooser->replaced)
            p->chooser->replaced(p, i, new);
    }
}

void play(const struct quality_case *setup, const struct chooser *chooser, struct outcome *out)
{
    struct play p = {.setup = setup, .chooser = chooser, .out = out, .now_ns = 1000000000};
    *out = (struct outcome){0};
    out->samples = calloc(workload_asks(setup->work) + 1, sizeof *out->samples);
    p.engine_count = setup->engines;
    CHECK(out->samples != NULL && setup->engines > 0);
    CHECK(setup->engines + setup->replaced <= ENGINES_MAX && setup->pace > 0 && setup->speed > 0);
    prng_seed(&p.prng, setup->seed);
    p.output_mean = workload_output_mean(setup->work);
    for (unsigned i = 0; i < setup->engines; i++)
        engine_open(&p.engines[i], &setup->specs[i]);
    world_queue_init(&p.clients);
    if (chooser->open)
        chooser->open(&p);
    p.start_ns = p.now_ns;
    p.next_tick_ns = p.now_ns + 1000000000;
    clients_begin(&p);
    if (setup->replaced > 0)
        world_queue_put(&p.clients,
                        &(struct world_event){.at_us = p.now_ns + ns_of(setup->replaced_s),
                                              .happen = on_replaced});
    while (step(&p))
        ;
    out->duration_s = play_s(&p, p.now_ns);
    if (chooser->close)
        chooser->close(&p);
    world_queue_free(&p.clients);
    for (unsigned i = 0; i < p.engine_count; i++) {
        out->adapter_loads += sim_model_counters(p.engines[i].model)->adapter_loads;
        engine_close(&p.engines[i]);
    }
}
