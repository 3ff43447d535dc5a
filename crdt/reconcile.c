#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "crdt/classes.h"
#include "crdt/record.h"
#include "crdt/section.h"
#include "crdt/sketch.h"
#include "crdt/state_internal.h"

/* Anti-entropy. The registry and the reports are compared by vectors (crdt/classes.h), the index by
 * sketches, from the higher of both floors on. A summary has the sender's floor. If the receiver's
 * floor is higher, the receiver answers with a summary too. Its `hops` is above 0: only the index
 * is compared again.
 *
 * A floor usually lies within a span. The *cut* is the part of this span from the floor on. The
 * spans above have sketches, always up to date. A cut's sketch is made by a walk (crdt/index.h),
 * and only if the cuts differ. A message gives the first generation of the cells in it. If no span
 * begins with this generation, the cells belong to a cut. */
enum {
    PARTS_MAX = 16,
    HOPS_MAX = 2,  /* summaries sent in answer to summaries */
    TRIES_MAX = 2, /* requests for more cells in a round */
    SKEW_MAX = 1,  /* generations between two clocks; beyond it, some differences cannot be
                    * joined */
    SUMMARY_BYTES = 73 + CRDT_ESTIMATE_COUNTERS,
    SUMMARY_BYTES_ALL = SUMMARY_BYTES + 8, /* with fields added in later versions */
    SUMMARY_UNCLEAN = 0x80,                /* a flag in the byte of `hops` */
    CUT_DIFFERENCES_MIN = 60,              /* differences assumed in a cut, which has no estimate */
    WIDER_BYTES = 7,
    CELLS_MAX = CRDT_SKETCH_ROWS * CRDT_SKETCH_CELLS,
};

_Static_assert(SUMMARY_BYTES_ALL + 5 <= CRDT_SUMMARY_MAX, "a summary with the head of its section");
_Static_assert((int)CRDT_SKETCH_ROWS *CRDT_SKETCH_CELLS *CRDT_CELL_BYTES + 64 <=
                   (int)CRDT_MESSAGE_MAX,
               "all cells of a sketch fit a message");

struct summary {
    uint8_t hops;
    bool clean; /* the sketches can be compared */
    uint32_t now, floor;
    uint32_t from;  /* first generation of the first whole span */
    uint32_t names; /* floor of the registry, a second of cluster time */
    uint64_t registry, loads, others;
    uint64_t index;            /* digest of the entries from `from` on */
    uint64_t cut, cut_entries; /* digest and number of the entries from `floor` up to `from` */
    uint8_t estimate[CRDT_ESTIMATE_COUNTERS];
    uint64_t poison; /* digest of poison; a sender without poison counts as equal to the receiver */
};

/* --- summaries ------------------------------------------------------------------------------ */

static void summarise(const struct crdt_state *s, uint8_t hops, struct summary *out)
{
    const struct crdt_index *x = s->index;
    uint32_t floor = crdt_index_floor(x);
    uint32_t from = crdt_index_sketch_from(x, floor);
    *out = (struct summary){.hops = hops,
                            .clean = crdt_index_sketch_is_clean(x),
                            .now = crdt_index_now(x),
                            .floor = floor,
                            .from = from,
                            .names = crdt_registry_floor_s(s->registry),
                            .registry = crdt_registry_digest(s->registry, 0),
                            .index = crdt_index_digest(x, from),
                            .cut = crdt_index_digest_between(x, floor, from),
                            .cut_entries = crdt_index_entries_between(x, floor, from),
                            .poison = s->poison.digest};
    crdt_reports_digest(s->reports, &out->loads, &out->others);
    crdt_index_estimate(x, from, out->estimate);
}

static void write_summary(const struct crdt_state *s, uint8_t hops, struct crdt_section_writer *out)
{
    struct summary own;
    summarise(s, hops, &own);
    crdt_section_begin(out, CRDT_SECTION_SUMMARY);
    wire_write_u8(&out->w, (uint8_t)(own.hops | (own.clean ? 0 : SUMMARY_UNCLEAN)));
    wire_write_u32(&out->w, own.now);
    wire_write_u32(&out->w, own.floor);
    wire_write_u32(&out->w, own.from);
    wire_write_u32(&out->w, own.names);
    wire_write_u64(&out->w, own.registry);
    wire_write_u64(&out->w, 0); /* older routers compare engines' events, which no longer exist */
    wire_write_u64(&out->w, own.loads);
    wire_write_u64(&out->w, own.others);
    wire_write_u64(&out->w, own.index);
    wire_write_u64(&out->w, own.cut);
    wire_write_u64(&out->w, own.cut_entries);
    wire_write_bytes(&out->w, own.estimate, sizeof own.estimate);
    wire_write_u64(&out->w, own.poison);
    crdt_section_end(out);
}

