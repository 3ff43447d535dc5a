/* Packed little-endian fields, as the frames of gossip and the codecs of crdt use them.
 *
 * Errors stick: the first read or write beyond the end sets `bad` and moves nothing. After that,
 * reading yields 0 and writing does nothing. So a decoder reads all fields and then checks `bad`
 * once. Varints are LEB128 of at most 10 bytes; overlong encodings are bad.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

enum { WIRE_VARINT_MAX = 10 };

struct wire_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool bad;
};

struct wire_writer {
    uint8_t *start;
    uint8_t *at;
    uint8_t *end;
    bool bad;
};

static inline struct wire_reader wire_reader_of(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    return (struct wire_reader){.at = at, .end = len > 0 ? at + len : at};
}

static inline struct wire_writer wire_writer_of(void *bytes, size_t len)
{
    uint8_t *at = bytes;
    return (struct wire_writer){.start = at, .at = at, .end = at + len};
}

static inline size_t wire_left(const struct wire_reader *r)
{
    return r->bad ? 0 : (size_t)(r->end - r->at);
}

static inline size_t wire_written(const struct wire_writer *w)
{
    return (size_t)(w->at - w->start);
}

static inline size_t wire_room(const struct wire_writer *w)
{
    return w->bad ? 0 : (size_t)(w->end - w->at);
}

/* Returns the next `len` bytes, borrowed. If there are fewer, sets `bad` and returns an empty
 * slice. */
static inline struct slice wire_read_bytes(struct wire_reader *r, size_t len)
{
    if (r->bad || len > (size_t)(r->end - r->at)) {
        r->bad = true;
        return slice_of(NULL, 0);
    }
    const char *at = (const char *)r->at;
    r->at += len;
    return slice_of(at, len);
}

static inline uint64_t wire_read_fixed(struct wire_reader *r, unsigned bytes)
{
    if (r->bad || bytes > (size_t)(r->end - r->at)) {
        r->bad = true;
        return 0;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)r->at[i] << (8 * i);
    r->at += bytes;
    return value;
}

static inline uint8_t wire_read_u8(struct wire_reader *r)
{
    return (uint8_t)wire_read_fixed(r, 1);
}

static inline uint16_t wire_read_u16(struct wire_reader *r)
{
    return (uint16_t)wire_read_fixed(r, 2);
}

static inline uint32_t wire_read_u32(struct wire_reader *r)
{
    return (uint32_t)wire_read_fixed(r, 4);
}

static inline uint64_t wire_read_u48(struct wire_reader *r)
{
    return wire_read_fixed(r, 6);
}

static inline uint64_t wire_read_u64(struct wire_reader *r)
{
    return wire_read_fixed(r, 8);
}

/* Reads any double, also NaN. */
static inline double wire_read_double(struct wire_reader *r)
{
    uint64_t bits = wire_read_u64(r);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint64_t wire_read_varint(struct wire_reader *r);

/* Reads a varint of at most `max`; a greater value sets `bad`. */
static inline uint64_t wire_read_varint_max(struct wire_reader *r, uint64_t max)
{
    uint64_t value = wire_read_varint(r);
    if (value > max) {
        r->bad = true;
        return 0;
    }
    return value;
}

/* Reads a field at the end of a record. If an older version wrote the record without it, gives
 * 0. */
static inline uint64_t wire_read_field(struct wire_reader *r, uint64_t max)
{
    return wire_left(r) > 0 ? wire_read_varint_max(r, max) : 0;
}

static inline void wire_write_bytes(struct wire_writer *w, const void *bytes, size_t len)
{
    if (w->bad || len > (size_t)(w->end - w->at)) {
        w->bad = true;
        return;
    }
    if (len > 0)
        memcpy(w->at, bytes, len);
    w->at += len;
}

static inline void wire_write_fixed(struct wire_writer *w, uint64_t value, unsigned bytes)
{
    uint8_t packed[8];
    for (unsigned i = 0; i < bytes; i++)
        packed[i] = (uint8_t)(value >> (8 * i));
    wire_write_bytes(w, packed, bytes);
}

static inline void wire_write_u8(struct wire_writer *w, uint8_t value)
{
    wire_write_fixed(w, value, 1);
}

static inline void wire_write_u16(struct wire_writer *w, uint16_t value)
{
    wire_write_fixed(w, value, 2);
}

static inline void wire_write_u32(struct wire_writer *w, uint32_t value)
{
    wire_write_fixed(w, value, 4);
}

static inline void wire_write_u48(struct wire_writer *w, uint64_t value)
{
    wire_write_fixed(w, value, 6);
}

static inline void wire_write_u64(struct wire_writer *w, uint64_t value)
{
    wire_write_fixed(w, value, 8);
}

static inline void wire_write_double(struct wire_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    wire_write_u64(w, bits);
}

void wire_write_varint(struct wire_writer *w, uint64_t value);

static inline unsigned wire_varint_bytes(uint64_t value)
{
    unsigned bytes = 1;
    while (value >>= 7)
        bytes++;
    return bytes;
}

#endif
