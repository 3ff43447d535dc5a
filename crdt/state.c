#include "crdt/state.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/state_internal.h"

enum {
    OUTBOX_BYTES = 1 << 20,
    GENERATION_MS = 15000,
    SKEW_GENERATIONS = 9, /* a clock that differs by more is set at once (node/cluster/clock.c) */
};

/* --- start and end ---------------------------------------------------------------------------- */

static uint32_t second_of(const struct crdt_state *s, uint64_t generation)
{
    return (uint32_t)(generation * s->generation_ms / 1000);
}

static int create_parts(struct crdt_state *s, const struct crdt_state_config *config)
{
    int err = crdt_index_create(&s->index, &config->index);
    if (err != 0)
        return err;
    unsigned replicas = config->index.replicas_max;
    err = crdt_registry_create(&s->registry, &(struct crdt_registry_config){
                                                 .slots = replicas,
                                                 .names_max = config->names_max,
                                                 .rows_max = config->rows_max,
                                                 .ttl_s = config->names_ttl_s,
                                                 .skew_s = second_of(s, SKEW_GENERATIONS),
                                                 .now_s = second_of(s, config->index.generation),
                                                 .self = config->self,
                                                 .is_name = config->is_name});
    if (err == 0)
        err = crdt_reports_create(&s->reports, s->registry, config->self, CRDT_ROUTERS_MAX);
    crdt_poison_init(&s->poison, second_of(s, config->index.generation),
                     second_of(s, SKEW_GENERATIONS));
    if (err == 0 && s->replicated)
        err = crdt_early_init(&s->early);
    if (err == 0 && s->replicated)
        err = crdt_tidings_init(&s->tidings);
    if (err == 0 && s->replicated)
        err = crdt_outbox_init(&s->outbox,
                               config->outbox_bytes != 0 ? config->outbox_bytes : OUTBOX_BYTES);
    return err;
}

int crdt_state_create(struct crdt_state **out, const struct crdt_state_config *config)
{
    struct crdt_state *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ERR_NOMEM;
    s->replicated = config->index.replicated;
    s->generation_ms = config->generation_ms != 0 ? config->generation_ms : GENERATION_MS;
    int err = create_parts(s, config);
    if (err != 0) {
        crdt_state_destroy(s);
        return err;
    }
    *out = s;
    return 0;
}

void crdt_state_destroy(struct crdt_state *s)
{
    if (s == NULL)
        return;
    crdt_outbox_free(&s->outbox);
    crdt_tidings_free(&s->tidings);
    crdt_early_free(&s->early);
    free(s->cut.sketch);
    crdt_reports_destroy(s->reports);
    crdt_registry_destroy(s->registry);
    crdt_index_destroy(s->index);
    free(s);
}

void crdt_state_check(const struct crdt_state *s)
{
    crdt_registry_check(s->registry);
    crdt_reports_check(s->reports);
    crdt_index_check(s->index);
    crdt_outbox_check(&s->outbox);
    crdt_tidings_check(&s->tidings);
    for (unsigned i = 0; i < s->early.used; i++)
        CHECK(s->early.ring[i].rkey == 0 || crdt_registry_has(s->registry, s->early.ring[i].slot));
    crdt_poison_check(&s->poison);
    for (unsigned slot = 0; slot < CRDT_REPLICAS_MAX; slot++) {
        bool known = crdt_registry_has(s->registry, slot);
        const struct crdt_replica *row = known ? crdt_registry_at(s->registry, slot) : NULL;
        CHECK(s->rkey_known[slot] == (known ? row->rkey : 0));
        CHECK(s->key_known[slot] == (known ? row->key : 0));
    }
}

struct crdt_index *crdt_state_index(struct crdt_state *s)
{
    return s->index;
}

const struct crdt_registry *crdt_state_registry(const struct crdt_state *s)
{
    return s->registry;
}

const struct crdt_reports *crdt_state_reports(const struct crdt_state *s)
{
    return s->reports;
}

const struct crdt_poison *crdt_state_poison(const struct crdt_state *s)
{
    return &s->poison;
}

/* --- the registry --------------------------------------------------------------------------- */

void crdt_state_tell_point(struct crdt_state *s, unsigned slot, uint32_t generation, uint64_t point)
{
    uint32_t rkey = s->rkey_known[slot];
    crdt_outbox_push(&s->outbox, rkey, generation, point);
    if (crdt_registry_at(s->registry, slot)->incarnation.started == 0)
        crdt_early_push(&s->early, &(struct crdt_early_point){.point = point,
                                                              .at_ms = s->cluster_ms,
                                                              .generation = generation,
                                                              .rkey = rkey,
                                                              .slot = (uint16_t)slot});
}