static struct summary read_summary(const struct crdt_state *s, struct slice body)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    struct summary p;
    uint8_t hops = wire_read_u8(&r);
    p.hops = (uint8_t)(hops & ~SUMMARY_UNCLEAN);
    p.clean = (hops & SUMMARY_UNCLEAN) == 0;
    p.now = wire_read_u32(&r);
    p.floor = wire_read_u32(&r);
    p.from = wire_read_u32(&r);
    p.names = wire_read_u32(&r);
    p.registry = wire_read_u64(&r);
    (void)wire_read_u64(&r);
    p.loads = wire_read_u64(&r);
    p.others = wire_read_u64(&r);
    p.index = wire_read_u64(&r);
    p.cut = wire_read_u64(&r);
    p.cut_entries = wire_read_u64(&r);
    struct slice estimate = wire_read_bytes(&r, sizeof p.estimate);
    CHECK(!r.bad); /* the length of `body` was checked */
    p.poison = body.len >= SUMMARY_BYTES_ALL ? wire_read_u64(&r) : s->poison.digest;
    memcpy(p.estimate, estimate.at, sizeof p.estimate);
    return p;
}

int crdt_state_summary(const struct crdt_state *s, struct buf *out)
{
    CHECK(s->replicated);
    uint8_t bytes[CRDT_SUMMARY_MAX];
    struct crdt_section_writer w = {.w = wire_writer_of(bytes, sizeof bytes)};
    write_summary(s, 0, &w);
    CHECK(!w.w.bad && wire_written(&w.w) == SUMMARY_BYTES_ALL + 5);
    if (FUTURE) {
        crdt_section_begin(&w, (enum crdt_section_kind)FUTURE_KIND);
        wire_write_bytes(&w.w, FUTURE_BYTES.at, FUTURE_BYTES.len);
        crdt_section_end(&w);
    }
    return buf_append(out, bytes, wire_written(&w.w));
}

/* --- cells ---------------------------------------------------------------------------------- */

/* Memory for decoding, too large for the stack. */
struct workshop {
    struct crdt_sketch sketch;
    struct crdt_cell own[CELLS_MAX];
    struct crdt_symbol symbol[CELLS_MAX];
    struct mine {
        uint32_t rkey;
        uint32_t generation;
        uint64_t point;
    } mine[CELLS_MAX];
    uint64_t points[CRDT_RUN_MAX];
};

static bool is_cut(const struct crdt_state *s, uint32_t from)
{
    return crdt_index_sketch_from(s->index, from) != from;
}

static void cut_drop(struct crdt_state *s)
{
    free(s->cut.sketch);
    s->cut.sketch = NULL;
}

void crdt_state_cut_renew(struct crdt_state *s)
{
    cut_drop(s);
    s->cut.spent = false;
}

/* Gives the sketch of the cut from generation `from` on: the stored sketch, or a new sketch made by
 * a walk. False: no walk is allowed now, the table is too large, there is no memory, or the stored
 * sketch is of another cut. A stored sketch may be older than the index. Differences due to this
 * age turn out to be present or stale when they are joined. */
static bool cut_of(struct crdt_state *s, uint32_t from, struct crdt_sketch *out,
                   struct crdt_reconciled *result)
{
    struct crdt_cut *cut = &s->cut;
    if (cut->sketch == NULL) {
        struct crdt_sketch *made = cut->spent ? NULL : malloc(sizeof *made);
        if (made == NULL || !crdt_index_sketch_cut(s->index, from, made)) {
            free(made);
            return false;
        }
        *cut = (struct crdt_cut){.spent = true, .from = from, .sketch = made};
        result->cut_walked = true;
    }
    if (cut->from == from)
        *out = *cut->sketch;
    return cut->from == from;
}

/* Gives the sketch of all spans from generation `from` on, or, if no span begins with `from`, of
 * the cut. False: these cannot be compared now, because the floor has risen since, caches were
 * lost, or cut_of() has no sketch. A later round compares them. */
