/* The answers in shadow mode and with a control group: counted for both policies, and shown. */
#include "base/check.h"
#include "base/err.h"
#include "base/number.h"
#include "node/route/shade.h"

/* The booking at the choice of the router's own policy; NULL: none. */
static struct node_booking_entry *entry_of(const struct node_router *r,
                                           const struct node_work *work)
{
    return work->shadow.booking.stamp != 0
               ? node_bookings_get(r->shade->bookings, work->shadow.booking)
               : NULL;
}

void node_router_shadow_began(struct node_router *r, const struct node_work *work, uint64_t now_ms)
{
    const struct node_booking_entry *e = entry_of(r, work);
    unsigned k = e ? e->work.replica : 0;
    if (e && node_bookings_first_byte(r->shade->bookings, &r->shade->loads[k], work->shadow.booking,
                                      now_ms))
        DISCARD(node_room_ran(&r->shade->rooms[k], e->ran_at_first_byte));
}

/* True if the prompt was recorded at a replica that is still in use. */
static bool is_recorded(const struct node_router *r, const struct node_booking_entry *e)
{
    return e->work.prompt_id != 0 && !r->replicas[e->work.replica].absent;
}

void node_router_shadow_used(struct node_router *r, const struct node_booking_entry *real,
                             const struct chain *chain)
{
    const struct node_booking_entry *e = entry_of(r, &real->work);
    if (!e || !real->first_byte_seen || !is_recorded(r, e) || chain->length == 0 ||
        crdt_index_ring(r->index, e->work.replica).newest == e->work.generation)
        return;
    node_shadow_chain(&r->shadow_chain, chain);
    DISCARD(crdt_state_observe(r->crdt, &r->shadow_chain, e->work.replica));
    node_belief_moved(&r->shade->beliefs[e->work.replica]);
}

/* Like node_router_recorded_end(), but for the booking in shadow mode. */
static void recorded_end(struct node_router *r, const struct node_booking_entry *e, bool computed)
{
    struct node_belief *b = &r->shade->beliefs[e->work.replica];
    if (!is_recorded(r, e))
        return;
    if (computed)
        node_belief_void_end(b, e->work.prompt_id);
    else
        node_belief_void(b, e->work.prompt_id, e->work.generation - 1, e->work.fresh_blocks);
}

/* The predicted cached tokens: their predicted share of the prompt, times the engine's count of
 * prompt tokens. The two policies may have different estimates of the prompt. */
static uint64_t predicted_tokens(const struct node_work_shadow *own, uint64_t prompt_tokens)
{
    double share = (double)own->cached_tokens / number_max(own->prompt_tokens, 1);
    return (uint64_t)(number_min(share, 1) * (double)prompt_tokens);
}

static void count(struct node_router *r, const struct node_booking_entry *e,
                  const struct node_usage *usage, uint64_t now_ms)
{
    const struct node_work *work = &e->work;
    bool shadow = r->shadow.mode == NODE_SHADOW_ON;
    bool timed = e->first_byte_seen && !work->answer_whole;
    struct node_shadow_answer measured = {.ttft_s = -1};
    if (timed && (!shadow || work->shadow.ttft_s > 0))
        measured.ttft_s = (double)(e->first_byte_ms - e->chosen_ms) / 1000;
    measured.estimated_s = shadow ? work->ttft_s : 0;
    if (usage->prompt_tokens > 0 && usage->cached_tokens >= 0) {
        measured.prompt_tokens = (uint64_t)usage->prompt_tokens;
        measured.cached_tokens = (uint64_t)usage->cached_tokens;
    }
    node_shadow_add(&r->shadow, work->plain ? NODE_SHADOW_PLAIN : NODE_SHADOW_POLICY, &measured,
                    now_ms);
    if (!shadow)
        return;
    uint64_t prompt_tokens =
        usage->prompt_tokens > 0 ? (uint64_t)usage->prompt_tokens : work->shadow.prompt_tokens;
    const struct node_shadow_answer predicted = {
        .prompt_tokens = prompt_tokens,
        .cached_tokens = predicted_tokens(&work->shadow, prompt_tokens),
        .ttft_s = measured.ttft_s >= 0 ? work->shadow.ttft_s : -1,
    };
    node_shadow_add(&r->shadow, NODE_SHADOW_POLICY, &predicted, now_ms);
    if (work->shadow.moved)
        node_shadow_moved(&r->shadow, now_ms);
}