/* True if observations made before the start time was known belong to another cache. */
static bool is_lost(const struct crdt_replica *row)
{
    return row == NULL || row->incarnation.started == 0 || row->incarnation.raises > 0;
}

static void follow_slot(struct crdt_state *s, unsigned slot)
{
    bool has = crdt_registry_has(s->registry, slot);
    const struct crdt_replica *row = has ? crdt_registry_at(s->registry, slot) : NULL;
    uint32_t rkey = has ? row->rkey : 0;
    uint64_t key = has ? row->key : 0;
    if (rkey != s->rkey_known[slot]) {
        crdt_index_forget(s->index, slot, rkey);
        s->rkey_known[slot] = rkey;
        if (key != s->key_known[slot] || is_lost(row))
            crdt_early_forget(&s->early, slot);
        else
            s->early_due = true;
    }
    if (key != s->key_known[slot]) {
        crdt_reports_forget(s->reports, slot);
        s->key_known[slot] = key;
    }
}

void crdt_state_follow_registry(struct crdt_state *s)
{
    uint64_t version = crdt_registry_version(s->registry);
    if (version == s->registry_followed)
        return;
    s->registry_followed = version;
    for (unsigned slot = 0; slot < crdt_registry_count(s->registry); slot++)
        follow_slot(s, slot);
}

static void tell_row(struct crdt_state *s, struct slice name)
{
    int place = crdt_registry_place_of(s->registry, name);
    if (place >= 0)
        crdt_registry_tell(s->registry, (unsigned)place);
    crdt_state_follow_registry(s);
}

static void tell_slot(struct crdt_state *s, unsigned slot)
{
    crdt_registry_tell(s->registry, slot);
    crdt_state_follow_registry(s);
}

static int name_row(struct crdt_state *s, struct slice name, bool ours)
{
    bool news = false;
    int slot = crdt_registry_name(s->registry, name, ours, &news);
    if (news)
        tell_row(s, name);
    return slot;
}

int crdt_state_name(struct crdt_state *s, struct slice name)
{
    return name_row(s, name, true);
}

void crdt_state_unname(struct crdt_state *s, struct slice name)
{
    crdt_registry_unname(s->registry, name);
    crdt_state_follow_registry(s);
}

void crdt_state_seen(struct crdt_state *s, unsigned slot, bool up)
{
    crdt_registry_seen(s->registry, slot, up);
    crdt_state_follow_registry(s);
}

int crdt_state_wish(struct crdt_state *s, unsigned slot, enum crdt_wish wish)
{
    CHECK(crdt_registry_has(s->registry, slot));
    bool news = crdt_registry_wish(s->registry, slot, wish);
    crdt_state_follow_registry(s);
    return news;
}

int crdt_state_drain(struct crdt_state *s, unsigned slot, bool draining)
{
    CHECK(crdt_registry_has(s->registry, slot));
    bool news = crdt_registry_drain(s->registry, slot, draining);
    if (news)
        tell_slot(s, slot);
    return news;
}

int crdt_state_add(struct crdt_state *s, struct slice name)
{
    int slot = name_row(s, name, false);
    int place = crdt_registry_place_of(s->registry, name);
    if (place < 0)
        return slot;
    if (crdt_registry_row(s->registry, (unsigned)place).wish != CRDT_WISH_ADDED)
        /* Adding a replica ends a drain. But if the replica was already added, a drain by another
         * router stays. */
        (void)crdt_registry_drain(s->registry, (unsigned)place, false);
    if (crdt_registry_wish(s->registry, (unsigned)place, CRDT_WISH_ADDED))
        tell_row(s, name);
    slot = crdt_registry_by_name(s->registry, name);
    return slot >= 0 ? slot : ERR_AGAIN;
}

#ifdef GRAPEVINE_LAB
void crdt_state_lie(struct crdt_state *s, struct slice name, uint32_t ago_s)
{
    uint32_t then = (uint32_t)(s->cluster_ms / 1000) - ago_s;
    struct crdt_registry_row row = {
        .name = name, .named = then, .born = then, .wish_version = 1, .wish = CRDT_WISH_ADDED};
    bool news = false;
    DISCARD(crdt_registry_join(s->registry, &row, &news));
    if (news)
        tell_row(s, name);
}
#endif

int crdt_state_remove(struct crdt_state *s, struct slice name)
{
    int place = crdt_registry_place_of(s->registry, name);
    if (place < 0)
        return ERR_NOT_FOUND;
    bool news = crdt_registry_wish(s->registry, (unsigned)place, CRDT_WISH_REMOVED);
    if (news)
        tell_row(s, name);
    return news;
}

void crdt_state_hold(struct crdt_state *s, unsigned slot, bool held)
{
    crdt_registry_hold(s->registry, slot, held);
    crdt_state_follow_registry(s);
}