static bool sketch_of(struct crdt_state *s, uint32_t from, struct crdt_sketch *out,
                      struct crdt_reconciled *result)
{
    if (from < crdt_index_floor(s->index) || from > crdt_index_now(s->index) + CRDT_TTL_MAX)
        return false;
    if (is_cut(s, from))
        return cut_of(s, from, out, result);
    if (crdt_index_sketch_is_clean(s->index))
        crdt_index_sketch(s->index, from, out);
    return crdt_index_sketch_is_clean(s->index);
}

static void cut_hard(struct crdt_state *s, struct crdt_reconciled *result)
{
    cut_drop(s);
    result->cut_hard = true;
}

static void write_cells(struct crdt_state *s, uint32_t from, uint32_t width, uint8_t tries,
                        struct workshop *shop, struct crdt_section_writer *out,
                        struct crdt_reconciled *result)
{
    if (!sketch_of(s, from, &shop->sketch, result))
        return;
    if (width == CRDT_SKETCH_CELLS && is_cut(s, from))
        cut_hard(s, result);
    crdt_sketch_fold(&shop->sketch, width, shop->own);
    crdt_section_begin(out, CRDT_SECTION_CELLS);
    wire_write_u32(&out->w, crdt_index_now(s->index));
    wire_write_u32(&out->w, crdt_index_floor(s->index));
    wire_write_u32(&out->w, from);
    wire_write_u16(&out->w, (uint16_t)width);
    wire_write_u8(&out->w, tries);
    for (uint32_t i = 0; i < CRDT_SKETCH_ROWS * width; i++) {
        wire_write_u64(&out->w, shop->own[i].low);
        wire_write_fixed(&out->w, shop->own[i].high, CRDT_CELL_BYTES - 8);
    }
    crdt_section_end(out);
}

struct cells {
    uint32_t now, floor, from;
    uint32_t width;
    uint8_t tries;
    struct slice cells;
};

static bool read_cells(struct slice body, struct cells *out)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    out->now = wire_read_u32(&r);
    out->floor = wire_read_u32(&r);
    out->from = wire_read_u32(&r);
    out->width = wire_read_u16(&r);
    out->tries = wire_read_u8(&r);
    if (r.bad || !crdt_sketch_width_is_valid(out->width))
        return false;
    out->cells = wire_read_bytes(&r, (size_t)CRDT_SKETCH_ROWS * out->width * CRDT_CELL_BYTES);
    return !r.bad;
}

static void write_too_many(struct crdt_section_writer *out, struct crdt_reconciled *result)
{
    result->too_many = true;
    crdt_section_begin(out, CRDT_SECTION_TOO_MANY);
    crdt_section_end(out);
}

/* Handles cells that could not be decoded: requests about twice as many, then all. If this fails
 * too, reports too many differences, so that the routers take a snapshot. But not for a cut: a
 * router that cuts spans for lack of memory has no room for a snapshot. */
static void ask_wider(struct crdt_state *s, const struct cells *c, struct crdt_section_writer *out,
                      struct crdt_reconciled *result)
{
    if (c->width == CRDT_SKETCH_CELLS || c->tries >= TRIES_MAX) {
        if (is_cut(s, c->from))
            cut_hard(s, result);
        else
            write_too_many(out, result);
        return;
    }
    uint32_t width = c->tries > 0 ? CRDT_SKETCH_CELLS : c->width * 2;
    while (!crdt_sketch_width_is_valid(width))
        width++;
    crdt_section_begin(out, CRDT_SECTION_WIDER);
    wire_write_u32(&out->w, c->from);
    wire_write_u16(&out->w, (uint16_t)width);
    wire_write_u8(&out->w, (uint8_t)(c->tries + 1));
    crdt_section_end(out);
}

static bool holds(const struct crdt_state *s, const struct crdt_symbol *symbol, int slot)
{
    uint32_t generation = 0;
    return crdt_index_get(s->index, symbol->id48, (unsigned)slot, symbol->code, &generation) == 0 &&
           generation == crdt_index_generation_of(s->index, symbol->generation);
}

/* Joins the symbols missing here, and collects this router's symbols that the peer lacks and would
 * accept. */
