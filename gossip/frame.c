#include "gossip/frame.h"

#include "base/check.h"
#include "base/err.h"
#include "base/future.h"

enum {
    DELTA_RELAYED = 1,
    DELTA_FORWARD = 2,
    ALIVE_FULL = 1,
    PING_WHO = 1,
    PING_TARGET = 2,
    PING_ORIGIN = 4,
    GROUPS_MAX = 1024,
    PORT_BYTES = 2,
    IPV4_BYTES = 4 + PORT_BYTES,
    IPV6_BYTES = 16 + PORT_BYTES,
};

const char *gossip_frame_text(enum gossip_frame frame)
{
    static const char *const text[GOSSIP_FRAMES] = {"delta",   "alive",  "nack", "gone",
                                                    "members", "ping",   "ack",  "part",
                                                    "resend",  "vector", "full"};
    return (unsigned)frame < GOSSIP_FRAMES ? text[frame] : "unknown";
}

const char *gossip_place_text(enum gossip_place_kind kind)
{
    static const char *const text[] = {"", "advertised", "learned", "observed", "yours", "source"};
    return (unsigned)kind <= GOSSIP_PLACE_SOURCE ? text[kind] : "unknown";
}

const char *gossip_state_text(enum gossip_state state)
{
    static const char *const text[] = {"alive", "suspect", "dead", "left"};
    return (unsigned)state <= GOSSIP_LEFT ? text[state] : "unknown";
}

/* --- reading --------------------------------------------------------------------------------- */

/* Reads the head of a frame whose other bytes are the application's. */
static struct wire_reader read_head(struct wire_reader *r)
{
    struct slice head = wire_read_bytes(r, wire_read_u8(r));
    return wire_reader_of(head.at, head.len);
}

static uint64_t read_epoch(struct wire_reader *r)
{
    uint64_t epoch = wire_read_u48(r);
    if (epoch == 0 || epoch >= GOSSIP_EPOCH_LIMIT)
        r->bad = true;
    return epoch;
}

static uint64_t read_seq(struct wire_reader *r)
{
    uint64_t seq = wire_read_varint_max(r, GOSSIP_SEQ_LIMIT - 1);
    if (seq == 0)
        r->bad = true;
    return seq;
}

static uint64_t read_incarnation(struct wire_reader *r)
{
    uint64_t incarnation = wire_read_u64(r);
    uint64_t epoch = incarnation >> 16;
    if (epoch == 0 || epoch >= GOSSIP_EPOCH_LIMIT)
        r->bad = true;
    return incarnation;
}

static uint64_t read_node(struct wire_reader *r)
{
    uint64_t node = wire_read_u64(r);
    if (node == 0)
        r->bad = true;
    return node;
}

static void read_ranges(struct wire_reader *r, struct gossip_ranges *out)
{
    unsigned count = (unsigned)wire_read_varint_max(r, GOSSIP_RANGES_MAX);
    uint64_t last = 0;
    for (unsigned i = 0; i < count && !r->bad; i++) {
        uint64_t first = last + wire_read_varint_max(r, GOSSIP_SEQ_LIMIT) + 1;
        uint64_t length = wire_read_varint_max(r, GOSSIP_SEQ_LIMIT);
        if (length == 0 || first + length > GOSSIP_SEQ_LIMIT)
            r->bad = true;
        last = first + length - 1;
        out->at[i] = (struct gossip_range){.first = first, .last = last};
        last++; /* at least one number is missing before the next range */
    }
    out->count = r->bad ? 0 : count;
}

static struct slice read_rest(struct wire_reader *r)
{
    return wire_read_bytes(r, wire_left(r));
}

static void read_delta(struct wire_reader *r, struct gossip_frame_delta *f)
{
    struct wire_reader head = read_head(r);
    uint8_t flags = wire_read_u8(&head);
    f->relayed = flags & DELTA_RELAYED;
    f->forward = flags & DELTA_FORWARD;
    f->epoch = read_epoch(&head);
    f->seq = read_seq(&head);
    if (f->relayed)
        f->author = read_node(&head);
    if (f->forward) {
        f->group = (uint32_t)wire_read_varint_max(&head, GROUPS_MAX - 1);
        f->groups = (uint32_t)wire_read_varint_max(&head, GROUPS_MAX);
        /* Only the author may ask for forwarding, so no delta circulates. */
        if (f->group >= f->groups || f->relayed)
            r->bad = true;
    }
    f->bytes = read_rest(r);
    if (head.bad || f->bytes.len == 0 || f->bytes.len > GOSSIP_DELTA_MAX)
        r->bad = true;
}

