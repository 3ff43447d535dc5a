/* What several routers learn of one replica that all of them use, in virtual time. */
#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "node/core/router_internal.h"
#include "tests/lib/cluster.h"
#include "tests/lib/test.h"

enum { S = 1000000, MS = 1000 };

/* --- an engine -------------------------------------------------------------------------------- */

/* First come, first served: it computes prompts one after the other, and while there is none it
 * decodes all its streams together. */
enum { JOBS = 12 };
static const double rate = 20000, step_base_s = 0.010, step_context_s = 50e-9;

struct job {
    unsigned router;
    struct node_decision d;
    uint64_t number; /* in the order in which they came; 0: none */
    double tokens, left, steps;
};

struct engine {
    struct job jobs[JOBS];
    uint64_t came;
    unsigned output; /* tokens of an answer: the more, the less of its time goes into prompts */
};

static void engine_send(struct engine *e, struct cluster *c, struct job *job)
{
    static struct chain chain;
    e->came++;
    unsigned tokens = 2000 + (unsigned)(e->came % 5) * 1000;
    cluster_prompt(&chain, e->came, tokens);
    *job = (struct job){.router = (unsigned)(e->came % c->count),
                        .number = e->came,
                        .tokens = tokens,
                        .left = tokens};
    job->d = cluster_choose(c, job->router, &chain);
}

static struct job *engine_first(struct engine *e)
{
    struct job *first = NULL;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job *job = &e->jobs[i];
        if (job->left > 0 && (first == NULL || job->number < first->number))
            first = job;
    }
    return first;
}

static void engine_decode(struct engine *e, struct cluster *c, double seconds)
{
    double context = 0;
    for (unsigned i = 0; i < JOBS; i++)
        context += e->jobs[i].tokens;
    for (unsigned i = 0; i < JOBS; i++) {
        struct job *job = &e->jobs[i];
        job->steps += seconds / (step_base_s + step_context_s * context);
        if (job->number == 0 || job->steps < e->output)
            continue;
        struct node_usage usage = {(int64_t)job->tokens, 0, e->output + 1};
        cluster_finish(c, job->router, job->d, &usage);
        engine_send(e, c, job);
    }
}

static void engine_run(struct engine *e, struct cluster *c, unsigned ms)
{
    for (unsigned i = 0; i < ms; i++) {
        if (i < JOBS * 50 && i % 50 == 0 && e->jobs[i / 50].number == 0)
            engine_send(e, c, &e->jobs[i / 50]);
        cluster_run(c, 1 * MS);
        struct job *first = engine_first(e);
        if (first == NULL) {
            engine_decode(e, c, 0.001);
            continue;
        }
        first->left -= rate / 1000;
        if (first->left <= 0) {
            node_router_first_byte(c->nodes[first->router].router, first->d.booking, cluster_ms(c));
            node_replication_run(c->nodes[first->router].replication, c->now_us);
        }
    }
}

/* --- tests ------------------------------------------------------------------------------------ */

static void start(struct cluster *c, unsigned routers)
{
    cluster_init(c, routers, 1);
    for (unsigned i = 0; i < routers; i++)
        cluster_start(c, i);
    cluster_settle(c);
    for (unsigned i = 0; i < routers; i++)
        (void)cluster_replica(c, i, "replica-0:8000");
    cluster_run(c, 500 * MS);
}

static struct node_replica *replica_at(struct cluster *c, unsigned router)
{
    return &c->nodes[router].router->replicas[0];
}

static void assert_near(double actual, double expected, double share)
{
    if (fabs(actual - expected) > share * expected)
        fail_msg("%g is not %g", actual, expected);
}

