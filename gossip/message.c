#include "gossip/message.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"

enum {
    BURST = 16,               /* parts in a burst */
    BURST_EVERY_US = 1000,    /* time between bursts: about 16 MB/s per peer */
    QUIET_US = 4000,          /* silence before the receiver requests missing parts */
    QUIET_TRIPS = 8,          /* 1/8 of the round trip is added: parts may be late */
    UNHEARD_US = 20000,       /* silence, plus the round trip, before the sender repeats the last
                               * part */
    UNKNOWN_US = 200000,      /* assumed round trip if none was measured */
    BACK_OFF_MAX_US = 200000, /* longest wait, or twice the first wait if that is longer */
    GIVE_UP_US = 1000000,     /* without progress for this time, a message is given up */
    GIVE_UP_TRIPS = 8,        /* round trips added to GIVE_UP_US */
    LIFE_US = 20000000,       /* a message is given up after this time at both ends, whatever the
                               * peer sends */
};

struct gossip_message {
    struct gossip_message *next;
    uint64_t peer;
    uint64_t epoch, id; /* both given by the sender */
    uint64_t vector;
    uint32_t total;
    unsigned parts;
    /* Sender: parts to be sent. Receiver: received parts. */
    uint64_t bits[GOSSIP_PART_WORDS];
    unsigned bits_count;
    unsigned next_part; /* sender: where the search for the next part begins */
    unsigned tries;
    uint64_t answer_us; /* receiver: until this time the requested parts may be in transit */
    uint64_t sent_us;   /* sender: time at which all parts were sent once; 0: not yet */
    bool again;         /* sender: some parts were sent twice, so the answer measures nothing */
    uint64_t progress_us, due_us, until_us;
    char bytes[];
};

static bool bit(const struct gossip_message *m, unsigned i)
{
    return m->bits[i / 64] >> (i % 64) & 1;
}

