/* Cases of trouble without a fault: clients that leave, prompts that engines refuse, load that no
 * router sees. */
#include "tests/bench/quality/trouble.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/chooser.h"
#include "tests/bench/quality/record.h"
#include "tests/bench/quality/report.h"

enum { ASKS = 4000, ENGINES = 8, EACH = 3 };

typedef void trouble_make(struct ask *a, uint64_t chance);

/* One client in three leaves, after a tenth of a second to two: before the first token, or within
 * the answer. */
static void leave(struct ask *a, uint64_t chance)
{
    if (chance % EACH == 0)
        a->patience_s = 0.1F + 0.001F * (float)(chance / EACH % 1900);
}

static void refuse(struct ask *a, uint64_t chance)
{
    a->refused = chance % EACH == 0;
}

/* A quarter of the work comes from elsewhere, to two of the engines. */
static void bypass(struct ask *a, uint64_t chance)
{
    if (chance % 4 == 0)
        a->bypasses = (uint8_t)(1 + chance / 4 % 2);
}

static const struct trouble {
    const char *name, *says;
    workload_generate *generate;
    trouble_make *make;
    double load;
} troubles[] = {
    {"leaves", "a third of the clients leave", workload_tenants, leave, 0.6},
    {"refused", "a third of the prompts is refused", workload_tenants, refuse, 0.6},
    {"bypass", "a quarter of the work comes past the routers, to two of eight", workload_distinct,
     bypass, 0.6},
};

static struct figures figures_by(const struct quality_case *c, const struct chooser *chooser)
{
    struct outcome o;
    play(c, chooser, &o);
    struct figures f = figures_of(&o, c);
    outcome_free(&o);
    return f;
}

static unsigned trouble_run(const struct trouble *t, unsigned routers)
{
    struct workload w;
    t->generate(&w, 31, ASKS);
    for (unsigned i = 0; i < w.count; i++) {
        for (unsigned j = 0; j < w.talks[i].count; j++)
            t->make(&w.talks[i].asks[j], hash_mix(i * 1000 + j));
    }
    struct quality_case c = case_plain(&w, ENGINES, routers, engine_plain(1, 400000, 16));
    calibrate(&c, t->load);
    struct figures own = figures_by(&c, &chooser_cache_aware);
    struct figures bound = figures_by(&c, &chooser_perfect);
    struct figures rival = figures_by(&c, &chooser_least_request);
    workload_free(&w);
    return !record_promise(own.cached >= bound.cached - 0.02 && own.ttft_s <= 1.25 * bound.ttft_s,
                           "%s: %s, %u router%s: cached %.1f %% against %.1f %% of perfect "
                           "knowledge (2 points), TTFT %.3f s, x %.2f (1.25; least request %.3f s)",
                           t->name, t->says, routers, routers == 1 ? "" : "s", 100 * own.cached,
                           100 * bound.cached, own.ttft_s, own.ttft_s / bound.ttft_s, rival.ttft_s);
}

unsigned troubles_run(const char *name)
{
    unsigned broken = 0;
    for (unsigned i = 0; i < ARRAY_LEN(troubles); i++) {
        if (name && strcmp(name, troubles[i].name) != 0)
            continue;
        broken += trouble_run(&troubles[i], 1);
        broken += trouble_run(&troubles[i], 4);
    }
    return broken;
}
