#include "tests/engine-sim/kv_publisher.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct message {
    uint64_t number;
    struct buf payload;
};

struct rank {
    struct sim_kv_events *events;
    struct message *kept;
    uint64_t published; /* number of all messages; message N is kept at N % kept */
    uint64_t number;    /* number of the next message */
    uint64_t steps;     /* the model's steps at the last publication */
    uint64_t drop, lose;
};

struct sim_publisher {
    struct sim_kv_config config;
    struct sim_ranks *ranks;
    const struct sim_kv_carrier *carrier; /* NULL: none */
    bool stopped;
    bool silent; /* to requests for messages */
    unsigned count;
    struct rank of[SIM_RANKS_MAX];
};

/* The engine begins with an empty cache. */
static void begin(struct sim_publisher *p, struct rank *r)
{
    const struct sim_model_watch *watch = sim_kv_events_watch(r->events);
    sim_kv_events_forget(r->events);
    if (sim_kv_form(p->config.form) == SIM_KV_SGLANG)
        watch->cleared(watch->context);
}

struct sim_publisher *sim_publisher_create(const struct sim_kv_config *config,
                                           struct sim_ranks *ranks)
{
    enum sim_kv_of of = sim_kv_form(config->form);
    if (of == SIM_KV_NONE)
        return NULL;
    struct sim_publisher *p = calloc(1, sizeof *p);
    CHECK(p != NULL && config->kept > 0 && config->kept <= SIM_KV_KEPT_MAX);
    p->config = *config;
    p->ranks = ranks;
    p->count = ranks->count;
    for (unsigned i = 0; i < p->count; i++) {
        struct rank *r = &p->of[i];
        r->events = sim_kv_events_create(config->form, config->first + i, config->bytes);
        r->kept = calloc(config->kept, sizeof *r->kept);
        CHECK(r->events != NULL && r->kept != NULL);
        /* vLLM keeps blocks computed by two requests at once twice. */
        sim_model_watch(ranks->models[i], sim_kv_events_watch(r->events), of == SIM_KV_VLLM);
        begin(p, r);
    }
    return p;
}

static void forget_messages(struct sim_publisher *p, struct rank *r)
{
    for (uint64_t i = 0; i < p->config.kept; i++)
        buf_free(&r->kept[i].payload);
    r->published = 0;
}

void sim_publisher_destroy(struct sim_publisher *p)
{
    if (p == NULL)
        return;
    for (unsigned i = 0; i < p->count; i++) {
        forget_messages(p, &p->of[i]);
        free(p->of[i].kept);
        sim_kv_events_destroy(p->of[i].events);
    }
    free(p);
}

void sim_publisher_carry(struct sim_publisher *p, const struct sim_kv_carrier *carrier)
{
    p->carrier = carrier;
}

void sim_publisher_ports(struct sim_publisher *p, unsigned port, unsigned again)
{
    p->config.port = port;
    p->config.again = again;
}

const struct sim_kv_config *sim_publisher_config(const struct sim_publisher *p)
{
    return &p->config;
}

unsigned sim_publisher_ranks(const struct sim_publisher *p)
{
    return p->count;
}

static void publish(struct sim_publisher *p, unsigned rank, struct buf *payload)
{
    struct rank *r = &p->of[rank];
    uint64_t number = r->number++;
    bool lost = r->lose > 0, dropped = lost || r->drop > 0;
    *(lost ? &r->lose : &r->drop) -= dropped;
    if (!dropped && p->carrier != NULL)
        p->carrier->send(p->carrier->context, rank, number, buf_slice(payload));
    if (lost) {
        buf_free(payload);
        return;
    }
    struct message *m = &r->kept[r->published++ % p->config.kept];
    buf_free(&m->payload);
    *m = (struct message){number, *payload};
}

void sim_publisher_step(struct sim_publisher *p, double unix_s, bool idle)
{
    bool at_once = idle || sim_kv_form(p->config.form) == SIM_KV_SGLANG;
    for (unsigned i = 0; i < p->count && !p->stopped; i++) {
        struct rank *r = &p->of[i];
        uint64_t steps = sim_model_counters(p->ranks->models[i])->steps;
        struct buf payload = {.at = NULL};
        if (steps == r->steps && !at_once)
            continue;
        r->steps = steps;
        if (sim_kv_events_take(r->events, unix_s, &payload))
            publish(p, i, &payload);
    }
}

static void listen_to(struct sim_publisher *p, bool on)
{
    if (p->carrier != NULL)
        p->carrier->listen(p->carrier->context, on);
}

void sim_publisher_stop(struct sim_publisher *p)
{
    if (!p->stopped)
        listen_to(p, false);
    p->stopped = true;
}

void sim_publisher_start(struct sim_publisher *p)
{
    for (unsigned i = 0; i < p->count; i++) {
        struct rank *r = &p->of[i];
        forget_messages(p, r);
        r->number = r->drop = r->lose = 0;
        r->steps = sim_model_counters(p->ranks->models[i])->steps;
        begin(p, r);
    }
    if (p->stopped)
        listen_to(p, true);
    p->stopped = false;
}

uint64_t sim_publisher_number(const struct sim_publisher *p, unsigned rank)
{
    return p->of[rank].number;
}

bool sim_publisher_replay(const struct sim_publisher *p, unsigned rank, uint64_t from,
                          void (*each)(void *context, uint64_t number, struct slice payload),
                          void *context)
{
    const struct rank *r = &p->of[rank];
    uint64_t kept = r->published < p->config.kept ? r->published : p->config.kept;
    if (p->stopped || p->silent)
        return false;
    for (uint64_t i = r->published - kept; i < r->published; i++) {
        const struct message *m = &r->kept[i % p->config.kept];
        if (m->number >= from)
            each(context, m->number, buf_slice(&m->payload));
    }
    return true;
}

/* --- faults ---------------------------------------------------------------------------------- */

void sim_publisher_drop(struct sim_publisher *p, unsigned rank, uint64_t messages, bool lost)
{
    *(lost ? &p->of[rank].lose : &p->of[rank].drop) = messages;
}

void sim_publisher_renumber(struct sim_publisher *p, unsigned rank, uint64_t number)
{
    p->of[rank].number = number;
}

void sim_publisher_forget(struct sim_publisher *p, unsigned rank)
{
    sim_kv_events_mute(p->of[rank].events, true);
    sim_model_forget(p->ranks->models[rank], true);
    sim_kv_events_mute(p->of[rank].events, false);
}

void sim_publisher_answer(struct sim_publisher *p, bool answers)
{
    p->silent = !answers;
}

void sim_publisher_cut(struct sim_publisher *p)
{
    if (p->stopped)
        return;
    listen_to(p, false);
    listen_to(p, true);
}