static void read_alive(struct wire_reader *r, struct gossip_frame_alive *f)
{
    f->full = wire_read_u8(r) & ALIVE_FULL;
    f->incarnation = read_incarnation(r);
    f->seq = wire_read_varint_max(r, GOSSIP_SEQ_LIMIT - 1);
    if (!f->full)
        return;
    f->vector = wire_read_u64(r);
    f->members = wire_read_u64(r);
    f->health = wire_read_u8(r);
    f->sent = wire_read_u32(r);
    f->echo = wire_read_u32(r);
    f->held = wire_read_u32(r);
}

static void read_ping(struct wire_reader *r, struct gossip_frame_ping *f)
{
    uint8_t flags = wire_read_u8(r);
    f->who = flags & PING_WHO;
    f->nonce = wire_read_u32(r);
    if (flags & PING_TARGET)
        f->target = read_node(r);
    if (flags & PING_ORIGIN)
        f->origin = read_node(r);
    if (f->target != 0 && f->origin != 0)
        r->bad = true;
}

static void read_part(struct wire_reader *r, struct gossip_frame_part *f)
{
    struct wire_reader head = read_head(r);
    f->epoch = read_epoch(&head);
    f->id = read_seq(&head);
    f->total = (uint32_t)wire_read_varint_max(&head, GOSSIP_MESSAGE_MAX);
    f->index = (uint32_t)wire_read_varint_max(&head, GOSSIP_MESSAGE_MAX / GOSSIP_PART_BYTES + 1);
    f->vector = wire_read_u64(&head);
    f->bytes = read_rest(r);
    size_t start = (size_t)f->index * GOSSIP_PART_BYTES;
    if (head.bad || r->bad || start >= f->total) {
        r->bad = true;
        return;
    }
    size_t expected = f->total - start < GOSSIP_PART_BYTES ? f->total - start : GOSSIP_PART_BYTES;
    if (f->bytes.len != expected)
        r->bad = true;
}

static void read_place(struct wire_reader *r, struct gossip_frame_member *out)
{
    uint8_t kind = wire_read_u8(r);
    struct slice bytes = wire_read_bytes(r, wire_read_u8(r));
    bool known = kind >= GOSSIP_PLACE_ADVERTISED && kind <= GOSSIP_PLACE_YOURS &&
                 (bytes.len == IPV4_BYTES || bytes.len == IPV6_BYTES);
    if (r->bad || !known || out->count == GOSSIP_FRAME_PLACES_MAX)
        return;
    struct gossip_frame_place *place = &out->places[out->count++];
    struct wire_reader at = wire_reader_of(bytes.at, bytes.len);
    struct slice ip = wire_read_bytes(&at, bytes.len - PORT_BYTES);
    *place = (struct gossip_frame_place){.kind = (enum gossip_place_kind)kind};
    memcpy(place->at.ip, ip.at, ip.len);
    place->at.family = bytes.len == IPV4_BYTES ? 4 : 6;
    place->at.port = wire_read_u16(&at);
    if (place->at.port == 0)
        r->bad = true;
}

static void read_member(struct wire_reader *r, struct gossip_frame_member *out)
{
    *out = (struct gossip_frame_member){.incarnation = read_incarnation(r)};
    uint8_t state = wire_read_u8(r);
    if (state > GOSSIP_LEFT)
        r->bad = true;
    out->state = (enum gossip_state)state;
    out->name = wire_read_bytes(r, wire_read_u8(r));
    if (out->name.len == 0 || out->name.len > GOSSIP_NAME_MAX ||
        memchr(out->name.at, 0, out->name.len) != NULL)
        r->bad = true;
    out->meta = wire_read_bytes(r, wire_read_varint_max(r, GOSSIP_META_MAX));
    for (uint8_t left = wire_read_u8(r); left > 0 && !r->bad; left--)
        read_place(r, out);
}

int gossip_frame_member(struct wire_reader *body, struct gossip_frame_member *out)
{
    if (wire_left(body) == 0)
        return body->bad ? ERR_SYNTAX : 0;
    struct slice bytes = wire_read_bytes(body, wire_read_varint_max(body, GOSSIP_PACKET_MAX));
    struct wire_reader entry = wire_reader_of(bytes.at, bytes.len);
    read_member(&entry, out);
    body->bad = body->bad || entry.bad; /* the rest of the entry is from a later version */
    return body->bad ? ERR_SYNTAX : 1;
}

