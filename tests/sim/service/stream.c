#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "tests/sim/service/service.h"

enum {
    WAY_US = 120, /* least delay per direction */
    WAY_JITTER_US = 400,
    PIECE_MAX = 4096, /* most bytes that arrive together */
    READ_MAX = 65536,
    RETRY_US = 20000,     /* until lost bytes are sent again */
    AT_ONCE_MAX = 100000, /* events at the same time */
};

struct piece {
    struct service_end *to;
    enum { PIECE_BYTES, PIECE_END, PIECE_RESET, PIECE_ROOM } what;
    bool unasked;
    uint64_t number;
    size_t len;
    char bytes[];
};

static struct service_link *link_of(const struct service_end *e)
{
    const struct service_end *router = e->router != SERVICE_NOBODY ? e : e->peer;
    const struct service_end *engine = e->engine != SERVICE_NOBODY ? e : e->peer;
    if (router->router == SERVICE_NOBODY || engine->engine == SERVICE_NOBODY)
        return NULL;
    return &e->service->links[router->router][engine->engine];
}

static uint64_t way_us(struct service_end *e)
{
    struct service *s = e->service;
    uint64_t us = WAY_US + service_below(s, WAY_JITTER_US) + e->far_us;
    struct service_link *link = link_of(e);
    if (service_chance(s, 0.002)) { /* lost, and sent again */
        us += service_between(s, 5 * SERVICE_MS, 200 * SERVICE_MS);
        if (link)
            link->lost_us = s->world.now_us;
    }
    return us + (link ? link->slow_us : 0);
}

/* The value to which a smoothed average would converge. */
uint64_t service_end_round_trip_us(const struct service_end *e)
{
    const struct service_link *link = link_of(e);
    return 2 * (WAY_US + WAY_JITTER_US / 2 + e->far_us + (link ? link->slow_us : 0));
}

static void arrive(void *context, struct world_event *event);

static void post(struct service_end *from, struct piece *p)
{
    struct service *s = from->service;
    uint64_t at = s->world.now_us + way_us(from);
    if (at < from->last_us)
        at = from->last_us;
    from->last_us = at;
    p->to = from->peer;
    p->number = from->sent++;
    p->unasked = from->unasked;
    world_queue_put(&s->world.queue,
                    &(struct world_event){.at_us = at, .happen = arrive, .object = p});
}

static void post_word(struct service_end *from, int what)
{
    struct piece *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->what = what;
    post(from, p);
}

static void reset_arrived(struct service_end *e)
{
    e->in_end = e->in_reset = true;
    service_end_kick(e);
}

static void bytes_arrived(struct service_end *e, const struct piece *p)
{
    if (e->gone) /* never acknowledged */
        return;
    e->peer->flying -= p->len;
    if (!e->open) { /* already closed */
        if (!e->in_reset)
            post_word(e, PIECE_RESET);
        e->in_reset = true;
        return;
    }
    if (e->in_reset)
        return;
    if (p->unasked && e->unasked_us == 0)
        e->unasked_us = e->service->world.now_us;
    CHECK(buf_append(&e->in, p->bytes, p->len) == 0);
    service_end_kick(e);
}

/* The far end has read: there is room again. */
static void room_arrived(struct service_end *e)
{
    if (e->starved || e->queued_count > 0)
        service_end_kick(e);
}

static void arrive(void *context, struct world_event *event)
{
    struct service *s = context;
    struct piece *p = event->object;
    struct service_end *e = p->to;
    if (s->world.closing) {
        free(p);
        return;
    }
    const struct service_link *link = link_of(e);
    bool hole = link && link->hole_until_us > s->world.now_us;
    if (hole || p->number != e->arrived) {
        struct world_event again = *event;
        again.at_us = s->world.now_us + (hole ? RETRY_US : 1); /* the hole may end early */
        world_queue_put(&s->world.queue, &again);
        return;
    }
    e->arrived++;
    world_trace(&s->world, p->len << 2 | (unsigned)p->what);
    if (p->what == PIECE_BYTES)
        bytes_arrived(e, p);
    else if (p->what == PIECE_ROOM)
        room_arrived(e);
    else if (p->what == PIECE_RESET && !e->gone)
        reset_arrived(e);
    else if (!e->gone && e->open) {
        e->in_end = true;
        service_end_kick(e);
    }
    free(p);
}

/* --- actions --------------------------------------------------------------------------------- */

bool service_end_fails(const struct service_end *e)
{
    return e->in_reset;
}

static size_t room_of(const struct service_end *e)
{
    uint64_t used = e->flying + e->peer->in.len;
    size_t room = e->service->kernel_bytes;
    return used >= room ? 0 : room - (size_t)used;
}