void node_router_shadow_ended(struct node_router *r, const struct node_booking_entry *e,
                              const struct node_usage *usage, bool computed, uint64_t now_ms)
{
    const struct node_booking_entry *own = entry_of(r, &e->work);
    bool of_mode = own ? r->shadow.mode == NODE_SHADOW_ON : r->shadow.mode == NODE_SHADOW_CONTROL;
    if (usage != NULL && of_mode && e->work.prompt_tokens > 0)
        count(r, e, usage, now_ms);
    if (!own)
        return;
    recorded_end(r, own, computed);
    (void)node_bookings_close(r->shade->bookings, &r->shade->loads[own->work.replica],
                              e->work.shadow.booking, now_ms);
}

/* --- for people ------------------------------------------------------------------------------ */

const struct node_shadow *node_router_shadow(const struct node_router *r)
{
    return &r->shadow;
}

void node_router_shadow_write(const struct node_router *r, const char *key, uint64_t now_ms,
                              struct json_writer *w)
{
    uint64_t counted = 0;
    for (unsigned i = NODE_SHADOW_ON; i < NODE_SHADOW_MODES; i++)
        counted += r->shadow.totals[i].sides[NODE_SHADOW_PLAIN].requests +
                   r->shadow.totals[i].sides[NODE_SHADOW_POLICY].requests;
    if (r->shadow.mode == NODE_SHADOW_OFF && counted == 0)
        return;
    json_key(w, key);
    node_shadow_write(&r->shadow, r->policy->name, r->plain->name, r->config.control_share, now_ms,
                      w);
}

/* --- metrics --------------------------------------------------------------------------------- */

static double figure(const struct node_shadow_counts *c, unsigned number)
{
    const double figures[] = {(double)c->requests,
                              (double)c->prompt_tokens,
                              (double)c->cached_tokens,
                              (double)c->first_tokens,
                              c->ttft_s,
                              c->estimated_s};
    CHECK(number < ARRAY_LEN(figures));
    return figures[number];
}

void node_router_shadow_metrics(const struct node_router *r, struct prometheus *p)
{
    static const struct {
        const char *name, *help;
    } rows[] = {
        {"shadow_requests_total", "Requests compared."},
        {"shadow_prompt_tokens_total", "Prompt tokens of compared requests."},
        {"shadow_cached_tokens_total", "Cached prompt tokens of compared requests, or predicted."},
        {"shadow_first_tokens_total", "Compared streams with a first token."},
        {"shadow_ttft_seconds_total", "Sum of compared streams' times to first token; estimates in "
                                      "mode shadow, side policy."},
        {"shadow_estimated_ttft_seconds_total",
         "The same for side plain in mode shadow, by such estimates."},
    };
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        prometheus_family(p, rows[i].name, rows[i].help);
        for (unsigned mode = NODE_SHADOW_ON; mode < NODE_SHADOW_MODES; mode++) {
            for (unsigned side = 0; side < NODE_SHADOW_SIDES; side++) {
                const char *name = node_shadow_mode_text((enum node_shadow_mode)mode);
                prometheus_label(p, "mode", slice_of_cstr(name));
                name = node_shadow_side_text((enum node_shadow_side)side);
                prometheus_label(p, "side", slice_of_cstr(name));
                prometheus_value(p, figure(&r->shadow.totals[mode].sides[side], i));
            }
        }
    }
    prometheus_family(p, "shadow_moved_total", "Requests that policy would have sent elsewhere.");
    prometheus_value(p, (double)r->shadow.totals[NODE_SHADOW_ON].moved);
}
