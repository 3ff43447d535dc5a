#include "crdt/batch.h"

#include <string.h>

#include "base/check.h"

enum {
    ID_BYTES = 6,
    CODE_BITS = 5,
    CODE_MASK = 31,
    GENERATION_BITS_MAX = 12,
    CACHE_BITS_MAX = 11,
    NONE = 0xffff,
};

static unsigned bits_of(uint32_t greatest)
{
    return greatest == 0 ? 0 : 32 - (unsigned)__builtin_clz(greatest);
}

static unsigned bytes_of(unsigned bits)
{
    return (bits + 7) / 8;
}

static unsigned tail_bytes(unsigned generation_bits, unsigned cache_bits)
{
    return bytes_of(CODE_BITS + generation_bits + cache_bits);
}

/* At least 1 byte, so that a count of entries cannot exceed the number of bytes after it. */
static unsigned set_tail_bytes(unsigned generation_bits, unsigned cache_bits)
{
    unsigned bytes = bytes_of(generation_bits + cache_bits);
    return bytes > 0 ? bytes : 1;
}

/* --- writing -------------------------------------------------------------------------------- */

struct packing {
    uint16_t cache_of_slot[CRDT_REPLICAS_MAX];
    uint16_t slot_of_cache[CRDT_REPLICAS_MAX];
    unsigned caches;
    uint32_t oldest;
    uint32_t newest;
    unsigned generation_bits;
    unsigned cache_bits;
    unsigned singles;
    unsigned sets;
};

static unsigned same_id(const struct crdt_batch_entry *e, unsigned count)
{
    unsigned n = 1;
    while (n < count && e[n].id48 == e[0].id48 && e[n].code == e[0].code)
        n++;
    return n;
}

static void survey(struct packing *p, const struct crdt_batch_entry *entries, unsigned count)
{
    memset(p->cache_of_slot, 0xff, sizeof p->cache_of_slot);
    p->oldest = entries[0].generation;
    p->newest = entries[0].generation;
    for (unsigned i = 0; i < count; i++) {
        const struct crdt_batch_entry *e = &entries[i];
        if (p->cache_of_slot[e->slot] == NONE) {
            p->slot_of_cache[p->caches] = e->slot;
            p->cache_of_slot[e->slot] = (uint16_t)p->caches++;
        }
        p->oldest = e->generation < p->oldest ? e->generation : p->oldest;
        p->newest = e->generation > p->newest ? e->generation : p->newest;
    }
    for (unsigned i = 0; i < count;) {
        unsigned n = same_id(&entries[i], count - i);
        *(n == 1 ? &p->singles : &p->sets) += 1;
        i += n;
    }
    p->generation_bits = bits_of(p->newest - p->oldest);
    p->cache_bits = bits_of(p->caches - 1);
    CHECK(p->generation_bits <= GENERATION_BITS_MAX);
}

static uint8_t *put(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
    return at + bytes;
}

static uint32_t place_of(const struct packing *p, const struct crdt_batch_entry *e)
{
    return (e->generation - p->oldest) << p->cache_bits | p->cache_of_slot[e->slot];
}

static uint8_t *put_singles(const struct packing *p, uint8_t *at,
                            const struct crdt_batch_entry *entries, unsigned count)
{
    unsigned tail = tail_bytes(p->generation_bits, p->cache_bits);
    for (unsigned i = 0; i < count;) {
        const struct crdt_batch_entry *e = &entries[i];
        unsigned n = same_id(e, count - i);
        i += n;
        if (n > 1)
            continue;
        at = put(at, e->id48, ID_BYTES);
        at = put(at, place_of(p, e) << CODE_BITS | e->code, tail);
    }
    return at;
}

static uint8_t *put_sets(const struct packing *p, uint8_t *at,
                         const struct crdt_batch_entry *entries, unsigned count)
{
    unsigned tail = set_tail_bytes(p->generation_bits, p->cache_bits);
    for (unsigned i = 0; i < count;) {
        unsigned n = same_id(&entries[i], count - i);
        if (n > 1) {
            at = put(at, entries[i].id48, ID_BYTES);
            *at++ = entries[i].code;
            struct wire_writer w = wire_writer_of(at, WIRE_VARINT_MAX);
            wire_write_varint(&w, n);
            at = w.at;
            for (unsigned k = 0; k < n; k++)
                at = put(at, place_of(p, &entries[i + k]), tail);
        }
        i += n;
    }
    return at;
}

