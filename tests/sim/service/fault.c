/* Faults and their times. */
#include "base/check.h"
#include "tests/sim/service/service.h"

/* Most time until a router finds out that an engine is well again. */
enum { SETTLE_S = 8 };
/* Most time for the watchdog: at least three seconds, and twice as many if the evidence is weak. */
enum { LAST_S = 6 };

uint64_t service_ills(const struct service *s)
{
    uint64_t ills = 0;
    for (unsigned i = 0; i < s->engine_count; i++) {
        const struct service_engine *e = &s->engines[i];
        bool lately =
            e->well_since_us > 0 && s->world.now_us < e->well_since_us + SETTLE_S * SERVICE_S;
        if (e->ill != SERVICE_WELL || lately || service_field_is_unknown(s, i))
            ills |= UINT64_C(1) << i;
    }
    return ills;
}

void service_ill_meets(struct service *s, unsigned engine)
{
    for (struct service_ask *a = s->asks; a; a = a->next) {
        if (a->begun_us && !a->ended)
            a->ills |= UINT64_C(1) << engine;
    }
}

void service_ill_reaches(struct service *s, unsigned engine, enum service_ill ill)
{
    for (struct service_ask *a = s->asks; a; a = a->next) {
        for (struct service_attempt *t = a->attempts; t && !a->ended; t = t->next)
            t->ills |= t->engine == engine ? UINT64_C(1) << ill : 0;
    }
}

static uint64_t length_us(struct service *s)
{
    return service_chance(s, 0.2) ? service_between(s, 10, 300) * SERVICE_MS
                                  : service_between(s, 300, 7000) * SERVICE_MS;
}

/* Chooses a random illness that fits the day. */
static enum service_ill draw_ill(struct service *s)
{
    static const enum service_ill pauses[] = {SERVICE_STOPPED, SERVICE_STUCK, SERVICE_FAR};
    enum service_ill ill = SERVICE_REJECTS;
    if (s->day == SERVICE_PAUSES)
        return pauses[service_below(s, ARRAY_LEN(pauses))];
    while (service_chance(s, 0.5) || !service_fails_at_once(ill))
        ill = (enum service_ill)service_between(s, SERVICE_DOWN, SERVICE_USUAL);
    return ill;
}

/* On a day of few kinds: long enough to be judged. */
static void lone_trouble(struct service *s)
{
    /* The same engine all day, so the peers are in no back-off for earlier faults. */
    unsigned engine = (unsigned)service_below(s, s->engine_count);
    if (s->day == SERVICE_LONE)
        engine = s->rock == 0 ? 1 : 0;
    bool alone = true;
    for (unsigned i = 0; i < s->engine_count; i++)
        alone &= service_is_well(s, i);
    if (s->engines[engine].ill != SERVICE_WELL || (s->day == SERVICE_LONE && !alone))
        return;
    service_engine_ill(s, engine, draw_ill(s), service_between(s, 1000, 7000) * SERVICE_MS);
}

static void engine_trouble(struct service *s)
{
    unsigned engine = (unsigned)service_below(s, s->engine_count);
    struct service_engine *e = &s->engines[engine];
    if (engine == s->rock || e->ill != SERVICE_WELL || !e->up)
        return;
    enum service_ill ill = (enum service_ill)service_between(s, SERVICE_DOWN, SERVICE_USUAL);
    if (service_chance(s, 0.2))
        ill = service_chance(s, 0.5) ? SERVICE_HANGS : SERVICE_DOWN;
    if (s->field.odd && service_chance(s, 0.5))
        ill = service_chance(s, 0.5) ? SERVICE_EARLY : SERVICE_ENDLESS;
    bool otherwise = ill == SERVICE_REJECTS || ill == SERVICE_LOST_MODEL;
    uint64_t us = otherwise ? service_between(s, 1, 8) * SERVICE_S : length_us(s);
    if (ill == SERVICE_ENDLESS) /* longer than the random limits */
        us = service_between(s, 5, 9) * SERVICE_S;
    service_engine_ill(s, engine, ill, us);
}

/* Breaks the connections between a router and an engine, and nothing else. */
static void link_trouble(struct service *s)
{
    unsigned engine = (unsigned)service_below(s, s->engine_count);
    unsigned router = (unsigned)service_below(s, s->router_count);
    struct service_engine *e = &s->engines[engine];
    if (engine == s->rock || !e->up)
        return;
    service_say(s, "router %u and engine %u: all connections break", router, engine);
    service_ill_meets(s, engine);
    e->well_since_us = s->world.now_us;
    for (struct service_ask *a = s->asks; a; a = a->next) {
        for (struct service_attempt *t = a->attempts; t && !a->ended; t = t->next)
            t->broken |= t->engine == engine && a->client->router == router;
    }
    service_share_spoil(s);
    service_link_reset(s, router, engine);
}

static void router_trouble(struct service *s)
{
    if (!s->routers_fail)
        return;
    service_router_drain(s, (unsigned)service_below(s, s->router_count));
}

static void trouble(void *context, struct world_event *event)
{
    struct service *s = context;
    if (s->world.closing || !s->troubled)
        return;
    switch (s->day == SERVICE_MIXED ? service_below(s, 12) : UINT64_MAX) {
    case UINT64_MAX:
        lone_trouble(s);
        break;
    case 0:
    case 1:
        router_trouble(s);
        break;
    case 2:
    case 3:
        link_trouble(s);
        break;
    default:
        engine_trouble(s);
    }
    world_put(&s->world, service_between(s, 50, 900) * SERVICE_MS, event);
}

/* On a day when clients stick to a single router: so late and so long that the router detects the
 * stall and has no request left for a trial. */
static void last_trouble(void *context, struct world_event *event)
{
    struct service *s = context;
    unsigned engine = (unsigned)service_below(s, s->engine_count);
    (void)event;
    if (s->world.closing || !s->troubled || engine == s->rock || !service_is_well(s, engine))
        return;
    service_engine_ill(s, engine, service_chance(s, 0.5) ? SERVICE_HANGS : SERVICE_STUCK,
                       LAST_S * SERVICE_S);
}

void service_faults_begin(struct service *s)
{
    s->troubled = true;
    service_later(s, SERVICE_S, trouble, 0, 0, NULL);
    service_field_begin(s);
    if (s->sticks && s->day != SERVICE_LONE && s->seconds > LAST_S)
        service_later(s, (s->seconds - LAST_S) * SERVICE_S, last_trouble, 0, 0, NULL);
}

void service_faults_end(struct service *s)
{
    s->troubled = false;
    service_field_end(s);
    for (unsigned i = 0; i < s->engine_count; i++)
        service_engine_heal(s, i);
}