int gossip_frame_entry(struct wire_reader *body, struct gossip_frame_entry *out)
{
    if (wire_left(body) == 0)
        return body->bad ? ERR_SYNTAX : 0;
    out->node = read_node(body);
    out->epoch = read_epoch(body);
    out->seq = wire_read_varint_max(body, GOSSIP_SEQ_LIMIT - 1);
    return body->bad ? ERR_SYNTAX : 1;
}

static void check_members(struct slice bytes, struct wire_reader *verdict)
{
    struct wire_reader body = wire_reader_of(bytes.at, bytes.len);
    struct gossip_frame_member member;
    int status;
    while ((status = gossip_frame_member(&body, &member)) == 1)
        ;
    verdict->bad = verdict->bad || status < 0;
}

static void check_vector(struct slice bytes, struct wire_reader *verdict)
{
    struct wire_reader body = wire_reader_of(bytes.at, bytes.len);
    struct gossip_frame_entry entry;
    int status;
    while ((status = gossip_frame_entry(&body, &entry)) == 1)
        ;
    verdict->bad = verdict->bad || status < 0;
}

static void read_body(struct wire_reader *r, struct gossip_frame_any *f)
{
    switch (f->type) {
    case GOSSIP_FRAME_DELTA:
        read_delta(r, &f->delta);
        break;
    case GOSSIP_FRAME_ALIVE:
        read_alive(r, &f->alive);
        break;
    case GOSSIP_FRAME_NACK:
        f->nack.epoch = read_epoch(r);
        read_ranges(r, &f->nack.ranges);
        break;
    case GOSSIP_FRAME_GONE:
        f->gone.epoch = read_epoch(r);
        f->gone.oldest = read_seq(r);
        break;
    case GOSSIP_FRAME_PING:
    case GOSSIP_FRAME_ACK:
        read_ping(r, &f->ping);
        break;
    case GOSSIP_FRAME_PART:
        read_part(r, &f->part);
        break;
    case GOSSIP_FRAME_RESEND:
        f->resend.epoch = read_epoch(r);
        f->resend.id = read_seq(r);
        f->resend.done = wire_read_u8(r) & 1;
        read_ranges(r, &f->resend.ranges);
        break;
    case GOSSIP_FRAME_FULL:
        f->full.limit = (uint32_t)wire_read_varint_max(r, UINT32_MAX);
        break;
    case GOSSIP_FRAME_MEMBERS:
        check_members(f->body, r);
        read_rest(r);
        break;
    case GOSSIP_FRAME_VECTOR:
        check_vector(f->body, r);
        read_rest(r);
        break;
    case GOSSIP_FRAMES:
        read_rest(r);
        break;
    }
}

static bool is_base(enum gossip_frame type)
{
    return type == GOSSIP_FRAME_ALIVE || type == GOSSIP_FRAME_MEMBERS ||
           type == GOSSIP_FRAME_PING || type == GOSSIP_FRAME_ACK || type == GOSSIP_FRAME_FULL;
}

int gossip_frame_read(struct wire_reader *packet, bool base, struct gossip_frame_any *out)
{
    if (packet->bad)
        return ERR_SYNTAX;
    if (wire_left(packet) == 0)
        return 0;
    const uint8_t *start = packet->at;
    memset(out, 0, sizeof *out);
    uint8_t type = wire_read_u8(packet);
    out->body = wire_read_bytes(packet, wire_read_varint_max(packet, GOSSIP_PACKET_MAX));
    if (packet->bad)
        return ERR_SYNTAX;
    out->type = type < GOSSIP_FRAMES ? (enum gossip_frame)type : GOSSIP_FRAMES;
    if (base && !is_base(out->type))
        out->type = GOSSIP_FRAMES;
    out->bytes = (size_t)(packet->at - start);
    struct wire_reader body = wire_reader_of(out->body.at, out->body.len);
    read_body(&body, out);
    if (body.bad) {
        packet->bad = true;
        return ERR_SYNTAX;
    }
    return 1;
}

int gossip_frame_packet_check(struct slice packet, bool base)
{
    struct wire_reader r = wire_reader_of(packet.at, packet.len);
    struct gossip_frame_any frame;
    int status;
    while ((status = gossip_frame_read(&r, base, &frame)) == 1)
        ;
    return status;
}

/* --- writing --------------------------------------------------------------------------------- */

/* True if the written bytes are a single well-formed frame. */
static bool reads_back(const uint8_t *at, size_t len)
{
    struct wire_reader r = wire_reader_of(at, len);
    struct gossip_frame_any frame;
    return gossip_frame_read(&r, false, &frame) == 1 && (FUTURE || frame.type != GOSSIP_FRAMES) &&
           frame.bytes == len;
}

