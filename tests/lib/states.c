#include "tests/lib/states.h"
#include "tests/lib/state_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"

#ifdef GRAPEVINE_LAB
/* Manual use: BUG=<name> in the environment shows if a test detects the bug
 * (docs/simulation.md). */
__attribute__((constructor)) static void choose_bug(void)
{
    CHECK(bug_choose(getenv("BUG")));
}
#endif

uint32_t states_ttl = 12;
uint64_t states_bytes = 8 << 20;

struct crdt_state *states_make(const struct states_setting *setting)
{
    struct crdt_state_config config = {
        .index = {.bytes_max = setting->bytes_max != 0 ? setting->bytes_max : states_bytes,
                  .replicas_max = setting->replicas_max != 0 ? setting->replicas_max : 64,
                  .ttl_generations = setting->ttl != 0 ? setting->ttl : states_ttl,
                  .generation = setting->now != 0 ? setting->now : 1000,
                  .replicated = true},
        .self = setting->self,
        .outbox_bytes = setting->outbox_bytes};
    struct crdt_state *s = NULL;
    CHECK(crdt_state_create(&s, &config) == 0);
    crdt_state_epoch(s, 1);
    for (uint64_t router = 1; router <= 3; router++)
        crdt_state_router(s, router, 1);
    return s;
}

void states_join(struct crdt_state *into, const struct crdt_state *from)
{
    struct crdt_snapshot c;
    crdt_snapshot_begin(&c, 0);
    struct buf chunk = {0};
    int more;
    while ((more = crdt_snapshot_next(from, &c, &chunk)) == 1) {
        CHECK(chunk.len <= CRDT_CHUNK_MAX);
        CHECK(crdt_snapshot_apply(into, buf_slice(&chunk)) == 0);
        buf_clear(&chunk);
    }
    CHECK(more == 0);
    buf_free(&chunk);
}

struct crdt_state *states_joined(const struct crdt_state *a, const struct crdt_state *b)
{
    struct crdt_state *s = states_make(&(struct states_setting){.self = 99});
    states_join(s, a);
    states_join(s, b);
    return s;
}

/* --- comparing ------------------------------------------------------------------------------ */

struct line {
    uint64_t word[8];
};

struct walk {
    const struct crdt_state *state;
    uint32_t from;
    struct line *line;
    size_t count;
    size_t room;
};

static struct line *add_line(struct walk *w, uint64_t class, uint64_t key)
{
    if (w->count == w->room) {
        w->room = w->room == 0 ? 1024 : 2 * w->room;
        w->line = realloc(w->line, w->room * sizeof *w->line);
        CHECK(w->line != NULL);
    }
    struct line *line = &w->line[w->count++];
    *line = (struct line){.word = {class, key}};
    return line;
}

static void walk_entry(void *context, uint64_t id48, uint8_t code, unsigned replica,
                       uint32_t generation)
{
    struct walk *w = context;
    if (generation < w->from)
        return;
    struct line *line =
        add_line(w, 1, crdt_registry_at(crdt_state_registry(w->state), replica)->rkey);
    line->word[2] = id48;
    line->word[3] = code;
    line->word[4] = generation;
}

static void walk_registry(struct walk *w)
{
    const struct crdt_registry *r = crdt_state_registry(w->state);
    for (int i = -1; (i = crdt_registry_next(r, i)) >= 0;) {
        struct crdt_registry_row row = crdt_registry_row(r, (unsigned)i);
        struct line *line = add_line(w, 2, crdt_registry_mark(r, (unsigned)i).key);
        line->word[2] = row.named;
        line->word[3] = row.born;
        line->word[4] = row.incarnation.started;
        line->word[5] = row.incarnation.raises;
        line->word[6] = (uint64_t)row.wish_version << 32 | row.drain_version;
        line->word[7] = (uint64_t)row.wish << 1 | row.draining;
    }
}

static void walk_reports(struct walk *w)
{
    const struct crdt_reports *r = crdt_state_reports(w->state);
    for (unsigned i = 0; i < crdt_reports_routers(r); i++) {
        for (unsigned n = 0; n < 64u * CRDT_REPORTS; n++) {
            struct crdt_report row;
            unsigned slot = n / CRDT_REPORTS;
            if (slot >= crdt_registry_count(crdt_state_registry(w->state)) ||
                !crdt_reports_row(r, i, (enum crdt_report_kind)(n % CRDT_REPORTS), slot, &row))
                continue;
            struct line *line =
                add_line(w, 3, crdt_registry_at(crdt_state_registry(w->state), slot)->key);
            line->word[2] = row.router;
            line->word[3] = row.epoch;
            line->word[4] = row.seq << 2 | row.kind;
            uint64_t value[5];
            memcpy(value, &row.value, sizeof value);
            for (unsigned v = 0; v < 5; v++)
                line->word[5] = hash_mix(line->word[5] + value[v]);
        }
    }
}

