#include "node/replica/booking.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/number.h"

struct node_bookings {
    uint32_t free_head;
    uint32_t fresh; /* entries from this index on were never used: their pages are not touched */
    uint32_t open_count;
    struct node_booking_entry entries[NODE_BOOKINGS_MAX];
};

int node_bookings_create(struct node_bookings **out)
{
    struct node_bookings *p = calloc(1, sizeof *p);
    if (!p)
        return ERR_NOMEM;
    p->free_head = NODE_BOOKING_NONE;
    *out = p;
    return ERR_OK;
}

void node_bookings_destroy(struct node_bookings *p)
{
    free(p);
}

uint32_t node_bookings_open_count(const struct node_bookings *p)
{
    return p->open_count;
}

void node_load_init(struct node_load *l)
{
    *l = (struct node_load){.head = NODE_BOOKING_NONE, .tail = NODE_BOOKING_NONE};
}

/* Brings the integrals up to now; called before decoding_tokens changes. */
static void area_advance(struct node_load *l, double now_ms)
{
    if (now_ms > l->area_at_ms) {
        double tokens = (double)l->decoding_tokens + (double)l->remote.decoding_tokens;
        l->decoding_area += tokens * (now_ms - l->area_at_ms) / 1000;
        l->area_at_ms = now_ms;
    }
}

void node_load_remote(struct node_load *l, const struct node_remote_load *remote, uint64_t now_ms)
{
    area_advance(l, (double)now_ms);
    if (remote->prefilled_tokens > l->remote.prefilled_tokens)
        l->prefilled_tokens += (double)(remote->prefilled_tokens - l->remote.prefilled_tokens);
    l->remote = *remote;
}

/* A booking becomes the head: it joined an empty line, or the previous head is done. */
static void head_begin(struct node_load *l, double since_ms, bool line_was_empty)
{
    l->head_since_ms = since_ms;
    l->head_prefilled = l->prefilled_tokens;
    l->head_timed = !line_was_empty || l->remote.prefill_tokens == 0;
}

static void line_append(struct node_bookings *p, struct node_load *l, uint32_t slot, double now_ms)
{
    struct node_booking_entry *e = &p->entries[slot];
    e->prefilling = true;
    e->prev = l->tail;
    e->next = NODE_BOOKING_NONE;
    if (l->tail == NODE_BOOKING_NONE) {
        l->head = slot;
        head_begin(l, now_ms, true);
    } else {
        p->entries[l->tail].next = slot;
    }
    l->tail = slot;
    l->prefill_tokens += e->work.prefill_tokens;
}

static void line_remove(struct node_bookings *p, struct node_load *l, uint32_t slot, double now_ms)
{
    struct node_booking_entry *e = &p->entries[slot];
    CHECK(e->prefilling);
    e->prefilling = false;
    if (e->prev == NODE_BOOKING_NONE) {
        l->head = e->next;
        head_begin(l, now_ms, false);
        /* The line may have been empty for a while before the next booking came. */
        if (e->next != NODE_BOOKING_NONE && (double)p->entries[e->next].chosen_ms > now_ms)
            head_begin(l, (double)p->entries[e->next].chosen_ms, true);
    } else {
        p->entries[e->prev].next = e->next;
    }
    if (e->next == NODE_BOOKING_NONE)
        l->tail = e->prev;
    else
        p->entries[e->next].prev = e->prev;
    CHECK(l->prefill_tokens >= e->work.prefill_tokens);
    l->prefill_tokens -= e->work.prefill_tokens;
}

/* Call before the next booking becomes the head: the tokens of `e` were not computed during the
 * next booking's time. */
static void decoding_begin(struct node_load *l, const struct node_booking_entry *e, double now_ms)
{
    area_advance(l, now_ms);
    l->decoding_tokens += e->work.context_tokens;
    l->prefilled_tokens += e->work.prefill_tokens;
}

/* The load in decode, of all routers. The number of requests is estimated from the share of context
 * tokens in decode, because other routers do not report that number. */