/* Removes the bytes since `mark` if the frame did not fit. */
static bool finish(struct wire_writer *w, uint8_t *mark)
{
    if (!w->bad) {
        CHECK_SLOW(reads_back(mark, (size_t)(w->at - mark)));
        return true;
    }
    w->at = mark;
    w->bad = false;
    return false;
}

static void write_header(struct wire_writer *w, enum gossip_frame type, size_t body)
{
    wire_write_u8(w, (uint8_t)type);
    wire_write_varint(w, body);
}

/* Writes a small frame with a finished body. */
static bool write_small(struct wire_writer *packet, enum gossip_frame type,
                        const struct wire_writer *body)
{
    uint8_t *mark = packet->at;
    bool list = type == GOSSIP_FRAME_MEMBERS || type == GOSSIP_FRAME_VECTOR;
    size_t later = FUTURE && !list ? FUTURE_BYTES.len : 0;
    write_header(packet, type, wire_written(body) + later);
    wire_write_bytes(packet, body->start, wire_written(body));
    wire_write_bytes(packet, FUTURE_BYTES.at, later);
    packet->bad = packet->bad || body->bad;
    return finish(packet, mark);
}

static void write_ranges(struct wire_writer *w, const struct gossip_ranges *ranges)
{
    wire_write_varint(w, ranges->count);
    uint64_t next = 1;
    for (unsigned i = 0; i < ranges->count; i++) {
        wire_write_varint(w, ranges->at[i].first - next);
        wire_write_varint(w, ranges->at[i].last - ranges->at[i].first + 1);
        next = ranges->at[i].last + 2;
    }
}

bool gossip_frame_write_delta(struct wire_writer *packet, const struct gossip_frame_delta *f)
{
    uint8_t head[40];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    wire_write_u8(&w,
                  (uint8_t)((f->relayed ? DELTA_RELAYED : 0) | (f->forward ? DELTA_FORWARD : 0)));
    wire_write_u48(&w, f->epoch);
    wire_write_varint(&w, f->seq);
    if (f->relayed)
        wire_write_u64(&w, f->author);
    if (f->forward) {
        wire_write_varint(&w, f->group);
        wire_write_varint(&w, f->groups);
    }
    if (FUTURE)
        wire_write_bytes(&w, FUTURE_HEAD_BYTES.at, FUTURE_HEAD_BYTES.len);
    uint8_t *mark = packet->at;
    write_header(packet, GOSSIP_FRAME_DELTA, 1 + wire_written(&w) + f->bytes.len);
    wire_write_u8(packet, (uint8_t)wire_written(&w));
    wire_write_bytes(packet, head, wire_written(&w));
    wire_write_bytes(packet, f->bytes.at, f->bytes.len);
    return finish(packet, mark);
}

bool gossip_frame_write_alive(struct wire_writer *packet, const struct gossip_frame_alive *f)
{
    uint8_t body[GOSSIP_ALIVE_BYTES];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_u8(&w, f->full ? ALIVE_FULL : 0);
    wire_write_u64(&w, f->incarnation);
    wire_write_varint(&w, f->seq);
    if (f->full) {
        wire_write_u64(&w, f->vector);
        wire_write_u64(&w, f->members);
        wire_write_u8(&w, f->health);
        wire_write_u32(&w, f->sent);
        wire_write_u32(&w, f->echo);
        wire_write_u32(&w, f->held);
    }
    return write_small(packet, GOSSIP_FRAME_ALIVE, &w);
}

bool gossip_frame_write_nack(struct wire_writer *packet, const struct gossip_frame_nack *f)
{
    uint8_t body[GOSSIP_RANGES_MAX * 2 * WIRE_VARINT_MAX + 8];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_u48(&w, f->epoch);
    write_ranges(&w, &f->ranges);
    return write_small(packet, GOSSIP_FRAME_NACK, &w);
}

bool gossip_frame_write_gone(struct wire_writer *packet, const struct gossip_frame_gone *f)
{
    uint8_t body[16];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_u48(&w, f->epoch);
    wire_write_varint(&w, f->oldest);
    return write_small(packet, GOSSIP_FRAME_GONE, &w);
}

bool gossip_frame_write_ping(struct wire_writer *packet, bool ack,
                             const struct gossip_frame_ping *f)
{
    uint8_t body[24];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_u8(&w, (uint8_t)((f->who ? PING_WHO : 0) | (f->target != 0 ? PING_TARGET : 0) |
                                (f->origin != 0 ? PING_ORIGIN : 0)));
    wire_write_u32(&w, f->nonce);
    if (f->target != 0)
        wire_write_u64(&w, f->target);
    if (f->origin != 0)
        wire_write_u64(&w, f->origin);
    return write_small(packet, ack ? GOSSIP_FRAME_ACK : GOSSIP_FRAME_PING, &w);
}

