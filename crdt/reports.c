#include "crdt/reports.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"

enum { SLOTS = CRDT_REPLICAS_MAX, WORDS = SLOTS / 64, ROWS_STEP = 64 };

struct row {
    bool present;
    uint64_t seq;
    uint64_t hash;
    union crdt_report_value value;
    struct later *later; /* NULL: none, the usual case */
};

struct later {
    uint8_t len;
    char bytes[CRDT_LATER_MAX];
};

/* A router's reports. The rows grow with the number of replicas. */
struct reporter {
    uint64_t router;
    uint64_t epoch;
    unsigned rows;
    struct row (*row)[CRDT_REPORTS]; /* by slot */
    uint64_t digest[CRDT_REPORTS];
};

struct crdt_reports {
    const struct crdt_registry *registry;
    uint64_t self, load_version, version;
    unsigned routers_max; /* with this router */
    unsigned count;
    /* In the order of router ids, this router included; the structs beyond `count` are free. */
    struct reporter **reporter, *pool;
    struct crdt_load sum[SLOTS];
    uint64_t prefilled[SLOTS];
    uint64_t waiting[CRDT_REPORTS][WORDS];
    unsigned waiting_count;
};

/* --- values --------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A copy within bounds and with zero padding: two copies are equal exactly if their bytes are. */
static union crdt_report_value clean(enum crdt_report_kind kind, const union crdt_report_value *in)
{
    union crdt_report_value out;
    memset(&out, 0, sizeof out);
    if (kind == CRDT_REPORT_LOAD) {
#define CUT(type, name, most) out.load.name = (type)least(in->load.name, most);
        CRDT_LOAD_FIELDS(CUT)
#undef CUT
    } else if (kind == CRDT_REPORT_SIGHT) {
        out.sight.configured = in->sight.configured;
        out.sight.health = in->sight.health;
        out.sight.engine = in->sight.engine;
        out.sight.asleep = in->sight.asleep;
        out.sight.breaker = in->sight.breaker;
        out.sight.cured = in->sight.cured;
        out.sight.still = in->sight.still;
        out.sight.rejects = in->sight.rejects;
        out.sight.rejects_with = in->sight.rejects_with;
    } else {
        crdt_learned_copy(&out.learned, &in->learned);
    }
    return out;
}

enum { VALUE_WORDS = sizeof(union crdt_report_value) / sizeof(uint64_t) };
_Static_assert(sizeof(union crdt_report_value) == VALUE_WORDS * sizeof(uint64_t),
               "all is compared");

static bool same(const union crdt_report_value *a, const union crdt_report_value *b)
{
    uint64_t x[VALUE_WORDS], y[VALUE_WORDS];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return memcmp(x, y, sizeof x) == 0;
}

static struct slice later_of(const struct row *row)
{
    return row->later != NULL ? slice_of(row->later->bytes, row->later->len) : slice_of(NULL, 0);
}

static struct crdt_report report_of(const struct reporter *p, enum crdt_report_kind kind,
                                    unsigned slot)
{
    const struct row *row = &p->row[slot][kind];
    return (struct crdt_report){.router = p->router,
                                .epoch = p->epoch,
                                .seq = row->seq,
                                .slot = slot,
                                .kind = kind,
                                .value = row->value,
                                .later = later_of(row)};
}

static uint64_t hash_of(const struct crdt_reports *r, const struct reporter *p, unsigned kind,
                        unsigned slot)
{
    const struct row *row = &p->row[slot][kind];
    uint64_t h = hash_mix(p->router + 0x9e3779b97f4a7c15u * (kind + 1));
    h = hash_mix(h ^ crdt_registry_at(r->registry, slot)->key);
    h = hash_mix(h + p->epoch);
    h = hash_mix(h ^ row->seq);
    return crdt_value_hash(h, (enum crdt_report_kind)kind, &row->value, later_of(row));
}

static void load_add(struct crdt_load *sum, const struct crdt_load *l)
{
#define ADD(type, name, most) sum->name += l->name;
    CRDT_LOAD_FIELDS(ADD)
#undef ADD
}

static void load_subtract(struct crdt_load *sum, const struct crdt_load *l)
{
#define SUBTRACT(type, name, most) sum->name -= l->name;
    CRDT_LOAD_FIELDS(SUBTRACT)
#undef SUBTRACT
}

