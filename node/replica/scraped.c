#include "node/replica/scraped.h"

#include <math.h>

#include "base/number.h"
#include "crdt/reports.h"
#include "node/replica/replica.h"

static const double count_max = 1e15, ppm = 1e6, ms_in_s = 1e3;

static bool fresh(uint64_t at_ms, uint64_t interval_ms, uint64_t now_ms)
{
    uint64_t longest_ms =
        3 * interval_ms > NODE_SCRAPE_STALE_MS ? 3 * interval_ms : NODE_SCRAPE_STALE_MS;
    return at_ms != 0 && now_ms < at_ms + longest_ms;
}

bool node_scraped_due(const struct node_replica *k, uint64_t interval_ms, uint64_t now_ms)
{
    return k->turn.ahead < NODE_SCRAPERS || !fresh(k->scraped_ms, interval_ms, now_ms);
}

bool node_scraped_is_late(struct node_replica *k, const struct node_scrape *s, double known_s)
{
    bool earlier = s->start_time_s >= 0 && s->start_time_s + NODE_START_GRAIN_S < known_s &&
                   !node_scrape_same_life(&k->scrape, s);
    k->scraped.earlier = earlier && !k->scraped.earlier;
    return k->scraped.earlier;
}

/* Raises the counters in `s` to those in `before`. Two routers read at different times, and an
 * answer may arrive late. So a change of the reading router must not look like falling counters. */
static void catch_up(struct node_scrape *s, const struct node_scrape *before)
{
    if (!node_scrape_same_life(s, before))
        return;
    s->prefix_queries = number_max(s->prefix_queries, before->prefix_queries);
    s->prefix_hits = number_max(s->prefix_hits, before->prefix_hits);
    s->prompt_tokens = number_max(s->prompt_tokens, before->prompt_tokens);
    s->generation_tokens = number_max(s->generation_tokens, before->generation_tokens);
}

void node_scraped_own(struct node_replica *k, struct node_scrape *s, uint64_t now_ms)
{
    if (k->scraped.source != 0)
        catch_up(s, &k->scrape);
    k->scraped.count++;
    k->scraped.own_ms = now_ms > 0 ? now_ms : 1;
    k->scraped.source = 0;
}

/* The figure as a field of a report: in `unit`s, plus 1; 0: unknown. */
static uint64_t out_of(double figure, double unit)
{
    return figure < 0 ? 0 : (uint64_t)llround(number_min(figure * unit, count_max)) + 1;
}

static double in_of(uint64_t field, double unit)
{
    return field == 0 ? -1 : (double)(field - 1) / unit;
}

static uint32_t narrow(uint64_t field)
{
    return field < UINT32_MAX ? (uint32_t)field : UINT32_MAX;
}

void node_scraped_report(const struct node_replica *k, uint64_t now_ms, struct crdt_learned *out)
{
    const struct node_scrape *s = &k->scrape;
    bool wanted = k->turn.others >= NODE_SCRAPERS;
    if (!wanted || k->scraped.source != 0 || !fresh(k->scraped.own_ms, 0, now_ms))
        return;
    out->scrapes = k->scraped.count;
    out->engine_started_ms = out_of(s->start_time_s, ms_in_s);
    out->engine_running = narrow(out_of(s->running, 1));
    out->engine_waiting = narrow(out_of(s->waiting, 1));
    out->engine_usage_ppm = narrow(out_of(s->cache_usage, ppm));
    out->engine_queries = out_of(s->prefix_queries, 1);
    out->engine_hits = out_of(s->prefix_hits, 1);
    out->engine_prompt = out_of(s->prompt_tokens, 1);
    out->engine_generated = out_of(s->generation_tokens, 1);
}

bool node_scraped_hear(struct node_replica *k, uint64_t source, const struct crdt_learned *in,
                       bool asleep, uint64_t now_ms)
{
    struct node_scraped *d = &k->scraped;
    bool same = d->source == source;
    if (fresh(d->own_ms, 0, now_ms) || (same && d->counted == in->scrapes))
        return false;
    struct node_scrape s = node_scrape_unknown;
    s.running = in_of(in->engine_running, 1);
    s.waiting = in_of(in->engine_waiting, 1);
    s.cache_usage = in_of(in->engine_usage_ppm, ppm);
    s.start_time_s = in_of(in->engine_started_ms, ms_in_s);
    s.prefix_queries = in_of(in->engine_queries, 1);
    s.prefix_hits = in_of(in->engine_hits, 1);
    s.prompt_tokens = in_of(in->engine_prompt, 1);
    s.generation_tokens = in_of(in->engine_generated, 1);
    s.sleeping = asleep;
    if (in->engine_work != 0)
        s.work.value[NODE_WORK_TOLD] = in->engine_work;
    if (!same)
        catch_up(&s, &k->scrape);
    if (d->told_by != source)
        node_work_told_anew(&k->signs.work);
    d->told_by = source;
    d->source = source;
    d->counted = in->scrapes;
    /* A cache loss comes through the registry, from the scraping router. */
    (void)node_replica_scraped(k, &s, now_ms);
    return true;
}