bool crdt_state_restarted(struct crdt_state *s, unsigned slot, uint64_t started)
{
    if (!crdt_registry_has(s->registry, slot))
        return false;
    bool news = crdt_registry_restarted(s->registry, slot, started);
    if (news)
        tell_slot(s, slot);
    return news;
}

void crdt_state_copy_own(struct crdt_state *s, const struct crdt_state *from)
{
    crdt_registry_copy(s->registry, from->registry);
    crdt_state_follow_registry(s);
    crdt_reports_copy_own(s->reports, from->reports);
}

/* Returns `generation`, or the oldest generation that counts for the slot if that is later. Other
 * routers skip observations from before the name, so the indexes would differ until these
 * expire. */
static uint32_t of_its_name(const struct crdt_state *s, unsigned slot, uint32_t generation)
{
    uint32_t oldest = crdt_state_oldest(s, slot);
    return generation < oldest ? oldest : generation;
}

/* The context of set_back(), which copies observations to the state `to`, dated `back` generations
 * earlier. */
struct setting_back {
    struct crdt_state *to;
    uint32_t back;
};

static void set_back(void *context, uint64_t id48, uint8_t code, unsigned slot, uint32_t generation)
{
    const struct setting_back *b = context;
    struct crdt_state *s = b->to;
    uint32_t now = crdt_index_now(s->index), then = generation - b->back;
    if (generation <= now || !crdt_registry_has(s->registry, slot))
        return;
    then = of_its_name(s, slot, then < now ? then : now);
    if (crdt_index_observe(s->index, id48, slot, code, then) == 1 && s->replicated)
        crdt_outbox_push(&s->outbox, s->rkey_known[slot], then, crdt_point(id48, code));
}

void crdt_state_copy_future(struct crdt_state *s, const struct crdt_state *from)
{
    uint32_t now = crdt_index_now(s->index), ahead = crdt_index_now(from->index);
    struct setting_back b = {.to = s, .back = ahead > now ? ahead - now : 0};
    crdt_index_each(from->index, set_back, &b);
    if (s->replicated)
        crdt_early_copy(&s->early, &from->early);
}

void crdt_state_clock(struct crdt_state *s, uint64_t cluster_ms)
{
    uint32_t generation = (uint32_t)(cluster_ms / s->generation_ms);
    s->cluster_ms = cluster_ms;
    if (generation > crdt_index_now(s->index))
        crdt_index_advance(s->index, generation);
    crdt_registry_advance(s->registry, (uint32_t)(cluster_ms / 1000));
    crdt_poison_advance(&s->poison, (uint32_t)(cluster_ms / 1000));
    crdt_state_follow_registry(s);
}

void crdt_state_clock_moved(struct crdt_state *s, int64_t by_ms)
{
    crdt_early_moved(&s->early, by_ms, s->generation_ms);
    s->early_due = true;
}

uint32_t crdt_state_oldest(const struct crdt_state *s, unsigned slot)
{
    return (uint32_t)((uint64_t)crdt_registry_oldest_s(s->registry, slot) * 1000 /
                      s->generation_ms);
}

/* --- observations --------------------------------------------------------------------------- */

int crdt_state_observe(struct crdt_state *s, const struct chain *chain, unsigned slot)
{
    if (!crdt_registry_has(s->registry, slot))
        return ERR_NOT_FOUND;
    uint64_t news[CHAIN_POINTS_MAX / 64];
    uint32_t now = crdt_index_now(s->index);
    int count = crdt_index_observe_chain(s->index, chain, slot, now, s->replicated ? news : NULL);
    if (count <= 0 || !s->replicated)
        return count;
    for (unsigned word = 0; word < CHAIN_POINTS_MAX / 64; word++) {
        for (uint64_t bits = news[word]; bits != 0; bits &= bits - 1) {
            const struct chain_point *p = &chain->points[word * 64 + __builtin_ctzll(bits)];
            crdt_state_tell_point(s, slot, now, crdt_point(p->id, p->code));
        }
    }
    s->stats.observations_out += (uint64_t)count;
    return count;
}

int crdt_state_bind(struct crdt_state *s, uint64_t id, unsigned slot)
{
    if (!crdt_registry_has(s->registry, slot))
        return ERR_NOT_FOUND;
    uint32_t now = crdt_index_now(s->index);
    int news = crdt_index_observe(s->index, id, slot, CHECKPOINT_CODE_BINDING, now);
    if (news == 1 && s->replicated) {
        crdt_state_tell_point(s, slot, now, crdt_point(id, CHECKPOINT_CODE_BINDING));
        s->stats.observations_out++;
    }
    return news;
}