/* --- rows ----------------------------------------------------------------------------------- */

static unsigned place_of(const struct crdt_reports *r, uint64_t router)
{
    unsigned low = 0;
    unsigned high = r->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (r->reporter[middle]->router < router)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct reporter *find(const struct crdt_reports *r, uint64_t router)
{
    unsigned at = place_of(r, router);
    return at < r->count && r->reporter[at]->router == router ? r->reporter[at] : NULL;
}

static int make_room(struct reporter *p, unsigned slot)
{
    if (slot < p->rows)
        return 0;
    unsigned rows = (slot / ROWS_STEP + 1) * ROWS_STEP;
    struct row(*grown)[CRDT_REPORTS] = calloc(rows, sizeof *grown);
    if (grown == NULL)
        return ERR_NOMEM;
    if (p->rows > 0)
        memcpy(grown, p->row, p->rows * sizeof *grown);
    free(p->row);
    p->row = grown;
    p->rows = rows;
    return 0;
}

static void rehash(struct crdt_reports *r, struct reporter *p, unsigned kind, unsigned slot)
{
    struct row *row = &p->row[slot][kind];
    p->digest[kind] -= row->hash;
    row->hash = hash_of(r, p, kind, slot);
    p->digest[kind] += row->hash;
}

/* If there is no memory, the row lacks these bytes until the reporting router reports again. */
static void put_later(struct row *row, struct slice later)
{
    if (later.len == 0) {
        free(row->later);
        row->later = NULL;
        return;
    }
    if (row->later == NULL)
        row->later = malloc(sizeof *row->later);
    if (row->later == NULL)
        return;
    row->later->len = (uint8_t)later.len;
    memcpy(row->later->bytes, later.at, later.len);
}

static void put(struct crdt_reports *r, struct reporter *p, const struct crdt_report *in)
{
    struct row *row = &p->row[in->slot][in->kind];
    union crdt_report_value value = clean(in->kind, &in->value);
    if (in->kind == CRDT_REPORT_LOAD && p->router != r->self) {
        load_subtract(&r->sum[in->slot], &row->value.load);
        load_add(&r->sum[in->slot], &value.load);
        if (value.load.prefill_tokens < row->value.load.prefill_tokens)
            r->prefilled[in->slot] += row->value.load.prefill_tokens - value.load.prefill_tokens;
    }
    row->present = true;
    row->seq = in->seq;
    row->value = value;
    put_later(row, in->later);
    rehash(r, p, in->kind, in->slot);
    *(in->kind == CRDT_REPORT_LOAD ? &r->load_version : &r->version) += 1;
}

static void free_rows(struct reporter *p)
{
    for (unsigned slot = 0; slot < p->rows; slot++)
        for (unsigned kind = 0; kind < CRDT_REPORTS; kind++)
            free(p->row[slot][kind].later);
    free(p->row);
    p->row = NULL;
    p->rows = 0;
    memset(p->digest, 0, sizeof p->digest);
}

static void drop_rows(struct crdt_reports *r, struct reporter *p)
{
    for (unsigned slot = 0; slot < p->rows && p->router != r->self; slot++)
        load_subtract(&r->sum[slot], &p->row[slot][CRDT_REPORT_LOAD].value.load);
    free_rows(p);
    r->load_version++;
    r->version++;
}

void crdt_reports_forget(struct crdt_reports *r, unsigned slot)
{
    CHECK(slot < SLOTS);
    for (unsigned i = 0; i < r->count; i++) {
        struct reporter *p = r->reporter[i];
        for (unsigned kind = 0; slot < p->rows && kind < CRDT_REPORTS; kind++) {
            p->digest[kind] -= p->row[slot][kind].hash;
            free(p->row[slot][kind].later);
            memset(&p->row[slot][kind], 0, sizeof p->row[slot][kind]);
        }
    }
    r->sum[slot] = (struct crdt_load){0};
    r->prefilled[slot] = 0;
    uint64_t bit = UINT64_C(1) << slot % 64;
    for (unsigned kind = 0; kind < CRDT_REPORTS; kind++) {
        r->waiting_count -= (r->waiting[kind][slot / 64] & bit) != 0;
        r->waiting[kind][slot / 64] &= ~bit;
    }
    r->load_version++;
    r->version++;
}

/* --- this router's reports -------------------------------------------------------------------- */

static void wait_row(struct crdt_reports *r, unsigned kind, unsigned slot)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    r->waiting_count += (r->waiting[kind][slot / 64] & bit) == 0;
    r->waiting[kind][slot / 64] |= bit;
}

