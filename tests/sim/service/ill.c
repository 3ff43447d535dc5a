/* Engines fall ill, and are well again. */
#include "base/check.h"
#include "tests/sim/service/engine_internal.h"

enum {
    OVER_US = 20000,
    BACK_US = 200000, /* a process needs at least that long to come back */
};

static void drained(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_engine *e = &s->engines[event->node];
    if (s->world.closing || !e->up || e->life != event->a)
        return;
    if (sim_engine_over(&life_of(e)->sim))
        service_engine_kill(s, e->number);
    else
        service_later(s, OVER_US, drained, event->node, event->a, NULL);
}

static void ill_over(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_engine *e = &s->engines[event->node];
    if (!s->world.closing && e->ill != SERVICE_WELL && e->ill_until_us <= s->world.now_us)
        service_engine_heal(s, event->node);
}

/* Another key, no template, another context length, ...: the engine rejects requests that the peers
 * accept. */
static void set_otherwise(struct service *s, struct life *l)
{
    static const unsigned kinds[] = {SIM_REJECT_401, SIM_REJECT_403, SIM_REJECT_404, SIM_REJECT_422,
                                     SIM_REJECT_NO_TEMPLATE};
    uint64_t kind = service_below(s, ARRAY_LEN(kinds) + 1);
    if (kind == ARRAY_LEN(kinds))
        l->sim.options.model_len_max = service_between(s, 40, 200);
    else
        l->sim.options.reject = kinds[kind];
    service_say(s, "engine %u: rejects %llu, context %llu", l->engine->number,
                (unsigned long long)l->sim.options.reject,
                (unsigned long long)l->sim.options.model_len_max);
}

/* Restores the engine's options. */
static void set_back(struct life *l)
{
    l->sim.options.reject = SIM_REJECT_NONE;
    l->sim.options.model_len_max = l->model_len;
    if (l->engine->ill == SERVICE_LOST_MODEL)
        sim_engine_serve(&l->sim, "m", NULL);
    if (l->engine->ill == SERVICE_STOPPED || l->engine->ill == SERVICE_STUCK)
        sim_engine_rate(&l->sim, 1);
}

void service_engine_ill(struct service *s, unsigned engine, enum service_ill ill, uint64_t us)
{
    struct service_engine *e = &s->engines[engine];
    service_ill_meets(s, engine);
    e->ill = ill;
    for (struct service_attempt *t = e->open; t; t = t->open_next) {
        t->ill = ill;
    }
    service_ill_reaches(s, engine, ill);
    service_share_begin(s, engine);
    e->ill_until_us = s->world.now_us + us;
    e->ill_health = service_chance(s, 0.5);
    e->ill_after = (unsigned)service_below(s, 5);
    service_say(s, "engine %u: %s for %.3f s", engine, service_ill_text(ill), (double)us / 1e6);
    service_later(s, us, ill_over, engine, 0, NULL);
    struct life *l = life_of(e);
    struct sim_fail fail = {.count = UINT64_MAX,
                            .delay_ms = service_between(s, 100, 2500),
                            .after_chunks = e->ill_after};
    if (ill == SERVICE_DOWN) {
        service_engine_kill(s, engine);
        return;
    }
    CHECK(l != NULL);
    fail.mode = ill == SERVICE_HANGS        ? SIM_FAIL_HANG
                : ill == SERVICE_SLOW       ? SIM_FAIL_SLOW
                : ill == SERVICE_RESETS     ? SIM_FAIL_RESET
                : ill == SERVICE_ERROR_LATE ? SIM_FAIL_ERROR
                                            : SIM_FAIL_NONE;
    l->sim.fail = fail;
    if (ill == SERVICE_STOPPED || ill == SERVICE_STUCK)
        sim_engine_rate(&l->sim, 0);
    if (ill == SERVICE_STOPPED)
        e->stopped = true;
    if (ill == SERVICE_REJECTS)
        set_otherwise(s, l);
    if (ill == SERVICE_LOST_MODEL)
        sim_engine_serve(&l->sim, "other", NULL);
    if (ill == SERVICE_DRAINS) {
        sim_engine_terminate(&l->sim);
        service_later(s, OVER_US, drained, engine, e->life, NULL);
    }
    for (unsigned i = 0; ill == SERVICE_FAR && i < s->router_count; i++) {
        if (e->ill_health || service_chance(s, 0.5))
            s->links[i][engine].hole_until_us = e->ill_until_us;
    }
    service_engine_settle(e);
}

