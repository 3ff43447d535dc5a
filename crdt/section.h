/* A message of anti-entropy is a list of sections, each with kind (1 byte) and length (4). A
 * section of an unknown kind is skipped and counted; of a section longer than expected, only the
 * known part is read. */
#ifndef CRDT_SECTION_H
#define CRDT_SECTION_H

#include "base/wire.h"

enum crdt_section_kind {
    CRDT_SECTION_SUMMARY = 1,
    CRDT_SECTION_CELLS,    /* folded cells of the sender's sketch */
    CRDT_SECTION_WIDER,    /* asks for more cells: decoding failed */
    CRDT_SECTION_TOO_MANY, /* too many differences: the receiver should take a snapshot */
    CRDT_SECTION_REPLICAS, /* hashes of the rows of the registry      crdt/classes.h */
    CRDT_SECTION_REPORTS,  /* digests of each router's reports */
    CRDT_SECTION_EVENTS,   /* sent by older routers, skipped; the number stays unused (ADR 0067) */
    CRDT_SECTION_RECORDS,  /* a dump: crdt/record.h */
    CRDT_SECTION_POISON,   /* the rows of poison, whole: they are as small as their hashes */
    CRDT_SECTION_KINDS,
};

struct crdt_section {
    unsigned kind;
    struct slice body;
};

static inline bool crdt_section_next(struct wire_reader *r, struct crdt_section *out)
{
    if (wire_left(r) == 0)
        return false;
    out->kind = wire_read_u8(r);
    out->body = wire_read_bytes(r, wire_read_u32(r));
    return !r->bad;
}

/* Sections are written one after another, each whole or not at all. If a section does not fit, the
 * next round sends it. */
struct crdt_section_writer {
    struct wire_writer w;
    uint8_t *open; /* where the open section begins */
};

static inline void crdt_section_begin(struct crdt_section_writer *p, enum crdt_section_kind kind)
{
    p->open = p->w.at;
    wire_write_u8(&p->w, (uint8_t)kind);
    wire_write_u32(&p->w, 0);
}

static inline void crdt_section_end(struct crdt_section_writer *p)
{
    enum { HEADER = 5 };
    if (p->w.bad) {
        p->w.bad = false;
        p->w.at = p->open;
        return;
    }
    struct wire_writer length = wire_writer_of(p->open + 1, 4);
    wire_write_u32(&length, (uint32_t)(p->w.at - p->open - HEADER));
}

#endif