static uint32_t sort_out(struct crdt_state *s, const struct cells *c, uint32_t count,
                         struct workshop *shop, struct crdt_reconciled *result)
{
    uint32_t mine = 0;
    uint32_t theirs = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct crdt_symbol symbol = shop->symbol[i];
        int slot = crdt_registry_by_rkey(s->registry, symbol.rkey);
        if (slot < 0)
            continue; /* the cache is gone, or not yet known to the registry */
        if (!holds(s, &symbol, slot))
            shop->symbol[theirs++] = symbol;
        else
            shop->mine[mine++] =
                (struct mine){.rkey = symbol.rkey,
                              .generation = crdt_index_generation_of(s->index, symbol.generation),
                              .point = crdt_point(symbol.id48, symbol.code)};
    }
    for (uint32_t i = 0; i < theirs; i++) {
        const struct crdt_symbol *t = &shop->symbol[i];
        int slot = crdt_registry_by_rkey(s->registry, t->rkey);
        uint32_t generation = crdt_index_generation_of(s->index, t->generation);
        if (generation < c->from)
            continue; /* a future generation looks old, because only 12 bits of it are sent */
        if (generation < crdt_state_oldest(s, (unsigned)slot))
            continue; /* the observation is from before the name was forgotten */
        result->joined +=
            crdt_index_observe(s->index, t->id48, (unsigned)slot, t->code, generation) == 1;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < mine; i++) {
        const struct mine *m = &shop->mine[i];
        struct crdt_symbol symbol = {.id48 = m->point & 0xffffffffffff,
                                     .generation = m->generation & 0xfff,
                                     .code = (uint8_t)(m->point >> 48)};
        int slot = crdt_registry_by_rkey(s->registry, m->rkey);
        /* Leaves out entries made newer by the join above, and entries that the peer would
         * refuse. */
        if (holds(s, &symbol, slot) && m->generation >= c->floor && m->generation <= c->now + 1)
            shop->mine[kept++] = *m;
    }
    return kept;
}

static int compare_mine(const void *a, const void *b)
{
    const struct mine *x = a;
    const struct mine *y = b;
    if (x->rkey != y->rkey)
        return x->rkey < y->rkey ? -1 : 1;
    if (x->generation != y->generation)
        return x->generation < y->generation ? -1 : 1;
    return (x->point >> 48 > y->point >> 48) - (x->point >> 48 < y->point >> 48);
}

static void send_mine(struct workshop *shop, uint32_t count, struct crdt_section_writer *out)
{
    if (count == 0)
        return;
    qsort(shop->mine, count, sizeof shop->mine[0], compare_mine);
    crdt_section_begin(out, CRDT_SECTION_RECORDS);
    for (uint32_t i = 0; i < count;) {
        const struct mine *m = &shop->mine[i];
        unsigned n = 0;
        while (n < CRDT_RUN_MAX && i + n < count && m[n].rkey == m->rkey &&
               m[n].generation == m->generation) {
            shop->points[n] = m[n].point;
            n++;
        }
        unsigned written = crdt_record_write_run(&out->w, m->rkey, m->generation, shop->points, n);
        if (written == 0)
            break;
        i += written;
    }
    crdt_section_end(out);
}

static void take_cells(struct crdt_state *s, struct slice body, struct workshop *shop,
                       struct crdt_section_writer *out, struct crdt_reconciled *result)
{
    struct cells c;
    CHECK(read_cells(body, &c));
    if (!sketch_of(s, c.from, &shop->sketch, result))
        return;
    uint32_t cells = CRDT_SKETCH_ROWS * c.width;
    crdt_sketch_fold(&shop->sketch, c.width, shop->own);
    struct wire_reader r = wire_reader_of(c.cells.at, c.cells.len);
    for (uint32_t i = 0; i < cells; i++) {
        shop->own[i].low ^= wire_read_u64(&r);
        shop->own[i].high ^= wire_read_fixed(&r, CRDT_CELL_BYTES - 8);
    }
    int count = crdt_sketch_decode(shop->own, c.width, shop->symbol, cells);
    if (count < 0) {
        ask_wider(s, &c, out, result);
        return;
    }
    result->decoded = true;
    result->cut_decoded = result->cut_decoded || is_cut(s, c.from);
    result->differences += (uint64_t)count;
    send_mine(shop, sort_out(s, &c, (uint32_t)count, shop, result), out);
}

/* --- messages ------------------------------------------------------------------------------- */

static bool skewed(const struct crdt_state *s, uint32_t now)
{
    uint32_t own = crdt_index_now(s->index);
    return (own > now ? own - now : now - own) > SKEW_MAX;
}

/* The comparison of the part that both indexes have: from the higher of both floors on. */
struct common {
    bool any;                /* false: no common part */
    bool here;               /* the peer's floor is the higher floor, or both are equal: this router
                              * compares */
    bool equal, cuts_differ; /* valid if `here` */
};