bool service_ill_computes(const struct service_engine *e)
{
    return e->ill != SERVICE_HANGS && e->ill != SERVICE_STUCK && e->ill != SERVICE_STOPPED;
}

/* True if the process needs a moment more to come back. */
static bool starts_later(struct service *s, struct service_engine *e)
{
    if (e->up || s->world.now_us >= e->gone_us + BACK_US)
        return false;
    e->ill = SERVICE_DOWN;
    e->ill_until_us = e->gone_us + BACK_US;
    service_later(s, e->ill_until_us - s->world.now_us, ill_over, e->number, 0, NULL);
    return true;
}

static void goes_on(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_engine *e = &s->engines[event->node];
    if (s->world.closing || !e->up || e->life != event->a || e->stopped)
        return;
    sim_engine_run(&life_of(e)->sim);
    service_engine_settle(e);
}

void service_engine_heal(struct service *s, unsigned engine)
{
    struct service_engine *e = &s->engines[engine];
    enum service_ill was = e->ill;
    if (was == SERVICE_WELL)
        return;
    if (was == SERVICE_DRAINS || was == SERVICE_DRAINS_503)
        service_engine_kill(s, engine);
    if (starts_later(s, e))
        return;
    service_say(s, "engine %u: no %s any more", engine, service_ill_text(was));
    service_share_end(s, engine);
    if (e->up)
        set_back(life_of(e));
    e->ill = SERVICE_WELL;
    e->ill_health = false;
    e->well_since_us = s->world.now_us;
    if (!e->up)
        service_engine_start(s, engine);
    life_of(e)->sim.fail = (struct sim_fail){.mode = SIM_FAIL_NONE};
    for (unsigned i = 0; i < s->router_count; i++)
        if (s->links[i][engine].hole_until_us > s->world.now_us)
            s->links[i][engine].hole_until_us = s->world.now_us;
    if (e->stopped) {
        e->stopped = false;
        service_ends_kick(s, engine); /* waiting bytes are read before timers run */
        service_later(s, 1, goes_on, engine, e->life, NULL);
    }
    service_engine_settle(e);
}

const char *service_ill_text(enum service_ill ill)
{
    static const char *const texts[SERVICE_ILLS] = {
        [SERVICE_WELL] = "well",
        [SERVICE_DOWN] = "down",
        [SERVICE_STOPPED] = "stopped",
        [SERVICE_HANGS] = "hangs",
        [SERVICE_SLOW] = "slow",
        [SERVICE_500] = "500",
        [SERVICE_503] = "503",
        [SERVICE_429] = "429",
        [SERVICE_ERROR_EVENT] = "error event",
        [SERVICE_RESETS] = "resets",
        [SERVICE_UNFINISHED] = "unfinished",
        [SERVICE_SHORT] = "short",
        [SERVICE_GARBAGE] = "garbage",
        [SERVICE_DRAINS] = "drains",
        [SERVICE_DRAINS_503] = "drains with 503",
        [SERVICE_CLOSES] = "closes",
        [SERVICE_HEALTH_SLOW] = "slow health",
        [SERVICE_STUCK] = "stuck",
        [SERVICE_REJECTS] = "rejects",
        [SERVICE_LOST_MODEL] = "lost model",
        [SERVICE_ERROR_LATE] = "late error event",
        [SERVICE_FAR] = "far",
        [SERVICE_EARLY] = "answers early",
        [SERVICE_ENDLESS] = "endless heads",
    };
    return texts[ill];
}