/* The replica always has work of all of them; each learns by its own timings nevertheless. */
static void timings_among_others_work_teach(void **state)
{
    (void)state;
    static const unsigned outputs[] = {50, 400}; /* four fifths of its time, one third */
    for (unsigned run = 0; run < ARRAY_LEN(outputs); run++) {
        struct cluster c;
        struct engine e = {.output = outputs[run]};
        start(&c, 2 + run);
        engine_run(&e, &c, 40000);
        for (unsigned i = 0; i < c.count; i++) {
            const struct node_replica *k = replica_at(&c, i);
            assert_true(k->rate_samples > NODE_LEARNED_FEW);
            assert_near(node_ratio_value(&k->rate), rate, 0.05);
            if (run == 0)
                continue; /* it says nothing of its pace */
            assert_true(k->pace_samples > NODE_LEARNED_FEW);
            double context = JOBS * 4000.0; /* typical */
            assert_near(k->step_base_s + k->step_context_s * context,
                        step_base_s + step_context_s * context, 0.1);
        }
        cluster_free(&c);
    }
}

/* Requests one after the other at the routers in turn, all of one prompt that is never found in the
 * cache. `told`: answers say so, else only the engine's counters do, which each router reads. */
struct world {
    struct cluster c;
    uint64_t came;
    double queries;
};

static void scrape_all(struct world *w)
{
    struct node_scrape s = node_scrape_untold;
    s.prefix_queries = s.prompt_tokens = w->queries;
    s.prefix_hits = 0;
    s.start_time_s = 1;
    for (unsigned i = 0; i < w->c.count; i++) {
        if (w->c.nodes[i].up)
            (void)node_router_scraped(w->c.nodes[i].router, 0, &s, cluster_ms(&w->c));
    }
}

static void misses(struct world *w, unsigned seconds, bool told)
{
    static struct chain chain;
    cluster_prompt(&chain, 7, 5000);
    for (unsigned i = 0; i < seconds; i++) {
        unsigned router = (unsigned)(w->came++ % w->c.count);
        if (!w->c.nodes[router].up)
            router = (router + 1) % w->c.count;
        struct node_decision d = cluster_choose(&w->c, router, &chain);
        cluster_run(&w->c, 500 * MS);
        struct node_usage usage = {5000, told ? 0 : -1, 10};
        cluster_finish(&w->c, router, d, &usage);
        w->queries += 5000;
        cluster_run(&w->c, 500 * MS);
        if (w->came % 5 == 0)
            scrape_all(w);
    }
}

static double factor_after(unsigned routers, unsigned router, bool told)
{
    struct world w = {0};
    start(&w.c, routers);
    scrape_all(&w);
    misses(&w, 120, told);
    double factor = replica_at(&w.c, router)->belief.factor;
    cluster_free(&w.c);
    return factor;
}

static void four_correct_the_size_as_fast_as_one(void **state)
{
    (void)state;
    for (unsigned told = 0; told <= 1; told++) {
        double one = log(factor_after(1, 0, told));
        assert_true(one < -0.3);
        for (unsigned i = 0; i < 4; i += 3)
            assert_near(-log(factor_after(4, i, told)), -one, 0.2);
    }
}

/* A router that comes or goes takes its sums along: what changes by that says nothing. */
static void a_window_in_which_the_routers_change_is_skipped(void **state)
{
    (void)state;
    struct world w = {0};
    start(&w.c, 3);
    scrape_all(&w);
    misses(&w, 30, false);
    struct node_replica *k = replica_at(&w.c, 0);
    assert_true(k->others.who != 0 && k->others.predicted.prompt_tokens > 50000);
    uint64_t who = k->others.who;
    cluster_kill(&w.c, 2);
    cluster_run(&w.c, 15 * S);
    double before = k->belief.factor;
    w.queries += 20000; /* which nobody knows of */
    scrape_all(&w);
    assert_true(k->others.who != who && k->window.who == k->others.who);
    assert_true(k->window.queries == w.queries);
    assert_true(k->belief.factor == before);
    misses(&w, 40, false); /* and it goes on with those that are left */
    assert_true(k->belief.factor < before);
    cluster_free(&w.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timings_among_others_work_teach),
        cmocka_unit_test(four_correct_the_size_as_fast_as_one),
        cmocka_unit_test(a_window_in_which_the_routers_change_is_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
