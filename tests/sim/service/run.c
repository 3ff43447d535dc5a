/* A run, from the seed on. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "tests/sim/service/service.h"

uint64_t service_below(struct service *s, uint64_t below)
{
    return prng_below(&s->world.prng, below);
}

void service_later(struct service *s, uint64_t us, void (*happen)(void *, struct world_event *),
                   unsigned node, uint64_t a, void *object)
{
    world_put(&s->world, us,
              &(struct world_event){.happen = happen, .node = node, .a = a, .object = object});
}

static struct service *open_service(const struct service_settings *settings)
{
    struct service *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->settings = *settings;
    struct prng p;
    prng_seed(&p, settings->seed * 7919 + 3);
    s->router_count = settings->routers > 0 ? (unsigned)settings->routers
                                            : 1 + (unsigned)prng_below(&p, SERVICE_ROUTERS_MAX);
    s->engine_count = 2 + (unsigned)prng_below(&p, SERVICE_ENGINES_MAX - 1);
    s->rock = prng_below(&p, 4) == 0 ? SERVICE_NOBODY : (unsigned)prng_below(&p, s->engine_count);
    s->seconds = settings->seconds > 0 ? (unsigned)settings->seconds : 10;
    s->clients_max = 6 + (unsigned)prng_below(&p, 20);
    s->kernel_bytes = UINT64_C(1) << (9 + prng_below(&p, 9)); /* 512 bytes to 128 KB */
    s->routers_fail = prng_below(&p, 2) == 0;
    s->hosts_named = node_option_find(SLICE("host-header")) >= 0 && prng_below(&p, 4) == 0;
    uint64_t day = prng_below(&p, 4);
    s->day = day == 0 ? SERVICE_LONE : day == 1 ? SERVICE_PAUSES : SERVICE_MIXED;
    if (s->day == SERVICE_LONE) /* enough to tell shares apart */
        s->clients_max += 15;
    s->patient = s->day == SERVICE_PAUSES || prng_below(&p, 3) == 0;
    s->sticks = prng_below(&p, 2) == 0;
    s->goes_on = prng_below(&p, 3) == 0;
    world_open(&s->world, s->router_count, settings->seed);
    s->world.checks = false;
    service_field_draw(s);
    service_engines_open(s);
    service_routers_open(s);
    return s;
}

static void close_service(struct service *s)
{
    service_routers_free(s);
    service_engines_free(s);
    world_close(&s->world);
    service_clients_free(s);
    service_asks_free(s);
    service_streams_free(s);
    free(s);
}

/* Each router may use each engine again, with or without requests. */
static void aftermath(struct service *s)
{
    enum { SLOW_US = 500000 };
    if (s->goes_on) {
        s->sticks = true;
        s->favourite = (unsigned)service_below(s, s->router_count);
        s->moves_us = UINT64_MAX;
        s->arrive_us = SLOW_US;
        service_judge_aftermath(s);
    }
    s->working = false;
    service_judge_rest(s);
    service_judge_aftermath(s);
}

uint64_t service_run_seed(const struct service_settings *settings)
{
    struct service *s = open_service(settings);
    struct world *w = &s->world;
    for (unsigned i = 0; i < s->router_count; i++)
        service_router_start(s, i);
    world_run(w, 4 * SERVICE_S);
    service_clients_begin(s);
    service_faults_begin(s);
    uint64_t until = w->now_us + s->seconds * SERVICE_S;
    while (w->now_us < until) {
        world_run(w, 100 * SERVICE_MS);
        service_judge_all(s);
        (void)service_judge_use(s);
        service_judge_shortage(s);
        service_judge_charges(s);
    }
    service_faults_end(s);
    aftermath(s);
    uint64_t steps = w->events;
    printf("ok seed %llu service nodes %u: %llu steps, %u engines, %llu requests, %llu whole, %llu "
           "failed, %llu cut, %llu left, trace %016llx\n",
           (unsigned long long)settings->seed, s->router_count, (unsigned long long)steps,
           s->engine_count, (unsigned long long)s->ask_count, (unsigned long long)s->whole,
           (unsigned long long)s->failed, (unsigned long long)s->cut, (unsigned long long)s->left,
           (unsigned long long)w->trace);
    (void)fflush(stdout);
    close_service(s);
    return steps;
}

void service_say(const struct service *s, const char *format, ...)
{
    if (!s->settings.verbose)
        return;
    va_list args;
    va_start(args, format);
    printf("%10.6f ", (double)s->world.now_us / 1e6);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

void service_broken(const struct service *s, const char *rule, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    for (char *at = text; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~')
            *at = '.';
    }
    printf("BROKEN %s: seed %llu, service, %u nodes, at %.6f s: %s\n", rule,
           (unsigned long long)s->settings.seed, s->router_count, (double)s->world.now_us / 1e6,
           text);
    (void)fflush(stdout);
    _Exit(1);
}