static void bit_set(struct gossip_message *m, unsigned i)
{
    m->bits_count += !bit(m, i);
    m->bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static void bit_clear(struct gossip_message *m, unsigned i)
{
    m->bits_count -= bit(m, i);
    m->bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

void gossip_messages_init(struct gossip_messages *m, uint64_t bytes_max)
{
    *m = (struct gossip_messages){.bytes_max = bytes_max, .due_us = UINT64_MAX};
}

/* Removes the message at `link` from the list and frees it. */
static void drop(struct gossip_messages *m, struct gossip_message **link)
{
    struct gossip_message *gone = *link;
    *link = gone->next;
    m->bytes_used -= gone->total;
    m->count--;
    free(gone);
}

void gossip_messages_free(struct gossip_messages *m)
{
    while (m->first_out != NULL)
        drop(m, &m->first_out);
    while (m->first_in != NULL)
        drop(m, &m->first_in);
}

static struct gossip_message *message_new(struct gossip_messages *m, struct gossip_message **list,
                                          uint64_t peer, uint32_t total, uint64_t now_us)
{
    struct gossip_message *made = calloc(1, sizeof *made + total);
    if (made == NULL)
        return NULL;
    made->peer = peer;
    made->total = total;
    made->progress_us = made->due_us = now_us;
    made->until_us = now_us + LIFE_US;
    made->parts = (total + GOSSIP_PART_BYTES - 1) / GOSSIP_PART_BYTES;
    m->bytes_used += total;
    m->count++;
    while (*list != NULL) /* appends: the list is in order of creation */
        list = &(*list)->next;
    *list = made;
    return made;
}

static bool room(const struct gossip_messages *m, uint64_t total)
{
    return m->count < GOSSIP_MESSAGES_MAX && m->bytes_used + total <= m->bytes_max;
}

static void due_by(struct gossip_messages *m, uint64_t due_us)
{
    if (due_us < m->due_us)
        m->due_us = due_us;
}

int gossip_messages_send(struct gossip_messages *m, uint64_t peer, uint64_t epoch, uint64_t id,
                         uint64_t vector, struct slice bytes, uint64_t now_us)
{
    if (bytes.len == 0)
        return ERR_RANGE;
    if (bytes.len > GOSSIP_MESSAGE_MAX)
        return ERR_LIMIT;
    if (!room(m, bytes.len))
        return ERR_FULL;
    struct gossip_message *out = message_new(m, &m->first_out, peer, (uint32_t)bytes.len, now_us);
    if (out == NULL)
        return ERR_NOMEM;
    memcpy(out->bytes, bytes.at, bytes.len);
    out->epoch = epoch;
    out->id = id;
    out->vector = vector;
    for (unsigned i = 0; i < out->parts; i++)
        bit_set(out, i);
    due_by(m, now_us);
    return 0;
}

/* --- waits ------------------------------------------------------------------------------------ */

/* The time within which an answer of the peer should arrive. */
static uint64_t answer_us(const struct gossip_message_io *io, uint64_t peer)
{
    struct gossip_trip trip = io->trip(io->context, peer);
    return gossip_trip_wait_us(&trip, UNKNOWN_US);
}

static uint64_t give_up_us(const struct gossip_message_io *io, uint64_t peer)
{
    return GIVE_UP_US + GIVE_UP_TRIPS * answer_us(io, peer);
}

/* Counts a try and returns the wait after it. */
static uint64_t back_off(struct gossip_message *m, uint64_t first_us)
{
    uint64_t most_us = first_us > BACK_OFF_MAX_US / 2 ? 2 * first_us : BACK_OFF_MAX_US;
    uint64_t wait_us = first_us << m->tries;
    if (wait_us >= most_us)
        return most_us;
    m->tries++;
    return wait_us;
}

/* --- receiving -------------------------------------------------------------------------------- */

static bool delivered_has(const struct gossip_delivered *d, const struct gossip_frame_part *f)
{
    if (f->epoch != d->epoch)
        return f->epoch < d->epoch;
    if (f->id >= d->newest)
        return f->id == d->newest;
    uint64_t age = d->newest - 1 - f->id;
    return age >= 64 || (d->before >> age & 1);
}

static void delivered_add(struct gossip_delivered *d, uint64_t epoch, uint64_t id)
{
    if (epoch != d->epoch) {
        /* The sender restarted: no older messages count as delivered. */
        *d = (struct gossip_delivered){.epoch = epoch, .newest = id};
    } else if (id > d->newest) {
        uint64_t shift = id - d->newest;
        d->before = shift < 64 ? d->before << shift : 0;
        if (shift <= 64)
            d->before |= UINT64_C(1) << (shift - 1);
        d->newest = id;
    } else {
        d->before |= UINT64_C(1) << (d->newest - 1 - id);
    }
}

static struct gossip_message **find(struct gossip_message **list, uint64_t peer, uint64_t epoch,
                                    uint64_t id)
{
    while (*list != NULL && ((*list)->peer != peer || (*list)->epoch != epoch || (*list)->id != id))
        list = &(*list)->next;
    return list;
}

static bool peer_has_room(const struct gossip_messages *m, uint64_t peer, uint64_t total)
{
    uint64_t of_peer = 0;
    for (const struct gossip_message *in = m->first_in; in != NULL; in = in->next)
        of_peer += in->peer == peer ? in->total : 0;
    return of_peer == 0 || of_peer + total <= m->bytes_max / 4;
}

static bool tell_done(const struct gossip_message_io *io, uint64_t peer,
                      const struct gossip_frame_part *part)
{
    struct gossip_frame_resend done = {.epoch = part->epoch, .id = part->id, .done = true};
    return io->resend(io->context, peer, &done);
}

int gossip_messages_part(struct gossip_messages *m, const struct gossip_message_io *io,
                         uint64_t peer, struct gossip_delivered *delivered,
                         const struct gossip_frame_part *part, uint64_t now_us, struct buf *out)
{
    if (delivered_has(delivered, part) && !BUG(MESSAGE_REPEATED)) {
        tell_done(io, peer, part); /* the last acknowledgement was lost */
        return 0;
    }
    struct gossip_message **link = find(&m->first_in, peer, part->epoch, part->id);
    if (*link == NULL) {
        if (!room(m, part->total) || !peer_has_room(m, peer, part->total))
            return ERR_FULL;
        struct gossip_message *made = message_new(m, &m->first_in, peer, part->total, now_us);
        if (made == NULL)
            return ERR_NOMEM;
        made->epoch = part->epoch;
        made->id = part->id;
        made->vector = part->vector;
        link = find(&m->first_in, peer, part->epoch, part->id);
    }
    struct gossip_message *in = *link;
    if (in->total != part->total || in->vector != part->vector)
        return ERR_SYNTAX;
    /* If there is no memory for the whole message, the last part counts as lost and is requested
     * again. */
    bool fresh = !bit(in, part->index);
    int status = fresh && in->bits_count + 1 == in->parts ? buf_reserve(out, in->total) : 0;
    if (fresh && status == 0) {
        bit_set(in, part->index);
        memcpy(in->bytes + (size_t)part->index * GOSSIP_PART_BYTES, part->bytes.at,
               part->bytes.len);
        in->progress_us = now_us;
        in->tries = 0;
    }
    struct gossip_trip trip = io->trip(io->context, peer);
    in->due_us = now_us + QUIET_US + trip.smooth_us / QUIET_TRIPS;
    if (in->due_us < in->answer_us)
        in->due_us = in->answer_us;
    due_by(m, in->due_us);
    if (status < 0 || in->bits_count < in->parts)
        return status;
    CHECK(buf_append(out, in->bytes, in->total) == 0);
    drop(m, link);
    if (!delivered_has(delivered, part)) /* always true, except with the bug */
        delivered_add(delivered, part->epoch, part->id);
    tell_done(io, peer, part);
    return 1;
}

static void missing_parts(const struct gossip_message *in, struct gossip_ranges *out)
{
    out->count = 0;
    for (unsigned i = 0; i < in->parts; i++) {
        if (bit(in, i))
            continue;
        struct gossip_range *last = out->count > 0 ? &out->at[out->count - 1] : NULL;
        if (last != NULL && last->last == i)
            last->last = i + 1;
        else if (out->count < GOSSIP_RANGES_MAX)
            out->at[out->count++] = (struct gossip_range){.first = i + 1, .last = i + 1};
    }
}

static void ask(struct gossip_message *in, const struct gossip_message_io *io, uint64_t now_us)
{
    struct gossip_frame_resend f = {.epoch = in->epoch, .id = in->id};
    missing_parts(in, &f.ranges);
    bool sent = io->resend(io->context, in->peer, &f);
    uint64_t trip_us = answer_us(io, in->peer);
    uint64_t first_us = 2 * QUIET_US + trip_us;
    in->answer_us = sent ? now_us + trip_us : 0;
    in->due_us = now_us + (sent ? back_off(in, first_us) : QUIET_US);
}

/* --- sending --------------------------------------------------------------------------------- */

void gossip_messages_resend(struct gossip_messages *m, const struct gossip_message_io *io,
                            uint64_t peer, const struct gossip_frame_resend *f, uint64_t now_us)
{
    struct gossip_message **link = find(&m->first_out, peer, f->epoch, f->id);
    struct gossip_message *out = *link;
    if (out == NULL)
        return;
    if (f->done) {
        if (out->sent_us != 0 && !out->again)
            io->measured(io->context, peer, now_us - out->sent_us);
        drop(m, link);
        return;
    }
    out->progress_us = now_us; /* a RESEND shows that the peer is receiving the message */
    out->tries = 0;
    for (unsigned i = 0; i < f->ranges.count; i++)
        for (uint64_t n = f->ranges.at[i].first; n <= f->ranges.at[i].last && n <= out->parts; n++)
            bit_set(out, (unsigned)n - 1);
    if (out->bits_count > 0) {
        out->due_us = now_us;
        due_by(m, now_us);
    }
}

static bool send_part(struct gossip_message *out, const struct gossip_message_io *io, unsigned i)
{
    size_t start = (size_t)i * GOSSIP_PART_BYTES;
    size_t left = out->total - start;
    struct gossip_frame_part f = {
        .epoch = out->epoch,
        .id = out->id,
        .total = out->total,
        .index = i,
        .vector = out->vector,
        .bytes = slice_of(out->bytes + start, left < GOSSIP_PART_BYTES ? left : GOSSIP_PART_BYTES),
    };
    return io->part(io->context, out->peer, &f, out->sent_us != 0);
}

/* Sends a burst of due parts; if no part is due, sends the last part again, to get an answer. */
static void send_due(struct gossip_message *out, const struct gossip_message_io *io,
                     uint64_t now_us)
{
    if (out->bits_count == 0)
        bit_set(out, out->parts - 1);
    out->again = out->again || out->sent_us != 0;
    unsigned sent = 0;
    bool held = false;
    while (out->bits_count > 0 && sent < BURST && !held) {
        unsigned i = out->next_part++;
        if (out->next_part == out->parts)
            out->next_part = 0;
        if (!bit(out, i))
            continue;
        held = !send_part(out, io, i);
        if (held) {
            out->next_part = i;
        } else {
            bit_clear(out, i);
            sent++;
        }
    }
    if (out->bits_count > 0) {
        out->due_us = now_us + BURST_EVERY_US;
        return;
    }
    if (out->sent_us == 0)
        out->sent_us = now_us;
    out->due_us = now_us + back_off(out, UNHEARD_US + answer_us(io, out->peer));
}

void gossip_messages_run(struct gossip_messages *m, const struct gossip_message_io *io,
                         uint64_t now_us)
{
    if (now_us < m->due_us)
        return;
    m->due_us = UINT64_MAX;
    for (struct gossip_message **link = &m->first_out; *link != NULL;) {
        struct gossip_message *out = *link;
        uint64_t silent_us = out->progress_us + give_up_us(io, out->peer);
        if (now_us >= silent_us || now_us >= out->until_us) {
            uint64_t peer = out->peer;
            drop(m, link);
            io->failed(io->context, peer);
            continue;
        }
        if (now_us >= out->due_us)
            send_due(out, io, now_us);
        if (out->due_us > silent_us)
            out->due_us = silent_us;
        due_by(m, out->due_us);
        link = &out->next;
    }
    for (struct gossip_message **link = &m->first_in; *link != NULL;) {
        struct gossip_message *in = *link;
        /* The receiver drops a message later than the sender gives up. */
        if (now_us - in->progress_us >= give_up_us(io, in->peer) * 3 / 2 ||
            now_us >= in->until_us) {
            drop(m, link);
            continue;
        }
        if (now_us >= in->due_us)
            ask(in, io, now_us);
        due_by(m, in->due_us);
        link = &in->next;
    }
}

void gossip_messages_check(const struct gossip_messages *m)
{
    uint64_t bytes = 0;
    unsigned count = 0;
    for (const struct gossip_message *out = m->first_out; out != NULL; out = out->next) {
        CHECK(out->bits_count <= out->parts && out->next_part < out->parts);
        CHECK(m->due_us <= out->due_us);
        bytes += out->total;
        count++;
    }
    for (const struct gossip_message *in = m->first_in; in != NULL; in = in->next) {
        CHECK(in->bits_count < in->parts && m->due_us <= in->due_us);
        bytes += in->total;
        count++;
    }
    CHECK(bytes == m->bytes_used && bytes <= m->bytes_max);
    CHECK(count == m->count && count <= GOSSIP_MESSAGES_MAX);
}