int crdt_state_bound(const struct crdt_state *s, uint64_t id)
{
    unsigned slot = 0;
    uint32_t generation = 0;
    int err = crdt_index_newest(s->index, id, CHECKPOINT_CODE_BINDING, &slot, &generation);
    return err == 0 ? (int)slot : -1;
}

void crdt_state_observe_again(struct crdt_state *s)
{
    if (!s->early_due)
        return;
    s->early_due = false;
    uint32_t now = crdt_index_now(s->index);
    for (unsigned i = 0; i < s->early.used; i++) {
        const struct crdt_early_point p = s->early.ring[i];
        if (p.rkey == 0)
            continue;
        const struct crdt_replica *row = crdt_registry_at(s->registry, p.slot);
        if (is_lost(row) || row->incarnation.started + CRDT_EARLY_SKEW_MS > p.at_ms)
            continue;
        crdt_early_clear(&s->early, i);
        uint32_t generation = of_its_name(s, p.slot, p.generation < now ? p.generation : now);
        if (crdt_index_observe(s->index, p.point & 0xffffffffffff, p.slot, (uint8_t)(p.point >> 48),
                               generation) == 1)
            crdt_state_tell_point(s, p.slot, generation, p.point);
    }
}

/* --- reports -------------------------------------------------------------------------------- */

static void report(struct crdt_state *s, const struct crdt_report *own)
{
    if (crdt_registry_has(s->registry, own->slot))
        crdt_reports_set(s->reports, own);
}

void crdt_state_load(struct crdt_state *s, unsigned slot, const struct crdt_load *load)
{
    report(s, &(struct crdt_report){.slot = slot, .kind = CRDT_REPORT_LOAD, .value.load = *load});
}

void crdt_state_sight(struct crdt_state *s, unsigned slot, const struct crdt_sight *sight)
{
    report(s,
           &(struct crdt_report){.slot = slot, .kind = CRDT_REPORT_SIGHT, .value.sight = *sight});
}

void crdt_state_learned(struct crdt_state *s, unsigned slot, const struct crdt_learned *learned)
{
    struct crdt_report own = {.slot = slot, .kind = CRDT_REPORT_LEARNED, .value.learned = *learned};
    FUTURE_LEARN(&own.value.learned);
    report(s, &own);
}

void crdt_state_epoch(struct crdt_state *s, uint64_t epoch)
{
    crdt_reports_epoch(s->reports, epoch);
}

void crdt_state_router(struct crdt_state *s, uint64_t router, uint64_t epoch)
{
    crdt_reports_router(s->reports, router, epoch);
}

void crdt_state_router_gone(struct crdt_state *s, uint64_t router)
{
    crdt_reports_router_gone(s->reports, router);
}

/* --- poison --------------------------------------------------------------------------------- */

int crdt_state_poisoned(struct crdt_state *s, uint64_t hash, enum crdt_poison_level level, int slot,
                        uint32_t ttl_s)
{
    bool known = slot >= 0 && crdt_registry_has(s->registry, (unsigned)slot);
    uint64_t died = known ? crdt_registry_at(s->registry, (unsigned)slot)->key : 0;
    return crdt_poison_set(&s->poison, hash, level, died, ttl_s);
}

void crdt_state_poison_refused(struct crdt_state *s, uint64_t hash)
{
    crdt_poison_refused(&s->poison, hash);
}

/* --- tidings -------------------------------------------------------------------------------- */

void crdt_state_tell(struct crdt_state *s, uint8_t kind, struct slice body)
{
    if (!s->replicated)
        return;
    crdt_tidings_push(&s->tidings, kind, body);
    s->stats.tidings_out++;
}

void crdt_state_hear(struct crdt_state *s, crdt_tiding_fn hear, void *context)
{
    s->tiding = hear;
    s->tiding_context = context;
}

/* --- digest, counters ----------------------------------------------------------------------- */

void crdt_state_digest(const struct crdt_state *s, uint32_t from, struct crdt_digest *out)
{
    uint64_t loads = 0;
    uint64_t others = 0;
    crdt_reports_digest(s->reports, &loads, &others);
    *out = (struct crdt_digest){.registry = crdt_registry_digest(s->registry, 0),
                                .index = crdt_index_digest(s->index, from),
                                .reports = loads + others,
                                .poison = s->poison.digest};
}

void crdt_state_stats(const struct crdt_state *s, struct crdt_state_stats *out)
{
    struct crdt_index_stats index;
    crdt_index_stats(s->index, &index);
    *out = s->stats;
    out->full += index.refused;
    out->outbox_bytes = s->outbox.used * sizeof(uint64_t);
    out->outbox_dropped = s->outbox.dropped;
    out->tidings_dropped = s->tidings.dropped;
}
