#include "tests/bench/quality/noise.h"

#include <math.h>

#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/chooser.h"
#include "tests/bench/quality/record.h"

/* The share of turns that went to another engine than the turn before. */
static unsigned turns_away(const struct outcome *o)
{
    unsigned away = 0;
    for (unsigned i = 0; i < o->count; i++) {
        for (unsigned k = 0; k < o->count; k++)
            away += o->samples[i].turn > 0 && o->samples[k].ask == o->samples[i].ask - 1 &&
                    o->samples[k].engine != o->samples[i].engine;
    }
    return away;
}

/* Cached share of the turns' prompts. */
static double turns_cached(const struct outcome *o)
{
    double cached = 0, all = 0;
    for (unsigned i = 0; i < o->count; i++) {
        cached += o->samples[i].turn > 0 ? o->samples[i].cached_tokens : 0;
        all += o->samples[i].turn > 0 ? o->samples[i].prompt_tokens : 0;
    }
    return cached / all;
}

/* Agents with short turns, at engines in which nothing waits. Tokenizers take up to 50 ms by
 * chance, and once in twenty 0.3 s. */
static void noise_case(unsigned routers, bool metrics, unsigned *broken)
{
    enum { RUNS = 10, AGENTS = 6 };
    unsigned away = 0, turns = 0, away_then = 0;
    double quiet_cached = 0, cached = 0, worst = 0;
    for (unsigned run = 0; run < RUNS; run++) {
        struct workload w;
        struct outcome o;
        struct prng chance;
        workload_turns(&w, 31 + run, 144);
        struct quality_case c = case_plain(&w, 3, routers, engine_plain(5, 400000, 16));
        for (unsigned k = 0; k < c.engines; k++)
            c.specs[k].metrics = metrics ? ENGINE_METRICS_ALL : ENGINE_METRICS_NONE;
        c.clients = AGENTS;
        c.seed = 1 + run;
        play(&c, &chooser_cache_aware, &o);
        double quiet = turns_cached(&o);
        away_then += turns_away(&o);
        outcome_free(&o);
        prng_seed(&chance, run);
        for (unsigned t = 0; t < w.count; t++) {
            for (unsigned i = 0; i < w.talks[t].count; i++) {
                double unit = prng_unit(&chance);
                w.talks[t].asks[i].fetch_s = unit < 0.05 ? 0.3f : (float)(unit / 20);
            }
        }
        play(&c, &chooser_cache_aware, &o);
        double own = turns_cached(&o);
        turns += o.count;
        away += turns_away(&o);
        outcome_free(&o);
        quiet_cached += quiet / RUNS;
        cached += own / RUNS;
        worst = fmax(worst, quiet - own);
        workload_free(&w);
    }
    *broken += !record_promise(
        away == 0 && worst <= 0.003,
        "noise: %u router%s%s: first tokens up to 50 ms late, one in twenty 0.3 s: %u of %u turns "
        "left their cache (0; %u without); cached %.1f %%, %.1f %% without, worst of ten runs "
        "%.1f points below (0.3)",
        routers, routers == 1 ? "" : "s", metrics ? "" : ", no metrics", away, turns, away_then,
        100 * cached, 100 * quiet_cached, 100 * worst);
}

unsigned case_noise(const char *traces)
{
    (void)traces;
    unsigned broken = 0;
    for (unsigned routers = 1; routers <= 3; routers += 2) {
        noise_case(routers, true, &broken);
        noise_case(routers, false, &broken);
    }
    return broken;
}
