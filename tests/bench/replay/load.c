/* Replays a trace: sessions in a closed loop, or started at their times. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/bench/replay/prompt.h"
#include "tests/bench/replay/run.h"

struct load;

/* The state of a running session. Later sessions reuse slots. */
struct slot {
    struct load *load;
    struct prompt prompt;
    struct exchange ex;
    uv_timer_t timer;
    size_t session, turn;
    struct slot *next, *next_free;
};

struct load {
    struct run *run;
    struct trace trace;
    struct slot *slots, *free;
    size_t running; /* sessions */
    size_t next_session;
    uv_timer_t arrivals; /* of a timed trace */
};

static void turn_send(struct slot *slot);
static void session_next(struct load *l);

static uint64_t wall_ms(const struct load *l, double trace_s)
{
    double ms = trace_s * 1000 / l->run->settings->speed_up;
    return ms < 0 ? 0 : (uint64_t)(ms + 0.5);
}

static void end_if_done(struct load *l)
{
    bool none_left = l->running == 0 && l->next_session == l->trace.session_count;
    if (l->run->in_flight > 0 || !(none_left || l->run->stopping) ||
        uv_is_closing((uv_handle_t *)&l->arrivals))
        return;
    uv_close((uv_handle_t *)&l->arrivals, NULL);
    for (struct slot *slot = l->slots; slot != NULL; slot = slot->next)
        uv_close((uv_handle_t *)&slot->timer, NULL);
    run_finish(l->run);
}

static void session_end(struct slot *slot)
{
    struct load *l = slot->load;
    (void)uv_timer_stop(&slot->timer);
    slot->next_free = l->free;
    l->free = slot;
    l->running--;
    if (!l->trace.timed)
        session_next(l);
    end_if_done(l);
}

static void on_turn(uv_timer_t *timer)
{
    turn_send(timer->data);
}

static void on_done(struct exchange *ex)
{
    struct slot *slot = CONTAINER_OF(ex, struct slot, ex);
    struct load *l = slot->load;
    run_end(l->run, ex);
    const struct trace_session *s = &l->trace.sessions[slot->session];
    if (++slot->turn == s->turn_count || l->run->stopping) {
        session_end(slot);
        return;
    }
    double think_s = l->trace.turns[s->turn_first + slot->turn].think_s;
    CHECK(uv_timer_start(&slot->timer, on_turn, wall_ms(l, think_s), 0) == 0);
}

static void turn_send(struct slot *slot)
{
    struct load *l = slot->load;
    struct run *r = l->run;
    const struct trace_session *s = &l->trace.sessions[slot->session];
    prompt_build(&slot->prompt, &l->trace, &l->trace.turns[s->turn_first + slot->turn]);
    slot->ex.body[0] = uv_buf_init(slot->prompt.body.at, (unsigned)slot->prompt.body.len);
    slot->ex.body_count = 1;
    slot->ex.session = r->settings->session_header ? s->name : NULL;
    slot->ex.done = on_done;
    if (!run_begin(r, &slot->ex)) {
        session_end(slot);
        return;
    }
    client_send(&r->client, &slot->ex, prng_below(&r->random, r->client.target_count));
}

static struct slot *slot_take(struct load *l)
{
    struct slot *slot = l->free;
    if (slot != NULL) {
        l->free = slot->next_free;
        return slot;
    }
    slot = calloc(1, sizeof *slot);
    CHECK(slot != NULL);
    slot->load = l;
    prompt_init(&slot->prompt, l->run->settings->model, l->run->settings->stream);
    CHECK(uv_timer_init(&l->run->loop, &slot->timer) == 0);
    slot->timer.data = slot;
    slot->next = l->slots;
    l->slots = slot;
    return slot;
}

static void session_start(struct load *l, uint64_t delay_ms)
{
    struct slot *slot = slot_take(l);
    slot->session = l->next_session++;
    slot->turn = 0;
    l->running++;
    prompt_reset(&slot->prompt, l->trace.sessions[slot->session].seed);
    CHECK(uv_timer_start(&slot->timer, on_turn, delay_ms, 0) == 0);
}

static void session_next(struct load *l)
{
    if (!l->run->stopping && l->next_session < l->trace.session_count)
        session_start(l, 0);
}

/* Starts all due sessions, and sets the timer for the next. */
static void on_arrivals(uv_timer_t *timer)
{
    struct load *l = timer->data;
    double now_s = (double)(uv_hrtime() - l->run->start_ns) / 1e9 * l->run->settings->speed_up;
    while (!l->run->stopping && l->next_session < l->trace.session_count) {
        double wait_s = l->trace.sessions[l->next_session].start_s - now_s;
        if (wait_s > 0) {
            uint64_t wait_ms = wall_ms(l, wait_s);
            CHECK(uv_timer_start(timer, on_arrivals, wait_ms == 0 ? 1 : wait_ms, 0) == 0);
            return;
        }
        session_start(l, 0);
    }
    end_if_done(l);
}

static size_t expected(const struct load *l)
{
    size_t max = l->run->settings->requests_max;
    return max > 0 && max < l->trace.turn_count ? max : l->trace.turn_count;
}

int load_run(struct run *r)
{
    struct load l = {.run = r};
    int err = trace_load(&l.trace, r->settings->trace, &r->settings->trace_options);
    if (err != 0) {
        trace_free(&l.trace);
        return err;
    }
    r->expected = expected(&l);
    CHECK(uv_timer_init(&r->loop, &l.arrivals) == 0);
    l.arrivals.data = &l;
    run_start(r);
    if (l.trace.timed) {
        on_arrivals(&l.arrivals);
    } else {
        /* The first sessions do not begin all at once, but within the ramp. */
        for (size_t i = 0; i < r->settings->sessions && l.next_session < l.trace.session_count; i++)
            session_start(&l, wall_ms(&l, prng_unit(&r->random) * r->settings->ramp_s));
    }
    CHECK(uv_run(&r->loop, UV_RUN_DEFAULT) == 0);
    struct slot *next;
    for (struct slot *slot = l.slots; slot != NULL; slot = next) {
        next = slot->next;
        prompt_free(&slot->prompt);
        exchange_free(&slot->ex);
        free(slot);
    }
    trace_free(&l.trace);
    return 0;
}