void crdt_reports_epoch(struct crdt_reports *r, uint64_t epoch)
{
    struct reporter *own = find(r, r->self);
    if (epoch <= own->epoch)
        return;
    own->epoch = epoch;
    for (unsigned kind = 0; kind < CRDT_REPORTS; kind++) {
        for (unsigned slot = 0; slot < own->rows; slot++) {
            if (!own->row[slot][kind].present)
                continue;
            own->row[slot][kind].seq = 0;
            rehash(r, own, kind, slot);
            wait_row(r, kind, slot);
        }
    }
}

void crdt_reports_set(struct crdt_reports *r, const struct crdt_report *own)
{
    CHECK(crdt_registry_has(r->registry, own->slot));
    struct reporter *p = find(r, r->self);
    union crdt_report_value value = clean(own->kind, &own->value);
    union crdt_report_value known;
    memset(&known, 0, sizeof known);
    if (own->slot < p->rows)
        known = p->row[own->slot][own->kind].value;
    bool present = own->slot < p->rows && p->row[own->slot][own->kind].present;
    /* All routers count a missing load as zero, so a first zero need not be sent. */
    if ((present || own->kind == CRDT_REPORT_LOAD) && same(&known, &value))
        return;
    if (make_room(p, own->slot) != 0)
        return; /* the gauge is not sent; the next change tries again */
    struct crdt_report row = *own;
    row.seq = p->row[own->slot][own->kind].seq;
    put(r, p, &row);
    wait_row(r, own->kind, own->slot);
}

int crdt_reports_waiting(const struct crdt_reports *r, enum crdt_report_kind kind, unsigned slot)
{
    for (unsigned w = slot / 64; w < WORDS && r->waiting_count > 0; w++) {
        uint64_t bits = r->waiting[kind][w];
        if (w == slot / 64)
            bits &= ~UINT64_C(0) << slot % 64;
        if (bits != 0)
            return (int)(w * 64 + (unsigned)__builtin_ctzll(bits));
    }
    return -1;
}

bool crdt_reports_any_waiting(const struct crdt_reports *r)
{
    return r->waiting_count > 0;
}

void crdt_reports_own(const struct crdt_reports *r, enum crdt_report_kind kind, unsigned slot,
                      struct crdt_report *out)
{
    const struct reporter *own = find(r, r->self);
    CHECK(slot < own->rows && own->row[slot][kind].present);
    *out = report_of(own, kind, slot);
}

void crdt_reports_heard(struct crdt_reports *r, enum crdt_report_kind kind, unsigned slot,
                        uint64_t seq)
{
    uint64_t bit = UINT64_C(1) << slot % 64;
    CHECK((r->waiting[kind][slot / 64] & bit) != 0);
    r->waiting[kind][slot / 64] &= ~bit;
    r->waiting_count--;
    struct reporter *own = find(r, r->self);
    own->row[slot][kind].seq = seq;
    rehash(r, own, kind, slot);
}

void crdt_reports_copy_own(struct crdt_reports *r, const struct crdt_reports *from)
{
    struct reporter *to = find(r, r->self);
    const struct reporter *own = find(from, from->self);
    for (unsigned slot = 0; slot < own->rows; slot++) {
        for (unsigned kind = 0; kind < CRDT_REPORTS; kind++) {
            struct crdt_report row = report_of(own, (enum crdt_report_kind)kind, slot);
            if (!own->row[slot][kind].present || make_room(to, slot) != 0)
                continue;
            row.seq = 0;
            put(r, to, &row);
            wait_row(r, kind, slot);
        }
    }
}

/* Queues a zero row, to replace a row of this epoch that only other routers still have. */
static int supersede(struct crdt_reports *r, struct reporter *own, const struct crdt_report *in)
{
    bool present = in->slot < own->rows && own->row[in->slot][in->kind].present;
    if (in->epoch != own->epoch || present)
        return ERR_NOT_FOUND;
    if (make_room(own, in->slot) != 0)
        return ERR_NOMEM;
    put(r, own, &(struct crdt_report){.kind = in->kind, .slot = in->slot});
    wait_row(r, in->kind, in->slot);
    return 1;
}

