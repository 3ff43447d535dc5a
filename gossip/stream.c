#include "gossip/stream.h"

#include "base/bug.h"
#include "base/check.h"

void gossip_stream_restart(struct gossip_stream *s, uint64_t epoch)
{
    *s = (struct gossip_stream){.epoch = epoch, .nack_us = UINT64_MAX};
}

static void remove_range(struct gossip_stream *s, unsigned i)
{
    s->count--;
    memmove(&s->ranges[i], &s->ranges[i + 1], (s->count - i) * sizeof s->ranges[0]);
}

/* Raises `applied` over the ranges right after it. */
static void join_front(struct gossip_stream *s)
{
    while (s->count > 0 && s->ranges[0].first <= s->applied + 1) {
        if (s->ranges[0].last > s->applied)
            s->applied = s->ranges[0].last;
        remove_range(s, 0);
    }
    if (s->known < s->applied)
        s->known = s->applied;
}

static void note_gap(struct gossip_stream *s, uint64_t now_us, uint64_t grace_us)
{
    if (s->applied == s->known) {
        s->gap_us = 0;
        s->nack_us = UINT64_MAX;
        s->tries = 0;
    } else {
        if (s->gap_us == 0)
            s->gap_us = now_us > 0 ? now_us : 1;
        if (s->nack_us > now_us + grace_us)
            s->nack_us = now_us + grace_us;
    }
}

/* Takes a number beyond applied + 1. */
static enum gossip_stream_take take_beyond(struct gossip_stream *s, uint64_t seq)
{
    unsigned i = s->count; /* searches from the end, where most numbers arrive */
    while (i > 0 && s->ranges[i - 1].first > seq)
        i--;
    struct gossip_range *below = i > 0 ? &s->ranges[i - 1] : NULL;
    struct gossip_range *above = i < s->count ? &s->ranges[i] : NULL;
    if (below != NULL && below->last >= seq)
        return GOSSIP_STREAM_AGAIN;
    bool joins_below = below != NULL && below->last + 1 == seq;
    bool joins_above = above != NULL && above->first == seq + 1;
    if (joins_below && joins_above) {
        below->last = above->last;
        remove_range(s, i);
    } else if (joins_below) {
        below->last = seq;
    } else if (joins_above) {
        above->first = seq;
    } else if (s->count == GOSSIP_STREAM_RANGES) {
        return GOSSIP_STREAM_LATER;
    } else {
        memmove(&s->ranges[i + 1], &s->ranges[i], (s->count - i) * sizeof s->ranges[0]);
        s->ranges[i] = (struct gossip_range){.first = seq, .last = seq};
        s->count++;
    }
    return seq <= s->known ? GOSSIP_STREAM_FILLS : GOSSIP_STREAM_NEW;
}

enum gossip_stream_take gossip_stream_take(struct gossip_stream *s, uint64_t seq, uint64_t now_us,
                                           uint64_t grace_us)
{
    if (seq <= s->applied)
        return GOSSIP_STREAM_AGAIN;
    if (BUG(GAP_SKIPPED)) {
        gossip_stream_close(s, seq);
        return GOSSIP_STREAM_NEW;
    }
    bool shows_hole = seq > s->known + 1;
    enum gossip_stream_take take;
    if (seq == s->applied + 1) {
        take = s->known > s->applied ? GOSSIP_STREAM_FILLS : GOSSIP_STREAM_NEW;
        s->applied = seq;
        s->gap_us = 0; /* if there is still a gap, it begins at another number now */
        join_front(s);
    } else {
        take = take_beyond(s, seq);
    }
    if (seq > s->known)
        s->known = seq;
    if (take == GOSSIP_STREAM_FILLS) {
        /* An answer to a request is arriving: waits for the rest before the next request. */
        s->tries = 0;
        s->nack_us = now_us + 2 * grace_us;
    }
    if (take == GOSSIP_STREAM_FILLS || shows_hole || s->applied == s->known || s->gap_us == 0)
        note_gap(s, now_us, take == GOSSIP_STREAM_FILLS ? 2 * grace_us : grace_us);
    return take;
}

void gossip_stream_known(struct gossip_stream *s, uint64_t seq, uint64_t now_us, uint64_t grace_us)
{
    if (seq <= s->known)
        return;
    s->known = seq;
    note_gap(s, now_us, grace_us);
}

void gossip_stream_told(struct gossip_stream *s, uint64_t seq, uint64_t now_us, uint64_t settle_us,
                        uint64_t grace_us)
{
    bool waits = s->told > s->known;
    if (seq <= s->known || (waits && now_us < s->told_us + settle_us))
        return;
    uint64_t known = s->told;
    s->told = seq;
    s->told_us = now_us;
    if (waits)
        gossip_stream_known(s, known, now_us, grace_us);
}

void gossip_stream_missing(const struct gossip_stream *s, uint64_t from, uint64_t numbers_max,
                           struct gossip_ranges *out)
{
    out->count = 0;
    uint64_t next = (from > s->applied ? from : s->applied) + 1;
    for (unsigned i = 0; i <= s->count && next <= s->known; i++) {
        uint64_t end = i < s->count ? s->ranges[i].first : s->known + 1; /* exclusive */
        if (end > next && numbers_max > 0 && out->count < GOSSIP_RANGES_MAX) {
            uint64_t length = end - next < numbers_max ? end - next : numbers_max;
            numbers_max -= length;
            out->at[out->count++] = (struct gossip_range){.first = next, .last = next + length - 1};
        }
        if (i < s->count && next <= s->ranges[i].last)
            next = s->ranges[i].last + 1;
    }
}

uint64_t gossip_stream_close(struct gossip_stream *s, uint64_t seq)
{
    if (seq <= s->applied)
        return 0;
    uint64_t missing = seq - s->applied;
    for (unsigned i = 0; i < s->count && s->ranges[i].first <= seq; i++) {
        uint64_t last = s->ranges[i].last < seq ? s->ranges[i].last : seq;
        missing -= last - s->ranges[i].first + 1;
    }
    s->applied = seq;
    s->gap_us = 0;
    join_front(s);
    if (s->applied == s->known) {
        s->nack_us = UINT64_MAX;
        s->tries = 0;
    }
    return missing;
}

void gossip_stream_check(const struct gossip_stream *s)
{
    CHECK(s->applied <= s->known && s->known < GOSSIP_SEQ_LIMIT);
    CHECK(s->count <= GOSSIP_STREAM_RANGES);
    uint64_t free_from = s->applied + 2;
    for (unsigned i = 0; i < s->count; i++) {
        CHECK(s->ranges[i].first >= free_from && s->ranges[i].last >= s->ranges[i].first);
        CHECK(s->ranges[i].last <= s->known);
        free_from = s->ranges[i].last + 2;
    }
    CHECK(s->told < GOSSIP_SEQ_LIMIT);
    CHECK(s->applied < s->known || s->nack_us == UINT64_MAX);
    CHECK(s->applied == s->known || s->nack_us != UINT64_MAX);
}