static struct common compare_index(const struct crdt_state *s, const struct summary *p)
{
    const struct crdt_index *x = s->index;
    uint32_t floor = crdt_index_floor(x);
    uint32_t now = crdt_index_now(x) < p->now ? crdt_index_now(x) : p->now;
    struct common c = {.any = (floor > p->floor ? floor : p->floor) <= now + 1,
                       .here = floor <= p->floor && p->from >= p->floor};
    if (!c.any || !c.here)
        return c;
    c.cuts_differ = crdt_index_digest_between(x, p->floor, p->from) != p->cut;
    c.equal = !c.cuts_differ && crdt_index_digest(x, p->from) == p->index;
    return c;
}

/* If the whole spans differ, writes cells of their sketch, or reports too many differences. */
static void answer_spans(struct crdt_state *s, const struct summary *p, bool registry_equal,
                         struct workshop *shop, struct crdt_section_writer *out,
                         struct crdt_reconciled *result)
{
    const struct crdt_index *x = s->index;
    if (crdt_index_digest(x, p->from) == p->index || is_cut(s, p->from))
        return; /* equal, or the peer has another TTL and thus spans of another length */
    if (!p->clean || !crdt_index_sketch_is_clean(x))
        return;
    uint8_t estimate[CRDT_ESTIMATE_COUNTERS];
    crdt_index_estimate(x, p->from, estimate);
    uint64_t differences = crdt_sketch_estimate(estimate, p->estimate);
    uint32_t width = crdt_sketch_width(differences > 0 ? differences : 1);
    if (width > 0)
        write_cells(s, p->from, width, 0, shop, out, result);
    else if (registry_equal && !skewed(s, p->now)) /* otherwise possibly only one router knows of a
                                                    * lost cache */
        write_too_many(out, result);
}

static void answer_cut(struct crdt_state *s, const struct summary *p, struct workshop *shop,
                       struct crdt_section_writer *out, struct crdt_reconciled *result)
{
    uint64_t own = crdt_index_entries_between(s->index, p->floor, p->from);
    uint64_t least = own > p->cut_entries ? own - p->cut_entries : p->cut_entries - own;
    if (least > CELLS_MAX || crdt_index_sketch_from(s->index, p->floor) != p->from)
        return; /* more differences than fit the cells, or the peer has other spans */
    uint32_t width = crdt_sketch_width(least + CUT_DIFFERENCES_MIN);
    if (width > 0)
        write_cells(s, p->floor, width, 0, shop, out, result);
}

static void take_summary(struct crdt_state *s, struct slice body, bool settled,
                         struct workshop *shop, struct crdt_section_writer *out,
                         struct crdt_reconciled *result)
{
    struct summary p = read_summary(s, body);
    result->summary = true;
    result->peer_now = p.now;
    result->peer_floor = p.floor;
    uint64_t loads = 0;
    uint64_t others = 0;
    crdt_reports_digest(s->reports, &loads, &others);
    /* Registries are compared from the peer's floor on. If this router's floor is higher, the next
     * round compares them: by then the peer has the same floor. */
    bool names_comparable = p.names >= crdt_registry_floor_s(s->registry);
    bool registry_equal =
        names_comparable && crdt_registry_digest(s->registry, p.names) == p.registry;
    bool poison_equal = s->poison.digest == p.poison;
    if (p.hops == 0) {
        if (names_comparable && !registry_equal)
            crdt_hashes_write(s, CRDT_SECTION_REPLICAS, 0, out);
        if (!poison_equal)
            crdt_hashes_write(s, CRDT_SECTION_POISON, 0, out);
        if (others != p.others || (settled && loads != p.loads))
            crdt_hashes_write(s, CRDT_SECTION_REPORTS, settled ? CRDT_HASHES_LOADS : 0, out);
    }
    struct common index = compare_index(s, &p);
    result->incomparable = !index.any;
    if (!index.here && p.hops < HOPS_MAX)
        write_summary(s, (uint8_t)(p.hops + 1), out);
    else if (index.here && index.any)
        answer_spans(s, &p, registry_equal, shop, out, result);
    if (index.cuts_differ && settled && registry_equal)
        answer_cut(s, &p, shop, out, result);
    bool reports_equal = others == p.others && loads == p.loads;
    result->equal = registry_equal && index.equal && reports_equal && poison_equal;
}