/* --- others' -------------------------------------------------------------------------------- */

static struct reporter *add(struct crdt_reports *r, uint64_t router)
{
    struct reporter *p = r->reporter[r->count];
    *p = (struct reporter){.router = router};
    unsigned at = place_of(r, router);
    memmove(&r->reporter[at + 1], &r->reporter[at], (r->count - at) * sizeof(struct reporter *));
    r->reporter[at] = p;
    r->count++;
    return p;
}

void crdt_reports_router(struct crdt_reports *r, uint64_t router, uint64_t epoch)
{
    if (router == r->self)
        return;
    struct reporter *p = find(r, router);
    if (p == NULL && r->count < r->routers_max)
        p = add(r, router); /* membership admits no more than routers_max */
    if (p == NULL || epoch <= p->epoch)
        return;
    if (!BUG(EPOCH_IGNORED))
        drop_rows(r, p);
    p->epoch = epoch;
    for (unsigned kind = 0; kind < CRDT_REPORTS; kind++)
        for (unsigned slot = 0; slot < p->rows; slot++)
            if (p->row[slot][kind].present)
                rehash(r, p, kind, slot); /* only while BUG(EPOCH_IGNORED) is active */
}

void crdt_reports_router_gone(struct crdt_reports *r, uint64_t router)
{
    unsigned at = place_of(r, router);
    if (router == r->self || BUG(DEAD_LOAD) || find(r, router) == NULL)
        return;
    struct reporter *p = r->reporter[at];
    drop_rows(r, p);
    r->count--;
    memmove(&r->reporter[at], &r->reporter[at + 1], (r->count - at) * sizeof(struct reporter *));
    r->reporter[r->count] = p;
}

int crdt_reports_join(struct crdt_reports *r, const struct crdt_report *in)
{
    CHECK(crdt_registry_has(r->registry, in->slot) && in->kind < CRDT_REPORTS);
    struct reporter *p = find(r, in->router);
    if (p == NULL)
        return ERR_NOT_FOUND;
    if (p->router == r->self)
        return supersede(r, p, in);
    if (in->epoch != p->epoch && !BUG(EPOCH_IGNORED))
        return in->epoch < p->epoch ? ERR_STALE : ERR_NOT_FOUND;
    if (make_room(p, in->slot) != 0)
        return ERR_NOMEM;
    const struct row *row = &p->row[in->slot][in->kind];
    if (row->present && in->seq <= row->seq && !BUG(TIE_BY_ARRIVAL))
        return 0;
    put(r, p, in);
    return 1;
}

/* --- asking --------------------------------------------------------------------------------- */

void crdt_reports_load_sum(const struct crdt_reports *r, unsigned slot, struct crdt_load *out)
{
    CHECK(slot < SLOTS);
    *out = r->sum[slot];
}

uint64_t crdt_reports_prefilled(const struct crdt_reports *r, unsigned slot)
{
    CHECK(slot < SLOTS);
    return r->prefilled[slot];
}

void crdt_reports_each(const struct crdt_reports *r, unsigned slot,
                       bool (*visit)(void *context, uint64_t router, const struct crdt_load *load,
                                     const struct crdt_sight *sight,
                                     const struct crdt_learned *learned),
                       void *context)
{
    for (unsigned i = 0; i < r->count; i++) {
        const struct reporter *p = r->reporter[i];
        if (slot >= p->rows)
            continue;
        const struct row *load = &p->row[slot][CRDT_REPORT_LOAD];
        const struct row *sight = &p->row[slot][CRDT_REPORT_SIGHT];
        const struct row *learned = &p->row[slot][CRDT_REPORT_LEARNED];
        if (!load->present && !sight->present && !learned->present)
            continue;
        if (!visit(context, p->router, load->present ? &load->value.load : NULL,
                   sight->present ? &sight->value.sight : NULL,
                   learned->present ? &learned->value.learned : NULL))
            return;
    }
}

uint64_t crdt_reports_load_version(const struct crdt_reports *r)
{
    return r->load_version;
}

uint64_t crdt_reports_version(const struct crdt_reports *r)
{
    return r->version;
}