size_t service_end_write(struct service_end *e, struct slice bytes)
{
    size_t wrote = 0;
    e->starved = false;
    if (e->in_reset)
        return 0;
    while (bytes.len > 0) {
        size_t n = room_of(e);
        if (n == 0)
            break;
        if (n > bytes.len)
            n = bytes.len;
        size_t most = 1 + service_below(e->service, PIECE_MAX);
        if (n > most && service_chance(e->service, 0.5))
            n = most;
        struct piece *p = malloc(sizeof *p + n);
        CHECK(p != NULL);
        *p = (struct piece){.what = PIECE_BYTES, .len = n};
        memcpy(p->bytes, bytes.at, n);
        e->flying += n;
        post(e, p);
        bytes = slice_skip(bytes, n);
        wrote += n;
    }
    e->starved = bytes.len > 0;
    return wrote;
}

static void room_made(struct service_end *e)
{
    if (e->peer->starved || e->peer->queued_count > 0)
        post_word(e, PIECE_ROOM);
}

size_t service_end_take(struct service_end *e, char *out, size_t max)
{
    size_t n = e->in.len < max ? e->in.len : max;
    if (n == 0)
        return 0;
    memcpy(out, e->in.at, n);
    e->service->world.trace =
        hash_mix(e->service->world.trace ^ hash_mix((uint64_t)(unsigned char)out[n - 1] << 20 ^ n));
    buf_consume(&e->in, n);
    room_made(e);
    return n;
}

void service_end_read(struct service_end *e, bool on)
{
    e->reading = on;
    if (on && (e->in.len > 0 || e->in_end))
        service_end_kick(e);
}

void service_end_finish(struct service_end *e)
{
    if (e->finished || !e->open)
        return;
    e->finished = true;
    if (e->queued_count == 0 && !e->in_reset)
        post_word(e, PIECE_END);
}

static void leave(struct service_end *e, bool reset)
{
    if (!e->open && !e->connecting)
        return;
    bool was_open = e->open;
    e->open = e->connecting = false;
    e->reading = false;
    e->queued_count = 0;
    bool lost = e->in.len > 0;
    buf_free(&e->in);
    if (e->in_reset || e->gone || !was_open)
        return;
    if (reset || lost) {
        e->in_reset = true;
        post_word(e, PIECE_RESET);
    } else if (!e->finished) {
        e->finished = true;
        post_word(e, PIECE_END);
    }
}

void service_end_close(struct service_end *e, bool reset)
{
    leave(e, reset);
    e->closing = true;
    if (!e->is)
        service_end_kick(e);
}

struct service_end *service_end_pair(struct service *s)
{
    struct service_end *pair = calloc(2, sizeof *pair);
    CHECK(pair != NULL);
    for (unsigned i = 0; i < 2; i++) {
        pair[i] = (struct service_end){
            .service = s, .peer = &pair[1 - i], .router = SERVICE_NOBODY, .engine = SERVICE_NOBODY};
        buf_init(&pair[i].in, 0);
    }
    pair->next = s->ends;
    s->ends = pair;
    return pair;
}

/* --- connecting ------------------------------------------------------------------------------ */

/* The listener at the far end answers. */
static void answer(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_end *e = event->object, *far = e->peer;
    if (s->world.closing)
        return;
    const struct service_link *link = link_of(e);
    if (link && link->hole_until_us > s->world.now_us) {
        struct world_event again = *event;
        again.at_us = s->world.now_us + 10 * RETRY_US;
        world_queue_put(&s->world.queue, &again);
        return;
    }
    bool takes = false;
    if (far->engine != SERVICE_NOBODY)
        takes = service_engine_accepts(&s->engines[far->engine]);
    else
        takes = service_router_up(&s->routers[far->router]) && s->routers[far->router].listening;
    e->connect_err = takes ? 0 : ERR_CLOSED;
    e->connect_known = true;
    e->open = takes && e->connecting;
    far->open = takes;
    if (takes && far->engine != SERVICE_NOBODY) {
        service_engine_accept(&s->engines[far->engine], far);
    } else if (takes) {
        struct service_router *r = &s->routers[far->router];
        char peer[32];
        (void)snprintf(peer, sizeof peer, "192.0.2.%u", 1 + (unsigned)service_below(s, 20));
        if (proxy_accept(r->node->node->proxy, &far->net, PROXY_PORT_CLIENT, peer,
                         world_mono_us(r->node) / 1000) != 0)
            service_end_close(far, false);
        service_router_touch(s, far->router);
    }
    if (takes && !e->connecting) /* given up meanwhile */
        post_word(e, PIECE_RESET);
    service_end_kick(e);
}

void service_end_connect(struct service_end *e)
{
    e->connecting = true;
    struct service *s = e->service;
    e->far_us = e->peer->far_us = service_field_far_us(s, e);
    /* At most one of the two directions is slow: no random limit on connecting is so short. */
    uint64_t at_us = s->world.now_us + way_us(e) + WAY_US + e->far_us;
    world_queue_put(&s->world.queue,
                    &(struct world_event){.at_us = at_us, .happen = answer, .object = e});
}

/* --- events ---------------------------------------------------------------------------------- */

static uint64_t now_ms(const struct service_end *e)
{
    return world_mono_us(e->service->routers[e->router].node) / 1000;
}