static struct node_room_amount running_of(const struct node_load *l)
{
    struct node_room_amount all = node_load_booked(l);
    double tokens = (double)l->decoding_tokens + (double)l->remote.decoding_tokens;
    double share = all.tokens > 0 ? number_min(tokens / all.tokens, 1) : 0;
    return (struct node_room_amount){all.requests * share, tokens};
}

static void whole_begin(struct node_load *l, const struct node_booking_entry *e)
{
    l->whole_requests++;
    l->whole_chosen_ms += e->chosen_ms;
    l->whole_prompt_tokens += e->work.prefill_tokens;
}

static void whole_end(struct node_load *l, const struct node_booking_entry *e)
{
    l->whole_requests--;
    l->whole_chosen_ms -= e->chosen_ms;
    l->whole_prompt_tokens -= e->work.prefill_tokens;
}

double node_load_due_whole(const struct node_load *l, double token_s, double answer_s,
                           uint64_t now_ms)
{
    if (l->whole_requests == 0)
        return 0;
    double count = (double)l->whole_requests;
    double ages_s = (double)(int64_t)(l->whole_requests * now_ms - l->whole_chosen_ms) / 1000;
    return number_max(ages_s, 0) / ((double)l->whole_prompt_tokens / count * token_s + answer_s);
}

int node_bookings_open(struct node_bookings *p, struct node_load *l, const struct node_work *work,
                       uint64_t now_ms, struct node_booking *out)
{
    uint32_t slot = p->free_head;
    if (slot != NODE_BOOKING_NONE)
        p->free_head = p->entries[slot].next;
    else if (p->fresh < NODE_BOOKINGS_MAX)
        slot = p->fresh++;
    else
        return ERR_FULL;

    struct node_booking_entry *e = &p->entries[slot];
    uint32_t stamp = e->stamp + 1 == 0 ? 1 : e->stamp + 1;
    *e = (struct node_booking_entry){
        .work = *work, .stamp = stamp, .open = true, .chosen_ms = now_ms, .prefill_s = -1};
    l->requests++;
    l->context_tokens += work->context_tokens;
    if (work->answer_whole)
        whole_begin(l, e);
    line_append(p, l, slot, (double)now_ms);
    p->open_count++;
    *out = (struct node_booking){.slot = slot, .stamp = stamp};
    return ERR_OK;
}

struct node_booking_entry *node_bookings_get(struct node_bookings *p, struct node_booking b)
{
    CHECK(b.slot < p->fresh);
    struct node_booking_entry *e = &p->entries[b.slot];
    CHECK(e->open && e->stamp == b.stamp);
    return e;
}

bool node_bookings_first_byte(struct node_bookings *p, struct node_load *l, struct node_booking b,
                              uint64_t now_ms)
{
    struct node_booking_entry *e = node_bookings_get(p, b);
    if (e->first_byte_seen)
        return false;
    e->first_byte_seen = true;
    e->first_byte_ms = now_ms;
    if (e->prefilling) {
        if (l->head == b.slot && l->head_timed && !e->work.answer_whole) {
            e->prefill_s = ((double)now_ms - l->head_since_ms) / 1000;
            e->prefill_beside = l->prefilled_tokens - l->head_prefilled;
        }
        decoding_begin(l, e, (double)now_ms);
        line_remove(p, l, b.slot, (double)now_ms);
    }
    area_advance(l, (double)now_ms);
    e->ran_at_first_byte = running_of(l);
    l->streaming += !e->work.answer_whole;
    e->area_at_first_byte = l->decoding_area;
    e->prefilled_at_first_byte = l->prefilled_tokens;
    return true;
}

const struct node_booking_entry *node_bookings_close(struct node_bookings *p, struct node_load *l,
                                                     struct node_booking b, uint64_t now_ms)
{
    struct node_booking_entry *e = node_bookings_get(p, b);
    area_advance(l, (double)now_ms);
    if (e->prefilling) {
        line_remove(p, l, b.slot, (double)now_ms);
    } else {
        CHECK(l->decoding_tokens >= e->work.context_tokens);
        l->decoding_tokens -= e->work.context_tokens;
    }
    CHECK(l->requests > 0 && l->context_tokens >= e->work.context_tokens);
    l->requests--;
    l->streaming -= e->first_byte_seen && !e->work.answer_whole;
    l->context_tokens -= e->work.context_tokens;
    if (e->work.answer_whole)
        whole_end(l, e);
    e->open = false;
    e->next = p->free_head;
    p->free_head = b.slot;
    p->open_count--;
    return e;
}

