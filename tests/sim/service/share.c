/* Rules "fair share" and "rejections": only one replica fails at once. It must not attract requests
 * that the others would serve better, and the clients hardly notice. */
#include "tests/sim/service/service.h"

enum {
    LEAST = 30,
    SLACK = 8,
    SEEN = 6,
    SEEN_OF = 20,
    LEARN_US = 500000,
};

bool service_fails_at_once(enum service_ill ill)
{
    return ill == SERVICE_REJECTS || ill == SERVICE_LOST_MODEL || ill == SERVICE_500 ||
           ill == SERVICE_503 || ill == SERVICE_429 || ill == SERVICE_ERROR_EVENT ||
           ill == SERVICE_ERROR_LATE;
}

bool service_is_well(const struct service *s, unsigned engine)
{
    const struct service_engine *e = &s->engines[engine];
    return e->ill == SERVICE_WELL && e->up;
}

void service_share_begin(struct service *s, unsigned engine)
{
    const struct service_engine *e = &s->engines[engine];
    bool alone = true;
    for (unsigned i = 0; i < s->engine_count; i++)
        alone &= i == engine || service_is_well(s, i);
    s->share = (struct service_share){.running = alone && service_fails_at_once(e->ill),
                                      .engine = engine,
                                      .from_us = s->world.now_us + LEARN_US};
}

void service_share_spoil(struct service *s)
{
    s->share.running = false;
}

void service_share_attempt(struct service *s, unsigned engine)
{
    struct service_share *f = &s->share;
    if (!f->running || s->world.now_us < f->from_us)
        return;
    f->all++;
    f->own += engine == f->engine;
}

void service_share_seen(struct service *s, const struct service_ask *a)
{
    struct service_share *f = &s->share;
    const struct service_attempt *t = a->attempts;
    bool rejected = a->whole && a->status / 100 == 4 && a->replica[0] != '\0';
    while (t != NULL && !t->rejected)
        t = t->next;
    f->seen += f->running && s->world.now_us >= f->from_us && rejected && t != NULL;
}

void service_share_end(struct service *s, unsigned engine)
{
    const struct service_share *f = &s->share;
    if (f->running && f->engine == engine)
        service_say(s, "share of engine %u of %u: %llu of %llu, seen %llu", engine, s->engine_count,
                    (unsigned long long)f->own, (unsigned long long)f->all,
                    (unsigned long long)f->seen);
    bool judged = f->running && f->engine == engine && f->all >= LEAST;
    if (judged && f->own * s->engine_count > 2 * f->all + SLACK * s->engine_count)
        service_broken(s, "fair share", "engine %u of %u fails with %s, and got %llu of %llu tries",
                       engine, s->engine_count, service_ill_text(s->engines[engine].ill),
                       (unsigned long long)f->own, (unsigned long long)f->all);
    if (judged && f->seen > SEEN + f->all / SEEN_OF)
        service_broken(s, "rejections", "%llu of engine %u's reached clients, of %llu tries",
                       (unsigned long long)f->seen, engine, (unsigned long long)f->all);
    service_share_spoil(s);
}