static bool proxy_queued(struct service_end *e)
{
    const struct net_events *events = e->net.events;
    if (e->in_reset) {
        e->queued_count = 0;
        events->written(e->net.owner, ERR_CLOSED, now_ms(e));
        return true;
    }
    while (e->queued_count > 0) {
        size_t n = service_end_write(e, e->queued[0]);
        e->queued[0] = slice_skip(e->queued[0], n);
        if (e->queued[0].len > 0)
            return false;
        e->queued_count--;
        memmove(e->queued, e->queued + 1, e->queued_count * sizeof e->queued[0]);
    }
    if (e->finished)
        post_word(e, PIECE_END);
    events->written(e->net.owner, 0, now_ms(e));
    return true;
}

static void proxy_received(struct service_end *e)
{
    struct service *s = e->service;
    const struct net_events *events = e->net.events;
    struct service_router *r = &s->routers[e->router];
    struct slice room = slice_of(NULL, 0);
    if (events->room != NULL)
        room = events->room(e->net.owner);
    if (room.len == 0)
        room = slice_of(r->read_buffer, sizeof r->read_buffer);
    size_t n = service_end_take(e, (char *)room.at, room.len < READ_MAX ? room.len : READ_MAX);
    events->received(e->net.owner, slice_of(room.at, n), now_ms(e));
}

/* Reports an event of a router's end to the proxy. False: none. */
static bool proxy_event(struct service_end *e)
{
    const struct net_events *events = e->net.events;
    if (e->closing) {
        e->closing = false;
        events->closed(e->net.owner);
    } else if (e->connecting) {
        if (!e->connect_known)
            return false;
        e->connecting = false;
        events->connected(e->net.owner, e->connect_err, now_ms(e));
    } else if (e->queued_count > 0 && proxy_queued(e)) {
        return true;
    } else if (e->open && e->reading && e->in.len > 0) {
        proxy_received(e);
    } else if (e->open && e->reading && e->in_end && !e->told_end) {
        e->told_end = true;
        events->ended(e->net.owner, e->in_reset ? ERR_CLOSED : 0, now_ms(e));
    } else {
        return false;
    }
    return true;
}

static bool other_event(struct service_end *e)
{
    if (e->connecting) {
        if (!e->connect_known)
            return false;
        e->connecting = false;
        e->is->connected(e->owner, e->connect_err);
    } else if (e->open && e->starved && (room_of(e) > 0 || e->in_reset)) {
        e->starved = false;
        e->is->writable(e->owner);
    } else if (e->open && e->reading && e->in.len > 0) {
        e->is->readable(e->owner);
    } else if (e->open && e->reading && e->in_end && !e->told_end) {
        e->told_end = true;
        e->is->ended(e->owner, e->in_reset);
    } else {
        return false;
    }
    return true;
}

static void ready(void *context, struct world_event *event)
{
    struct service *s = context;
    struct service_end *e = event->object;
    e->kicked = false;
    if (s->world.closing)
        return;
    s->at_once = s->at_us == s->world.now_us ? s->at_once + 1 : 0;
    s->at_us = s->world.now_us;
    if (s->at_once > AT_ONCE_MAX)
        service_broken(s, "livelock", "%u events at once", s->at_once);
    if (e->engine != SERVICE_NOBODY && s->engines[e->engine].stopped)
        return; /* service_ends_kick() follows */
    bool router = e->is == NULL;
    bool any = router ? proxy_event(e) : other_event(e);
    if (any && router)
        service_router_touch(s, e->router);
    if (any)
        service_end_kick(e);
}

void service_end_kick(struct service_end *e)
{
    if (e->kicked || e->gone || (e->is == NULL && e->net.events == NULL))
        return;
    e->kicked = true;
    world_put(&e->service->world, 0, &(struct world_event){.happen = ready, .object = e});
}

/* --- all of one process ---------------------------------------------------------------------- */

void service_ends_kick(struct service *s, unsigned engine)
{
    for (struct service_end *p = s->ends; p; p = p->next) {
        for (unsigned i = 0; i < 2; i++) {
            if (p[i].engine == engine && p[i].open)
                service_end_kick(&p[i]);
        }
    }
}

void service_ends_of_router_drop(struct service *s, unsigned router)
{
    for (struct service_end *p = s->ends; p; p = p->next) {
        for (unsigned i = 0; i < 2; i++) {
            struct service_end *e = &p[i];
            if (e->router != router)
                continue;
            leave(e, true);
            if (e->closing && e->net.events)
                e->net.events->closed(e->net.owner);
            e->closing = false;
            e->net.events = NULL;
        }
    }
}

void service_link_reset(struct service *s, unsigned router, unsigned engine)
{
    for (struct service_end *p = s->ends; p; p = p->next) {
        bool between = (p[0].router == router && p[1].engine == engine) ||
                       (p[1].router == router && p[0].engine == engine);
        for (unsigned i = 0; between && i < 2; i++) {
            if (p[i].open)
                reset_arrived(&p[i]);
        }
    }
}

void service_streams_free(struct service *s)
{
    while (s->ends) {
        struct service_end *p = s->ends;
        s->ends = p->next;
        buf_free(&p[0].in);
        buf_free(&p[1].in);
        free(p);
    }
}