bool crdt_reports_knows(const struct crdt_reports *r, uint64_t router)
{
    return find(r, router) != NULL;
}

bool crdt_reports_is_self(const struct crdt_reports *r, uint64_t router)
{
    return router == r->self;
}

unsigned crdt_reports_routers(const struct crdt_reports *r)
{
    return r->count;
}

struct crdt_reporter_digest crdt_reports_router_at(const struct crdt_reports *r, unsigned index)
{
    CHECK(index < r->count);
    const struct reporter *p = r->reporter[index];
    return (struct crdt_reporter_digest){.router = p->router,
                                         .epoch = p->epoch,
                                         .loads = p->digest[CRDT_REPORT_LOAD],
                                         .others = p->digest[CRDT_REPORT_SIGHT] +
                                                   p->digest[CRDT_REPORT_LEARNED]};
}

void crdt_reports_digest(const struct crdt_reports *r, uint64_t *loads, uint64_t *others)
{
    *loads = 0;
    *others = 0;
    for (unsigned i = 0; i < r->count; i++) {
        struct crdt_reporter_digest d = crdt_reports_router_at(r, i);
        *loads += d.loads;
        *others += d.others;
    }
}

bool crdt_reports_row(const struct crdt_reports *r, unsigned index, enum crdt_report_kind kind,
                      unsigned slot, struct crdt_report *out)
{
    CHECK(index < r->count);
    const struct reporter *p = r->reporter[index];
    if (slot >= p->rows || !p->row[slot][kind].present)
        return false;
    if (p->router == r->self && (r->waiting[kind][slot / 64] >> slot % 64 & 1) != 0)
        return false;
    *out = report_of(p, kind, slot);
    return true;
}

/* --- start and end ---------------------------------------------------------------------------- */

int crdt_reports_create(struct crdt_reports **out, const struct crdt_registry *registry,
                        uint64_t self, unsigned routers_max)
{
    struct crdt_reports *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->registry = registry;
    r->self = self;
    r->routers_max = routers_max;
    r->reporter = calloc(routers_max, sizeof(struct reporter *));
    r->pool = calloc(routers_max, sizeof *r->pool);
    if (r->reporter == NULL || r->pool == NULL) {
        crdt_reports_destroy(r);
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < routers_max; i++)
        r->reporter[i] = &r->pool[i];
    (void)add(r, self);
    *out = r;
    return 0;
}

void crdt_reports_destroy(struct crdt_reports *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->count; i++)
        free_rows(r->reporter[i]);
    free(r->reporter);
    free(r->pool);
    free(r);
}

static void check_reporter(const struct crdt_reports *r, const struct reporter *p,
                           struct crdt_load *sum)
{
    for (unsigned kind = 0; kind < CRDT_REPORTS; kind++) {
        uint64_t digest = 0;
        for (unsigned slot = 0; slot < p->rows; slot++) {
            const struct row *row = &p->row[slot][kind];
            CHECK(!row->present || row->hash == hash_of(r, p, kind, slot));
            CHECK(row->present || row->hash == 0);
            digest += row->hash;
            if (kind == CRDT_REPORT_LOAD && p->router != r->self)
                load_add(&sum[slot], &row->value.load);
        }
        CHECK(digest == p->digest[kind]);
    }
}

void crdt_reports_check(const struct crdt_reports *r)
{
    struct crdt_load *sum = calloc(SLOTS, sizeof *sum);
    CHECK(sum != NULL && r->count <= r->routers_max && find(r, r->self) != NULL);
    for (unsigned i = 0; i < r->count; i++) {
        CHECK(i == 0 || r->reporter[i - 1]->router < r->reporter[i]->router);
        check_reporter(r, r->reporter[i], sum);
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        const struct crdt_load *kept = &r->sum[slot];
#define IS_SUM(type, name, most) CHECK(kept->name == sum[slot].name);
        CRDT_LOAD_FIELDS(IS_SUM)
#undef IS_SUM
    }
    free(sum);
    unsigned waiting = 0;
    for (unsigned kind = 0; kind < CRDT_REPORTS; kind++)
        for (unsigned w = 0; w < WORDS; w++)
            waiting += (unsigned)__builtin_popcountll(r->waiting[kind][w]);
    CHECK(waiting == r->waiting_count);
}
