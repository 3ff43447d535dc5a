/* Real conditions that a clean network lacks: far peers, names that move or get no answer, a router
 * that is short of a resource. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/service/service.h"

enum {
    FAR_MOST_US = 150000, /* per direction: a round trip of 300 ms */
    FAR_BYTES = 65536,    /* every system buffers that much on such a link */
    FOLLOWS_US = 20000000,
};

void service_field_draw(struct service *s)
{
    struct service_field *f = &s->field;
    struct prng p; /* separate: a run without far peers is unchanged */
    prng_seed(&p, s->settings.seed * 104729 + 11);
    bool lone = s->day == SERVICE_LONE;
    f->far = prng_below(&p, 4) == 0 && !lone;
    f->odd = prng_below(&p, 4) == 0 && !lone;
    f->shortages = prng_below(&p, 4) == 0 && !lone;
    f->names = prng_below(&p, 4) == 0 && !lone;
    bool silent = prng_below(&p, 2) == 0 && s->rock != SERVICE_NOBODY;
    f->silent = silent ? (s->rock + 1) % s->engine_count : SERVICE_NOBODY;
    for (unsigned i = 0; i < s->engine_count; i++) {
        f->dns[i] = (struct service_name){.ids = {++f->last_id}, .count = 1};
        for (unsigned k = 0; k < s->router_count; k++)
            f->engines_us[k][i] = prng_below(&p, FAR_MOST_US);
    }
    f->clients_us = 1 + prng_below(&p, FAR_MOST_US);
    if (f->far && s->kernel_bytes < FAR_BYTES)
        s->kernel_bytes = FAR_BYTES;
    service_say(s, "field:%s%s%s%s%s", f->far ? " far" : "", f->odd ? " odd" : "",
                f->shortages ? " shortages" : "", f->names ? " names" : "",
                f->names && silent ? " silent" : "");
}

uint64_t service_field_far_us(struct service *s, const struct service_end *e)
{
    if (!s->field.far)
        return 0;
    if (e->peer->engine == SERVICE_NOBODY)
        return service_below(s, s->field.clients_us);
    return s->field.engines_us[e->router][e->peer->engine];
}

/* --- shortages -------------------------------------------------------------------------------- */

static void runs_short(void *context, struct world_event *event)
{
    static const int errs[] = {ERR_FULL, ERR_LIMIT, ERR_NOMEM};
    struct service *s = context;
    if (s->world.closing || !s->troubled)
        return;
    unsigned router = (unsigned)service_below(s, s->router_count);
    struct service_shortage *short_of = &s->field.short_of[router];
    uint64_t us = service_between(s, 20, 2500) * SERVICE_MS;
    int err = errs[service_below(s, ARRAY_LEN(errs))];
    *short_of = (struct service_shortage){.until_us = s->world.now_us + us,
                                          .err = err,
                                          .engine = SERVICE_NOBODY,
                                          .late = service_chance(s, 0.3)};
    if (err == ERR_FULL && service_chance(s, 0.5)) /* no port is left towards one address */
        short_of->engine = (unsigned)service_below(s, s->engine_count);
    for (unsigned i = 0; i < s->engine_count && service_router_up(&s->routers[router]); i++) {
        /* An engine that owes a probe an answer, and lets the probe wait, is avoided for that. */
        if (!service_is_blamed(s, router, i) && !service_owes_answer(s, router, i))
            short_of->used |= UINT64_C(1) << i;
    }
    short_of->used &= ~service_ills(s);
    service_say(s, "router %u: short of %d towards %u for %.3f s", router, err, short_of->engine,
                (double)us / 1e6);
    world_put(&s->world, us + service_between(s, 100, 3000) * SERVICE_MS, event);
}

int service_field_short_of(struct service *s, const struct service_host *h, bool *late)
{
    const struct service_shortage *of = &s->field.short_of[h->router];
    *late = of->late;
    bool met = of->engine == SERVICE_NOBODY || of->engine == h->engine;
    return met && s->world.now_us < of->until_us ? of->err : 0;
}

void service_judge_shortage(struct service *s)
{
    uint64_t ills = service_ills(s);
    for (unsigned r = 0; r < s->router_count; r++) {
        struct service_shortage *of = &s->field.short_of[r];
        const struct service_router *router = &s->routers[r];
        of->used &= ~ills;
        if (s->world.now_us > of->until_us + SERVICE_S || !service_router_up(router) ||
            router->draining || router->began_us + 3 * SERVICE_S > s->world.now_us)
            of->used = 0;
        for (unsigned i = 0; of->used != 0 && i < s->engine_count; i++) {
            if ((of->used & UINT64_C(1) << i) != 0 && service_blames(s, r, i))
                service_broken(s, "charged", "router %u was short of something, engine %u pays", r,
                               i);
        }
    }
}

/* --- names ------------------------------------------------------------------------------------ */

static bool has(const struct service_name *n, uint32_t id)
{
    unsigned i = 0;
    while (i < n->count && n->ids[i] != id)
        i++;
    return i < n->count;
}

bool service_field_is_unknown(const struct service *s, unsigned engine)
{
    for (unsigned i = 0; s->field.names && i < s->router_count; i++) {
        const struct service_host *h = s->field.hosts[i][engine];
        if (h != NULL && h->known.count == 0)
            return true;
    }
    return false;
}