int crdt_batch_append(struct buf *out, const struct crdt_batch_entry *entries, unsigned count,
                      const uint32_t *rkey_of_slot)
{
    CHECK(count > 0);
    struct packing p = {0};
    survey(&p, entries, count);
    /* An upper bound: a set's header is no longer than the ids and codes saved by the set. */
    size_t most = 64 + (size_t)p.caches * sizeof(uint32_t) + (size_t)count * (ID_BYTES + 4) +
                  (size_t)p.sets * WIRE_VARINT_MAX;
    int err = buf_reserve(out, most);
    if (err != 0)
        return err;
    uint8_t *start = (uint8_t *)out->at + out->len;
    struct wire_writer w = wire_writer_of(start, most);
    wire_write_u16(&w, (uint16_t)p.caches);
    for (unsigned i = 0; i < p.caches; i++)
        wire_write_u32(&w, rkey_of_slot[p.slot_of_cache[i]]);
    wire_write_u32(&w, p.oldest);
    wire_write_u8(&w, (uint8_t)p.generation_bits);
    wire_write_u8(&w, (uint8_t)p.cache_bits);
    wire_write_varint(&w, p.singles);
    wire_write_varint(&w, p.sets);
    CHECK(!w.bad);
    uint8_t *at = put_singles(&p, w.at, entries, count);
    at = put_sets(&p, at, entries, count);
    CHECK((size_t)(at - start) <= most);
    out->len += (size_t)(at - start);
    return 0;
}

/* --- reading -------------------------------------------------------------------------------- */

static void read_sets(struct wire_reader *r, struct crdt_batch *out)
{
    unsigned tail = set_tail_bytes(out->generation_bits, out->cache_bits);
    const uint8_t *start = r->at;
    for (unsigned i = 0; i < out->sets && !r->bad; i++) {
        (void)wire_read_u48(r);
        uint8_t code = wire_read_u8(r);
        size_t holders = (size_t)wire_read_varint_max(r, CRDT_REPLICAS_MAX);
        if (code > CODE_MASK || holders == 0)
            r->bad = true;
        (void)wire_read_bytes(r, holders * tail);
    }
    if (!r->bad)
        out->sets_bytes = slice_of((const char *)start, (size_t)(r->at - start));
}

void crdt_batch_read(struct wire_reader *r, struct crdt_batch *out)
{
    memset(out, 0, sizeof *out);
    out->caches = wire_read_u16(r);
    if (out->caches == 0 || out->caches > CRDT_REPLICAS_MAX)
        r->bad = true;
    out->rkeys = wire_read_bytes(r, (size_t)out->caches * sizeof(uint32_t));
    out->oldest = wire_read_u32(r);
    out->generation_bits = wire_read_u8(r);
    out->cache_bits = wire_read_u8(r);
    if (out->generation_bits > GENERATION_BITS_MAX || out->cache_bits > CACHE_BITS_MAX ||
        out->oldest > UINT32_MAX - (1u << GENERATION_BITS_MAX))
        r->bad = true;
    size_t left = wire_left(r); /* each entry takes at least a byte */
    out->singles = (unsigned)wire_read_varint_max(r, left);
    out->sets = (unsigned)wire_read_varint_max(r, left);
    if (r->bad)
        return;
    size_t each = ID_BYTES + tail_bytes(out->generation_bits, out->cache_bits);
    out->singles_bytes = wire_read_bytes(r, out->singles * each);
    read_sets(r, out);
}

struct crdt_batch_reader crdt_batch_reader_of(const struct crdt_batch *block)
{
    return (struct crdt_batch_reader){
        .block = block,
        .singles = wire_reader_of(block->singles_bytes.at, block->singles_bytes.len),
        .sets = wire_reader_of(block->sets_bytes.at, block->sets_bytes.len)};
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void unpack_place(const struct crdt_batch *b, uint32_t place, struct crdt_batch_entry *out)
{
    out->generation = b->oldest + (place >> b->cache_bits & ((1u << b->generation_bits) - 1));
    out->slot = (uint16_t)(place & ((1u << b->cache_bits) - 1));
}

static unsigned next_singles(struct crdt_batch_reader *r, struct crdt_batch_entry *out,
                             unsigned max)
{
    const struct crdt_batch *b = r->block;
    unsigned tail = tail_bytes(b->generation_bits, b->cache_bits);
    size_t left = wire_left(&r->singles) / (ID_BYTES + tail);
    unsigned count = left < max ? (unsigned)left : max;
    const uint8_t *at = r->singles.at;
    for (unsigned i = 0; i < count; i++, at += ID_BYTES + tail) {
        uint32_t packed = (uint32_t)get(at + ID_BYTES, tail);
        out[i].id48 = get(at, ID_BYTES);
        out[i].code = packed & CODE_MASK;
        unpack_place(b, packed >> CODE_BITS, &out[i]);
    }
    r->singles.at = at;
    return count;
}

unsigned crdt_batch_next(struct crdt_batch_reader *r, struct crdt_batch_entry *out, unsigned max)
{
    const struct crdt_batch *b = r->block;
    unsigned count = next_singles(r, out, max);
    unsigned tail = set_tail_bytes(b->generation_bits, b->cache_bits);
    for (; count < max && (r->set_left > 0 || wire_left(&r->sets) > 0); count++, r->set_left--) {
        if (r->set_left == 0) {
            r->id48 = wire_read_u48(&r->sets);
            r->code = wire_read_u8(&r->sets);
            r->set_left = (uint32_t)wire_read_varint(&r->sets);
        }
        out[count].id48 = r->id48;
        out[count].code = r->code;
        unpack_place(b, (uint32_t)wire_read_fixed(&r->sets, tail), &out[count]);
    }
    return count;
}
