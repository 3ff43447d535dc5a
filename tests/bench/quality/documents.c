#include "tests/bench/quality/documents.h"

#include <math.h>

#include "base/check.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/record.h"

enum {
    SEEDS = 3,
    ASKS = 1000,
    ENGINES = 8,
    CACHE_TOKENS = 120000, /* a third of all documents */
};

static const double again = 0.15; /* share of reused tokens computed again, as in CacheBlend */

enum { CHUNK_AWARE, CACHE_AWARE, PREFIX_HASH, LEAST_REQUEST, PERFECT, POLICIES };
static const struct chooser *const policies[POLICIES] = {
    [CHUNK_AWARE] = &chooser_chunk_aware, [CACHE_AWARE] = &chooser_cache_aware,
    [PREFIX_HASH] = &chooser_prefix_hash, [LEAST_REQUEST] = &chooser_least_request,
    [PERFECT] = &chooser_perfect,
};

struct quality_case case_of_documents(const struct workload *w, bool any_place)
{
    struct engine_spec each = engine_plain(1, CACHE_TOKENS, 16);
    each.model.any_place = any_place;
    each.model.again = any_place ? again : 0;
    struct quality_case c = case_plain(w, ENGINES, 1, each);
    calibrate(&c, 0.7);
    return c;
}

/* Over all seeds: the mean share, the geometric mean of TTFT. */
struct answers {
    double cached[POLICIES], ttft_s[POLICIES];
    double least, most; /* TTFT of chunk_aware over that of cache_aware, per seed */
};

static void answers_add(struct answers *a, const struct quality_case *c)
{
    double ttft_s[POLICIES];
    for (unsigned i = 0; i < POLICIES; i++) {
        struct outcome o;
        play(c, policies[i], &o);
        struct figures f = figures_of(&o, c);
        outcome_free(&o);
        ttft_s[i] = f.ttft_s;
        a->cached[i] += f.cached / SEEDS;
        a->ttft_s[i] *= pow(f.ttft_s, 1.0 / SEEDS);
    }
    double times = ttft_s[CHUNK_AWARE] / ttft_s[CACHE_AWARE];
    a->least = fmin(a->least, times);
    a->most = fmax(a->most, times);
}

/* Chunks pay off at engines that reuse at any place, and only there. */
static bool record_answers(const struct answers *a, bool any_place, unsigned routers)
{
    const double *cached = a->cached, *ttft_s = a->ttft_s;
    double others = fmin(ttft_s[PREFIX_HASH], ttft_s[LEAST_REQUEST]);
    double times = ttft_s[CHUNK_AWARE] / ttft_s[CACHE_AWARE];
    bool kept = any_place ? times <= 0.85 && ttft_s[CHUNK_AWARE] <= 0.85 * others : times >= 1;
    return record_promise(
        kept,
        "documents: %s, %u router%s: chunk_aware %.1f %%, %.3f s, x %.2f of cache_aware (%s; seeds "
        "x %.2f to %.2f); cache_aware %.1f %%, %.3f s, prefix_hash %.1f %%, %.3f s, least request "
        "%.1f %%, %.3f s, perfect knowledge %.1f %%, %.3f s",
        any_place ? "reused anywhere" : "reused as prefixes", routers, routers == 1 ? "" : "s",
        100 * cached[CHUNK_AWARE], ttft_s[CHUNK_AWARE], times,
        any_place ? "at most 0.85, of the others too" : "at least 1", a->least, a->most,
        100 * cached[CACHE_AWARE], ttft_s[CACHE_AWARE], 100 * cached[PREFIX_HASH],
        ttft_s[PREFIX_HASH], 100 * cached[LEAST_REQUEST], ttft_s[LEAST_REQUEST],
        100 * cached[PERFECT], ttft_s[PERFECT]);
}

unsigned case_documents(const char *traces)
{
    (void)traces;
    static const unsigned routers[] = {1, 4};
    unsigned broken = 0;
    for (unsigned kind = 0; kind < 2; kind++) {
        bool any_place = kind == 0;
        struct answers a[ARRAY_LEN(routers)];
        for (unsigned i = 0; i < ARRAY_LEN(routers); i++) {
            a[i] = (struct answers){.least = INFINITY};
            for (unsigned k = 0; k < POLICIES; k++)
                a[i].ttft_s[k] = 1;
        }
        for (unsigned seed = 0; seed < SEEDS; seed++) {
            struct workload w;
            workload_rag(&w, 61 + seed, ASKS);
            struct quality_case c = case_of_documents(&w, any_place);
            c.seed = seed + 1;
            for (unsigned i = 0; i < ARRAY_LEN(routers); i++) {
                c.routers = routers[i];
                answers_add(&a[i], &c);
            }
            workload_free(&w);
        }
        for (unsigned i = 0; i < ARRAY_LEN(routers); i++)
            broken += !record_answers(&a[i], any_place, routers[i]);
    }
    return broken;
}