static void walk_poison(struct walk *w)
{
    const struct crdt_poison *p = crdt_state_poison(w->state);
    for (unsigned i = 0; i < p->count; i++) {
        struct line *line = add_line(w, 6, p->row[i].hash);
        line->word[2] = (uint64_t)p->row[i].until << 8 | p->row[i].level;
        line->word[3] = p->row[i].last;
        line->word[4] = p->row[i].before;
    }
}

static int compare_lines(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct line));
}

static void walk_all(struct walk *w, struct crdt_state *s, uint32_t from)
{
    *w = (struct walk){.state = s, .from = from};
    crdt_index_each(crdt_state_index(s), walk_entry, w);
    walk_registry(w);
    walk_reports(w);
    walk_poison(w);
    if (w->count > 0)
        qsort(w->line, w->count, sizeof *w->line, compare_lines);
}

bool states_equal(struct crdt_state *a, struct crdt_state *b, uint32_t from)
{
    struct walk wa;
    struct walk wb;
    walk_all(&wa, a, from);
    walk_all(&wb, b, from);
    bool same = wa.count == wb.count &&
                (wa.count == 0 || memcmp(wa.line, wb.line, wa.count * sizeof *wa.line) == 0);
    free(wa.line);
    free(wb.line);
    struct crdt_digest da;
    struct crdt_digest db;
    crdt_state_digest(a, from, &da);
    crdt_state_digest(b, from, &db);
    CHECK(same == (da.registry == db.registry && da.index == db.index && da.reports == db.reports &&
                   da.poison == db.poison));
    return same;
}

/* --- anti-entropy --------------------------------------------------------------------------- */

struct states_exchange states_reconcile(struct crdt_state *a, struct crdt_state *b, bool settled)
{
    struct states_exchange all = {0};
    struct buf message = {0};
    struct buf reply = {0};
    crdt_state_cut_renew(a);
    crdt_state_cut_renew(b);
    CHECK(crdt_state_summary(a, &message) == 0 && message.len <= CRDT_SUMMARY_MAX);
    struct crdt_state *at = b;
    while (message.len > 0) {
        struct crdt_reconciled r;
        CHECK(message.len <= CRDT_MESSAGE_MAX && all.messages < 16);
        all.messages++;
        all.bytes += message.len;
        all.longest = message.len > all.longest ? message.len : all.longest;
        CHECK(crdt_state_message(at, buf_slice(&message), settled, &reply, &r) == 0);
        all.differences += r.differences;
        all.joined += r.joined;
        all.equal = all.equal || r.equal;
        all.too_many = all.too_many || r.too_many;
        all.incomparable = all.incomparable || r.incomparable;
        struct buf swap = message;
        message = reply;
        reply = swap;
        buf_clear(&reply);
        at = at == a ? b : a;
    }
    buf_free(&message);
    buf_free(&reply);
    return all;
}

uint64_t states_tell_nobody(struct crdt_state *s, uint64_t seq)
{
    uint8_t delta[1160];
    while (crdt_state_produce(s, seq + 1, delta, sizeof delta) > 0)
        seq++;
    return seq;
}

/* --- what to say ---------------------------------------------------------------------------- */

void states_prompt(struct chain *chain, uint64_t seed, unsigned points)
{
    CHECK(points <= CHECKPOINT_MAX);
    chain->length = (uint16_t)points;
    for (unsigned i = 0; i < points; i++)
        chain->points[i] = (struct chain_point){.id = hash_mix(seed * 1000003 + i) & 0xffffffffffff,
                                                .blocks = checkpoint_blocks(i),
                                                .code = checkpoint_code(i)};
}

unsigned states_replica(struct crdt_state *s, unsigned number)
{
    char name[32];
    int len = snprintf(name, sizeof name, "engine-%u", number);
    int slot = state_replica(s, slice_of(name, (size_t)len));
    CHECK(slot >= 0);
    return (unsigned)slot;
}
