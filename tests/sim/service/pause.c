/* Rule "cut in a pause": a begun answer must not be cut if the engine would have finished it and
 * was silent for less than `stall-cut`. */
#include <string.h>

#include "tests/sim/service/service.h"

enum { GRACE_MS = 500, FAR_MS = 500 };

/* From the options of a day that has the setting; 0: pauses are not judged. */
static uint64_t stall_cut_ms(const struct service *s)
{
    int option = node_option_find(SLICE("stall-cut"));
    const char *options = (const char *)&s->routers[0].options;
    if (option < 0)
        return 0;
    return *(const uint64_t *)(const void *)(options + node_option_at((unsigned)option)->offset);
}

/* True if the attempt's only fault was silence for a while. */
static bool only_paused(const struct service_attempt *t)
{
    const uint64_t harmless = UINT64_C(1) << SERVICE_WELL | UINT64_C(1) << SERVICE_STOPPED |
                              UINT64_C(1) << SERVICE_STUCK | UINT64_C(1) << SERVICE_SLOW |
                              UINT64_C(1) << SERVICE_FAR | UINT64_C(1) << SERVICE_HEALTH_SLOW |
                              UINT64_C(1) << SERVICE_REJECTS | UINT64_C(1) << SERVICE_LOST_MODEL;
    const struct service_engine *e = &t->ask->service->engines[t->engine];
    return (t->ills & ~harmless) == 0 && !t->died && !t->broken && e->up && e->life == t->life;
}

void service_judge_pause(const struct service_ask *a)
{
    struct service *s = a->service;
    const struct service_attempt *t = a->attempts;
    const struct service_client *c = a->client;
    uint64_t most_ms = stall_cut_ms(s);
    uint64_t quiet_ms = t == NULL ? 0 : (s->world.now_us - t->sent_us) / SERVICE_MS;
    uint64_t far_ms = s->field.far ? FAR_MS : 0;
    /* If a request moved, the source of the cut answer is unknown here. */
    if (a->whole || t == NULL || a->ran != 1 || most_ms == 0 || !service_has_content(a))
        return;
    bool slow = c->manner == SERVICE_READS_SLOWLY || c->manner == SERVICE_TRICKLES;
    bool late = s->world.now_us >
                a->begun_us + s->routers[0].options.request_timeout_ms * SERVICE_MS - SERVICE_S;
    if (!only_paused(t) || slow || late || quiet_ms + GRACE_MS + far_ms >= most_ms)
        return;
    service_broken(s, "cut in a pause",
                   "request %llu, at engine %u: silent for %llu ms of %llu, ills %llx: %.120s",
                   (unsigned long long)a->number, t->engine, (unsigned long long)quiet_ms,
                   (unsigned long long)most_ms, (unsigned long long)t->ills,
                   a->body.len > 120 ? a->body.at + a->body.len - 120 : "");
}