/* An engine's name gets another address; the old address answers still, and may stay in the
 * name. */
static void moves(void *context, struct world_event *event)
{
    struct service *s = context;
    if (s->world.closing || !s->troubled)
        return;
    struct service_name *n = &s->field.dns[service_below(s, s->engine_count)];
    if (service_chance(s, 0.3))
        n->ids[1] = n->ids[0];
    n->count = n->ids[1] == n->ids[0] ? 2 : 1;
    n->ids[0] = ++s->field.last_id;
    world_put(&s->world, service_between(s, 200, 2000) * SERVICE_MS, event);
}

static void resolved(struct service_host *h, bool more)
{
    struct service *s = h->service;
    const struct service_name *n = &s->field.dns[h->engine];
    struct net_found found = {
        .count = n->count, .err = ERR_NOT_FOUND, .error = "none", .more = more};
    for (unsigned i = 0; i < n->count; i++) {
        unsigned at = 0;
        while (at < h->known.count && h->known.ids[at] != n->ids[i])
            at++;
        found.before[i] = (uint8_t)(at < h->known.count ? at : NET_ADDRESS_NEW);
    }
    h->known = *n;
    h->host.resolved(h->host.owner, &found, world_mono_us(s->routers[h->router].node) / 1000);
    service_router_touch(s, h->router);
}

/* The name was unknown for a while: as if the engine had been ill. */
static void came_late(struct service_host *h)
{
    struct service *s = h->service;
    service_ill_meets(s, h->engine);
    s->engines[h->engine].well_since_us = s->world.now_us;
}

/* A look-up returns the name's addresses, continues for a while, and reports changes. (The daemon's
 * look-up ends at once, and begins again each 30 s: longer than a run.) */
static void tells(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_host *h = event->object;
    if (s->world.closing || h->closed) {
        free(h);
        return;
    }
    bool ends = h->told && s->world.now_us > h->asked_us + FOLLOWS_US;
    bool same = h->told && memcmp(&h->known, &s->field.dns[h->engine], sizeof h->known) == 0;
    if (!h->told && s->world.now_us > h->asked_us + SERVICE_S && h->known.count == 0)
        came_late(h);
    h->told = true;
    if (ends)
        h->asked_us = 0;
    else
        world_put(&s->world, service_between(s, 50, 800) * SERVICE_MS, event);
    if (ends || !same)
        resolved(h, !ends);
}

void service_field_resolve(struct service_host *h)
{
    struct service *s = h->service;
    uint64_t us = service_between(s, 1, 50) * SERVICE_MS;
    if (h->engine == s->field.silent)
        us = service_between(s, 1000, 7000) * SERVICE_MS;
    h->asked_us = s->world.now_us + 1; /* not 0 */
    h->told = false;
    service_later(s, us, tells, 0, 0, h);
}

/* --- what a router sends ---------------------------------------------------------------------- */

static bool begins_request(struct slice bytes)
{
    return slice_starts_with(bytes, SLICE("POST /")) || slice_starts_with(bytes, SLICE("GET /"));
}

static struct service_ask *ask_of(struct service *s, struct slice bytes)
{
    static const char mark[] = "-Request-Id: svc-";
    for (size_t i = 0; i + sizeof mark < bytes.len; i++) {
        if (strncasecmp(bytes.at + i, mark, sizeof mark - 1) == 0)
            return service_ask_find(s, strtoull(bytes.at + i + sizeof mark - 1, NULL, 10));
    }
    return NULL;
}

static void crosses(struct service_end *e)
{
    e->crossed = true;
    if (e->ask != NULL)
        e->ask->crossed = true;
}

void service_field_writes(struct service_end *e, struct slice bytes)
{
    struct service *s = e->service;
    if (e->peer->engine == SERVICE_NOBODY || !begins_request(bytes))
        return;
    bool arrived = e->unasked_us != 0 && e->unasked_us < s->world.now_us;
    e->ask = s->field.odd ? ask_of(s, bytes) : NULL;
    if (e->peer->unasked && !arrived)
        crosses(e);
    const struct service_host *h = s->field.hosts[e->router][e->peer->engine];
    if (e->asked && e->address != 0 && h != NULL && !has(&h->known, e->address))
        service_broken(s, "old address", "router %u asks engine %u where its name is no more",
                       e->router, e->peer->engine);
    e->asked = true;
}

void service_field_unasked(struct service_end *e)
{
    e->unasked = true;
    if (e->peer->flying > 0)
        crosses(e->peer);
}

void service_field_begin(struct service *s)
{
    if (s->field.shortages)
        service_later(s, service_between(s, 500, 2000) * SERVICE_MS, runs_short, 0, 0, NULL);
    if (s->field.names)
        service_later(s, service_between(s, 200, 2000) * SERVICE_MS, moves, 0, 0, NULL);
}

void service_field_end(struct service *s)
{
    for (unsigned i = 0; i < s->router_count; i++) {
        if (s->field.short_of[i].until_us > s->world.now_us)
            s->field.short_of[i].until_us = s->world.now_us;
    }
}