void node_load_advance(struct node_bookings *p, struct node_load *l, double tokens_per_s,
                       uint64_t now_ms)
{
    while (l->head != NODE_BOOKING_NONE) {
        struct node_booking_entry *e = &p->entries[l->head];
        double done_ms = l->head_since_ms + e->work.prefill_tokens / tokens_per_s * 1000;
        if ((!e->work.answer_whole && !e->work.by_time) || done_ms > (double)now_ms)
            return;
        decoding_begin(l, e, done_ms);
        line_remove(p, l, l->head, done_ms);
    }
}

double node_load_queue_s(const struct node_bookings *p, const struct node_load *l,
                         double tokens_per_s, uint64_t now_ms)
{
    if (l->head == NODE_BOOKING_NONE)
        return 0;
    double head_tokens = p->entries[l->head].work.prefill_tokens;
    double done_tokens = ((double)now_ms - l->head_since_ms) / 1000 * tokens_per_s;
    if (done_tokens > head_tokens)
        done_tokens = head_tokens;
    if (done_tokens < 0)
        done_tokens = 0;
    return ((double)l->prefill_tokens - done_tokens) / tokens_per_s;
}

struct node_head node_load_head(const struct node_bookings *p, const struct node_load *l,
                                uint64_t now_ms)
{
    if (l->head == NODE_BOOKING_NONE || !l->head_timed || (double)now_ms <= l->head_since_ms)
        return (struct node_head){0};
    const struct node_work *work = &p->entries[l->head].work;
    if (work->answer_whole || work->by_time || work->adapter_loads)
        return (struct node_head){0};
    return (struct node_head){
        .tokens = work->prefill_tokens + l->prefilled_tokens - l->head_prefilled,
        .since_s = ((double)now_ms - l->head_since_ms) / 1000,
    };
}

void node_bookings_check(const struct node_bookings *p, const struct node_load *const *loads,
                         unsigned count)
{
    uint64_t requests = 0;
    for (unsigned k = 0; k < count; k++) {
        struct node_load sum = {0};
        for (uint32_t i = 0; i < p->fresh; i++) {
            const struct node_booking_entry *e = &p->entries[i];
            if (!e->open || e->work.replica != k)
                continue;
            sum.requests++;
            sum.streaming += e->first_byte_seen && !e->work.answer_whole;
            sum.context_tokens += e->work.context_tokens;
            sum.prefill_tokens += e->prefilling ? e->work.prefill_tokens : 0;
            sum.decoding_tokens += e->prefilling ? 0 : e->work.context_tokens;
            if (e->work.answer_whole)
                whole_begin(&sum, e);
        }
        CHECK(sum.requests == loads[k]->requests);
        CHECK(sum.streaming == loads[k]->streaming);
        CHECK(sum.context_tokens == loads[k]->context_tokens);
        CHECK(sum.prefill_tokens == loads[k]->prefill_tokens);
        CHECK(sum.decoding_tokens == loads[k]->decoding_tokens);
        CHECK(sum.whole_requests == loads[k]->whole_requests);
        CHECK(sum.whole_chosen_ms == loads[k]->whole_chosen_ms);
        CHECK(sum.whole_prompt_tokens == loads[k]->whole_prompt_tokens);
        uint64_t line_tokens = 0;
        uint32_t before = NODE_BOOKING_NONE;
        for (uint32_t i = loads[k]->head; i != NODE_BOOKING_NONE; i = p->entries[i].next) {
            CHECK(p->entries[i].prefilling && p->entries[i].prev == before);
            line_tokens += p->entries[i].work.prefill_tokens;
            before = i;
        }
        CHECK(before == loads[k]->tail && line_tokens == sum.prefill_tokens);
        requests += sum.requests;
    }
    CHECK(requests == p->open_count);
}