static void take_wider(struct crdt_state *s, struct slice body, struct workshop *shop,
                       struct crdt_section_writer *out, struct crdt_reconciled *result)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    uint32_t from = wire_read_u32(&r);
    uint32_t width = wire_read_u16(&r);
    uint8_t tries = wire_read_u8(&r);
    write_cells(s, from, width, tries, shop, out, result);
}

static bool part_is_valid(const struct crdt_section *part)
{
    struct cells cells;
    switch (part->kind) {
    case CRDT_SECTION_SUMMARY:
        return part->body.len >= SUMMARY_BYTES;
    case CRDT_SECTION_CELLS:
        return read_cells(part->body, &cells);
    case CRDT_SECTION_WIDER: {
        struct wire_reader r = wire_reader_of(part->body.at, part->body.len);
        (void)wire_read_u32(&r);
        return part->body.len >= WIDER_BYTES && crdt_sketch_width_is_valid(wire_read_u16(&r));
    }
    case CRDT_SECTION_TOO_MANY:
        return true;
    case CRDT_SECTION_RECORDS:
        return crdt_records_valid(part->body, true);
    default:
        return crdt_hashes_valid(part);
    }
}

static void take_part(struct crdt_state *s, const struct crdt_section *part, bool settled,
                      struct workshop *shop, struct crdt_section_writer *out,
                      struct crdt_reconciled *result)
{
    if (part->kind == CRDT_SECTION_SUMMARY)
        take_summary(s, part->body, settled, shop, out, result);
    else if (part->kind == CRDT_SECTION_CELLS)
        take_cells(s, part->body, shop, out, result);
    else if (part->kind == CRDT_SECTION_WIDER)
        take_wider(s, part->body, shop, out, result);
    else if (part->kind == CRDT_SECTION_TOO_MANY)
        result->too_many = true;
    else if (part->kind != CRDT_SECTION_RECORDS)
        crdt_hashes_answer(s, part, out);
}

/* Checks a whole message. Writes the sections of known kinds to `part` and returns their number, or
 * ERR_SYNTAX. Sets *skipped to the number of the other sections. */
static int read_parts(struct slice message, struct crdt_section part[PARTS_MAX], unsigned *skipped)
{
    struct wire_reader r = wire_reader_of(message.at, message.len);
    if (message.len > CRDT_MESSAGE_MAX)
        return ERR_SYNTAX;
    int parts = 0;
    *skipped = 0;
    while (wire_left(&r) > 0) {
        struct crdt_section next;
        if (!crdt_section_next(&r, &next))
            return ERR_SYNTAX;
        if (next.kind == 0 || next.kind == CRDT_SECTION_EVENTS || next.kind >= CRDT_SECTION_KINDS) {
            ++*skipped;
            continue;
        }
        if (parts == PARTS_MAX || !part_is_valid(&next))
            return ERR_SYNTAX;
        part[parts++] = next;
    }
    return parts;
}

int crdt_state_message(struct crdt_state *s, struct slice message, bool settled, struct buf *reply,
                       struct crdt_reconciled *out)
{
    CHECK(s->replicated);
    *out = (struct crdt_reconciled){0};
    struct crdt_section part[PARTS_MAX];
    unsigned skipped = 0;
    int parts = read_parts(message, part, &skipped);
    if (parts < 0) {
        s->stats.malformed++;
        return parts;
    }
    s->stats.sections_skipped += skipped;
    struct workshop *shop = malloc(sizeof *shop);
    uint8_t *bytes = malloc(CRDT_MESSAGE_MAX);
    int err = shop != NULL && bytes != NULL ? 0 : ERR_NOMEM;
    if (err == 0) {
        /* Rows are joined first, because hashes and cells are compared with the state after the
         * join. */
        for (int i = 0; i < parts; i++)
            if (part[i].kind == CRDT_SECTION_RECORDS)
                out->joined += crdt_state_join(s, NULL, part[i].body);
        struct crdt_section_writer w = {.w = wire_writer_of(bytes, CRDT_MESSAGE_MAX)};
        for (int i = 0; i < parts; i++)
            take_part(s, &part[i], settled, shop, &w, out);
        CHECK(!w.w.bad);
        CHECK_SLOW(read_parts(slice_of((char *)bytes, wire_written(&w.w)), part, &skipped) >= 0);
        err = buf_append(reply, bytes, wire_written(&w.w));
    }
    free(shop);
    free(bytes);
    return err;
}
