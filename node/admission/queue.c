#include "node/admission/queue.h"

#include <math.h>
#include <stddef.h>

#include "base/check.h"
#include "base/number.h"

static const double fade_ms = 10000; /* time constant with which `served_lately` decays */

void queue_init(struct queue *q, uint64_t length_max)
{
    *q = (struct queue){.length_max = length_max};
}

static bool is_used(const struct queue_line *line, unsigned lane)
{
    return (line->used >> lane & 1) != 0;
}

/* Returns the lane of this key; without such a lane, a free lane; without a free lane, a shared
 * lane. */
static unsigned lane_of(const struct queue_line *line, uint64_t key)
{
    unsigned free = QUEUE_LANES;
    for (unsigned i = 0; i < QUEUE_LANES; i++) {
        if (!is_used(line, i))
            free = free < QUEUE_LANES ? free : i;
        else if (line->lanes[i].key == key)
            return i;
    }
    return free < QUEUE_LANES ? free : (unsigned)(key % QUEUE_LANES);
}

bool queue_has_waiters(const struct queue *q, const struct queue_waiter *w, enum queue_class class,
                       uint64_t key)
{
    const struct queue_line *line = &q->lines[class];
    if (line->length == 0)
        return false;
    unsigned lane = lane_of(line, key);
    return is_used(line, lane) && (w->number == 0 || line->lanes[lane].first->number < w->number);
}

/* Returns the last waiter in the lane with a smaller number than `number`; NULL: none. The loop is
 * short: few waiters precede a request that comes back. */
static struct queue_waiter *place_of(const struct queue_lane *lane, uint64_t number)
{
    struct queue_waiter *before = NULL, *at = lane->first;
    if (lane->last != NULL && lane->last->number < number)
        return lane->last;
    for (; at != NULL && at->number < number; at = at->next)
        before = at;
    return before;
}

int queue_push(struct queue *q, struct queue_waiter *w, enum queue_class class, uint64_t key,
               uint64_t now_ms)
{
    struct queue_line *line = &q->lines[class];
    CHECK(!queue_waits(w));
    if (!queue_has_place(q, w))
        return ERR_FULL;
    if (line->length == 0) { /* an earlier rate says nothing about now */
        line->served_lately = 0;
        line->served_at_ms = line->served_since_ms = now_ms;
    }
    unsigned i = lane_of(line, key);
    struct queue_lane *lane = &line->lanes[i];
    uint64_t number = w->number != 0 ? w->number : ++q->arrivals;
    if (lane->first == NULL)
        lane->key = key;
    struct queue_waiter *before = place_of(lane, number);
    struct queue_waiter *behind = before != NULL ? before->next : lane->first;
    *w = (struct queue_waiter){.prev = before,
                               .next = behind,
                               .number = number,
                               .waits = true,
                               .since_ms = now_ms,
                               .key = key,
                               .class = (uint8_t) class,
                               .lane = (uint8_t)i};
    *(before != NULL ? &before->next : &lane->first) = w;
    *(behind != NULL ? &behind->prev : &lane->last) = w;
    line->used |= UINT64_C(1) << i;
    line->length++;
    q->length++;
    return ERR_OK;
}

void queue_remove(struct queue *q, struct queue_waiter *w)
{
    if (!queue_waits(w))
        return;
    struct queue_line *line = &q->lines[w->class];
    struct queue_lane *lane = &line->lanes[w->lane];
    *(w->prev != NULL ? &w->prev->next : &lane->first) = w->next;
    *(w->next != NULL ? &w->next->prev : &lane->last) = w->prev;
    if (lane->first == NULL)
        line->used &= ~(UINT64_C(1) << w->lane);
    CHECK(line->length > 0);
    line->length--;
    q->length--;
    *w = (struct queue_waiter){.number = w->number};
}

static void fade(struct queue_line *line, uint64_t now_ms)
{
    line->served_lately *= exp(-(double)(now_ms - line->served_at_ms) / fade_ms);
    line->served_at_ms = now_ms;
}

void queue_take(struct queue *q, struct queue_waiter *w, uint64_t now_ms)
{
    struct queue_line *line = &q->lines[w->class];
    CHECK(queue_waits(w));
    histogram_add(&line->waited, (double)(now_ms - w->since_ms) / 1000);
    queue_remove(q, w);
    line->served++;
    fade(line, now_ms);
    line->served_lately++;
}

struct queue_waiter *queue_look_next(const struct queue *q, const struct queue_look *look)
{
    for (unsigned class = 0; class < QUEUE_CLASSES; class ++) {
        struct queue_waiter *oldest = NULL;
        uint64_t lanes = q->lines[class].used & ~look->passed[class];
        for (; lanes != 0; lanes &= lanes - 1) {
            struct queue_waiter *w = q->lines[class].lanes[__builtin_ctzll(lanes)].first;
            if (oldest == NULL || w->number < oldest->number)
                oldest = w;
        }
        if (oldest != NULL)
            return oldest;
    }
    return NULL;
}

unsigned queue_retry_after_s(struct queue *q, enum queue_class class, uint64_t now_ms)
{
    struct queue_line *line = &q->lines[class];
    fade(line, now_ms);
    double age_ms = (double)(now_ms - line->served_since_ms);
    double seconds = age_ms / 1000; /* used if no request was served lately */
    if (line->length == 0)
        return 1;
    if (line->served_lately > 0) {
        double counted_ms = number_max(fade_ms * (1 - exp(-age_ms / fade_ms)), 1);
        seconds = (double)line->length / (line->served_lately / counted_ms) / 1000;
    }
    return (unsigned)ceil(number_min(number_max(seconds, 1), QUEUE_RETRY_AFTER_MAX_S));
}

void queue_check(const struct queue *q)
{
    uint64_t all = 0;
    for (unsigned class = 0; class < QUEUE_CLASSES; class ++) {
        const struct queue_line *line = &q->lines[class];
        uint64_t length = 0;
        for (unsigned i = 0; i < QUEUE_LANES; i++) {
            const struct queue_lane *lane = &line->lanes[i];
            const struct queue_waiter *before = NULL;
            CHECK(is_used(line, i) == (lane->first != NULL));
            for (const struct queue_waiter *w = lane->first; w != NULL; w = w->next) {
                CHECK(w->prev == before && w->class == class && w->lane == i);
                CHECK(before == NULL || before->number < w->number);
                before = w;
                length++;
            }
            CHECK(lane->last == before);
        }
        CHECK(length == line->length);
        all += length;
    }
    CHECK(all == q->length);
}