bool gossip_frame_write_part(struct wire_writer *packet, const struct gossip_frame_part *f)
{
    uint8_t head[48];
    struct wire_writer w = wire_writer_of(head, sizeof head);
    wire_write_u48(&w, f->epoch);
    wire_write_varint(&w, f->id);
    wire_write_varint(&w, f->total);
    wire_write_varint(&w, f->index);
    wire_write_u64(&w, f->vector);
    if (FUTURE)
        wire_write_bytes(&w, FUTURE_HEAD_BYTES.at, FUTURE_HEAD_BYTES.len);
    uint8_t *mark = packet->at;
    write_header(packet, GOSSIP_FRAME_PART, 1 + wire_written(&w) + f->bytes.len);
    wire_write_u8(packet, (uint8_t)wire_written(&w));
    wire_write_bytes(packet, head, wire_written(&w));
    wire_write_bytes(packet, f->bytes.at, f->bytes.len);
    return finish(packet, mark);
}

bool gossip_frame_write_resend(struct wire_writer *packet, const struct gossip_frame_resend *f)
{
    uint8_t body[GOSSIP_RANGES_MAX * 2 * WIRE_VARINT_MAX + 24];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_u48(&w, f->epoch);
    wire_write_varint(&w, f->id);
    wire_write_u8(&w, f->done);
    write_ranges(&w, &f->ranges);
    return write_small(packet, GOSSIP_FRAME_RESEND, &w);
}

bool gossip_frame_write_future(struct wire_writer *packet)
{
    uint8_t *mark = packet->at;
    write_header(packet, (enum gossip_frame)FUTURE_KIND, FUTURE_BYTES.len);
    wire_write_bytes(packet, FUTURE_BYTES.at, FUTURE_BYTES.len);
    return finish(packet, mark);
}

bool gossip_frame_write_full(struct wire_writer *packet, const struct gossip_frame_full *f)
{
    uint8_t body[WIRE_VARINT_MAX];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_varint(&w, f->limit);
    return write_small(packet, GOSSIP_FRAME_FULL, &w);
}

bool gossip_frame_write_member(struct wire_writer *packet, const struct gossip_frame_member *f)
{
    uint8_t entry[GOSSIP_MEMBER_ENTRY_MAX];
    uint8_t body[GOSSIP_MEMBER_ENTRY_MAX];
    struct wire_writer w = wire_writer_of(entry, sizeof entry);
    wire_write_u64(&w, f->incarnation);
    wire_write_u8(&w, (uint8_t)f->state);
    wire_write_u8(&w, (uint8_t)f->name.len);
    wire_write_bytes(&w, f->name.at, f->name.len);
    wire_write_varint(&w, f->meta.len);
    wire_write_bytes(&w, f->meta.at, f->meta.len);
    wire_write_u8(&w, (uint8_t)f->count);
    for (unsigned i = 0; i < f->count; i++) {
        const struct gossip_address *at = &f->places[i].at;
        size_t ip = at->family == 4 ? 4 : 16;
        wire_write_u8(&w, (uint8_t)f->places[i].kind);
        wire_write_u8(&w, (uint8_t)(ip + PORT_BYTES));
        wire_write_bytes(&w, at->ip, ip);
        wire_write_u16(&w, at->port);
    }
    struct wire_writer whole = wire_writer_of(body, sizeof body);
    wire_write_varint(&whole, wire_written(&w));
    wire_write_bytes(&whole, entry, wire_written(&w));
    whole.bad = whole.bad || w.bad;
    return write_small(packet, GOSSIP_FRAME_MEMBERS, &whole);
}

unsigned gossip_frame_write_vector(struct wire_writer *packet,
                                   const struct gossip_frame_entry *entries, unsigned count)
{
    uint8_t body[GOSSIP_PACKET_MAX];
    size_t room = wire_room(packet);
    if (room < GOSSIP_VECTOR_ENTRY_MAX + 3)
        return 0;
    struct wire_writer w = wire_writer_of(body, room - 3 < sizeof body ? room - 3 : sizeof body);
    unsigned n = 0;
    while (n < count && wire_room(&w) >= GOSSIP_VECTOR_ENTRY_MAX) {
        wire_write_u64(&w, entries[n].node);
        wire_write_u48(&w, entries[n].epoch);
        wire_write_varint(&w, entries[n].seq);
        n++;
    }
    return n > 0 && write_small(packet, GOSSIP_FRAME_VECTOR, &w) ? n : 0;
}
