#include "crdt/value.h"

#include "base/check.h"
#include "base/hash.h"

enum { SIGHT_CONFIGURED = 1, SIGHT_ASLEEP = 2 };

/* Removes the trailing zeros written since `start`. */
static void trim(struct wire_writer *w, const uint8_t *start)
{
    while (!w->bad && w->at > start && w->at[-1] == 0)
        w->at--;
}

static void write_load(struct wire_writer *w, const struct crdt_load *l)
{
#define WRITE(type, name, most) wire_write_varint(w, l->name);
    CRDT_LOAD_FIELDS(WRITE)
#undef WRITE
}

static void write_sight(struct wire_writer *w, const struct crdt_sight *s)
{
    wire_write_u8(
        w, (uint8_t)((s->configured ? SIGHT_CONFIGURED : 0u) | (s->asleep ? SIGHT_ASLEEP : 0u)));
    wire_write_u8(w, s->health);
    wire_write_u8(w, s->engine);
    wire_write_u8(w, s->breaker);
    wire_write_u8(w, s->cured);
    wire_write_u8(w, s->still);
    wire_write_fixed(w, s->rejects, sizeof s->rejects);
    wire_write_fixed(w, s->rejects_with, sizeof s->rejects_with);
}

void crdt_value_write(struct wire_writer *w, enum crdt_report_kind kind,
                      const union crdt_report_value *value, struct slice later)
{
    const uint8_t *start = w->at;
    CHECK(later.len <= CRDT_LATER_MAX);
    if (kind == CRDT_REPORT_LOAD)
        write_load(w, &value->load);
    else if (kind == CRDT_REPORT_SIGHT)
        write_sight(w, &value->sight);
    else
        crdt_learned_write(w, &value->learned);
    wire_write_bytes(w, later.at, later.len);
    trim(w, start);
}

static void read_load(struct wire_reader *r, struct crdt_load *l)
{
#define READ(type, name, most) l->name = (type)wire_read_field(r, most);
    CRDT_LOAD_FIELDS(READ)
#undef READ
}

static uint8_t field_u8(struct wire_reader *r)
{
    return wire_left(r) > 0 ? wire_read_u8(r) : 0;
}

/* Reads a field of `bytes` bytes, or a shorter field with trailing zeros cut off. */
static uint64_t field_fixed(struct wire_reader *r, unsigned bytes)
{
    size_t left = wire_left(r);
    return wire_read_fixed(r, left < bytes ? (unsigned)left : bytes);
}

static void read_sight(struct wire_reader *r, struct crdt_sight *s)
{
    uint8_t flags = field_u8(r);
    s->configured = (flags & SIGHT_CONFIGURED) != 0;
    s->asleep = (flags & SIGHT_ASLEEP) != 0;
    s->health = field_u8(r);
    s->engine = field_u8(r);
    s->breaker = field_u8(r);
    s->cured = field_u8(r);
    s->still = field_u8(r);
    s->rejects = field_fixed(r, sizeof s->rejects);
    s->rejects_with = (uint16_t)field_fixed(r, sizeof s->rejects_with);
}

void crdt_value_read(struct wire_reader *r, enum crdt_report_kind kind,
                     union crdt_report_value *value, struct slice *later)
{
    if (kind == CRDT_REPORT_LOAD)
        read_load(r, &value->load);
    else if (kind == CRDT_REPORT_SIGHT)
        read_sight(r, &value->sight);
    else
        crdt_learned_read(r, &value->learned);
    *later = crdt_later_read(r);
}

struct slice crdt_later_read(struct wire_reader *r)
{
    struct slice later = wire_read_bytes(r, wire_left(r));
    if (later.len > CRDT_LATER_MAX)
        later.len = CRDT_LATER_MAX;
    while (later.len > 0 && later.at[later.len - 1] == 0)
        later.len--;
    return later;
}

uint64_t crdt_later_hash(uint64_t h, struct slice later)
{
    for (size_t i = 0; i < later.len; i += sizeof(uint64_t)) {
        size_t left = later.len - i;
        struct wire_reader r = wire_reader_of(later.at + i, left);
        h = hash_mix(h + wire_read_fixed(&r, left < 8 ? (unsigned)left : 8));
    }
    return h;
}

uint64_t crdt_value_hash(uint64_t h, enum crdt_report_kind kind,
                         const union crdt_report_value *value, struct slice later)
{
    uint8_t bytes[CRDT_VALUE_BYTES_MAX];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    crdt_value_write(&w, kind, value, later);
    CHECK(!w.bad);
    return crdt_later_hash(h, slice_of((const char *)bytes, wire_written(&w)));
}
