#include "crdt/state.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "crdt/state_internal.h"

enum { OUTBOX_BYTES = 1 << 20, LOG_BYTES = 16 << 20 };

/* --- life ----------------------------------------------------------------------------------- */

static int create_parts(struct crdt_state *s, const struct crdt_state_config *config)
{
    int err = crdt_index_create(&s->index, &config->index);
    if (err != 0)
        return err;
    unsigned replicas = config->index.replicas_max;
    err = crdt_registry_create(&s->registry, replicas);
    if (err == 0)
        err = crdt_reports_create(&s->reports, s->registry, config->self, CRDT_ROUTERS_MAX);
    if (err == 0)
        err = crdt_events_create(&s->log, replicas,
                                 config->log_bytes != 0 ? config->log_bytes : LOG_BYTES);
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
    crdt_events_destroy(s->log);
    crdt_reports_destroy(s->reports);
    crdt_registry_destroy(s->registry);
    crdt_index_destroy(s->index);
    free(s);
}

void crdt_state_check(const struct crdt_state *s)
{
    crdt_registry_check(s->registry);
    crdt_reports_check(s->reports);
    crdt_events_check(s->log);
    crdt_index_check(s->index);
    crdt_outbox_check(&s->outbox);
    unsigned waiting = 0;
    for (unsigned slot = 0; slot < CRDT_REPLICAS_MAX; slot++) {
        bool known = slot < crdt_registry_count(s->registry);
        CHECK(s->rkey_known[slot] == (known ? crdt_registry_at(s->registry, slot)->rkey : 0));
        bool waits = (s->replica_waiting[slot / 64] >> slot % 64 & 1) != 0;
        CHECK(known || !waits);
        waiting += waits;
    }
    CHECK(waiting == s->replicas_waiting);
    for (unsigned i = 0; i < crdt_events_count(s->log); i++)
        CHECK(crdt_registry_by_rkey(s->registry, crdt_events_at(s->log, i).rkey) >= 0);
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

const struct crdt_events *crdt_state_log(const struct crdt_state *s)
{
    return s->log;
}

/* --- the registry --------------------------------------------------------------------------- */

void crdt_state_follow_registry(struct crdt_state *s)
{
    uint64_t version = crdt_registry_version(s->registry);
    if (version == s->registry_followed)
        return;
    s->registry_followed = version;
    for (unsigned slot = 0; slot < crdt_registry_count(s->registry); slot++) {
        uint32_t rkey = crdt_registry_at(s->registry, slot)->rkey;
        if (rkey == s->rkey_known[slot])
            continue;
        crdt_events_retire(s->log, s->rkey_known[slot]);
        crdt_index_forget(s->index, slot, rkey);
        s->rkey_known[slot] = rkey;
    }
}

static void tell_replica(struct crdt_state *s, unsigned slot)
{
    crdt_state_follow_registry(s);
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (!s->replicated || (s->replica_waiting[slot / 64] & bit) != 0)
        return;
    s->replica_waiting[slot / 64] |= bit;
    s->replicas_waiting++;
}

int crdt_state_replica(struct crdt_state *s, struct slice name)
{
    bool news = false;
    struct crdt_registry_row row = {.name = name};
    if (FUTURE)
        row.later = FUTURE_BYTES;
    int slot = crdt_registry_join(s->registry, &row, &news);
    if (slot >= 0 && news)
        tell_replica(s, (unsigned)slot);
    return slot;
}

int crdt_state_wish(struct crdt_state *s, unsigned slot, enum crdt_wish wish, bool draining)
{
    bool news = crdt_registry_wish(s->registry, slot, wish, draining);
    if (news)
        tell_replica(s, slot);
    return news;
}

bool crdt_state_restarted(struct crdt_state *s, unsigned slot, uint64_t started)
{
    bool news = crdt_registry_restarted(s->registry, slot, started);
    if (news)
        tell_replica(s, slot);
    return news;
}

/* --- observations --------------------------------------------------------------------------- */

int crdt_state_observe(struct crdt_state *s, const struct chain *chain, unsigned slot)
{
    CHECK(slot < crdt_registry_count(s->registry));
    uint64_t news[CHAIN_POINTS_MAX / 64];
    uint32_t now = crdt_index_now(s->index);
    int count = crdt_index_observe_chain(s->index, chain, slot, now, s->replicated ? news : NULL);
    if (count <= 0 || !s->replicated)
        return count;
    uint32_t rkey = s->rkey_known[slot];
    for (unsigned word = 0; word < CHAIN_POINTS_MAX / 64; word++) {
        for (uint64_t bits = news[word]; bits != 0; bits &= bits - 1) {
            const struct chain_point *p = &chain->points[word * 64 + __builtin_ctzll(bits)];
            crdt_outbox_push(&s->outbox, rkey, now, crdt_point(p->id, p->code));
        }
    }
    s->stats.observations_out += (uint64_t)count;
    return count;
}

int crdt_state_bind(struct crdt_state *s, uint64_t id, unsigned slot)
{
    CHECK(slot < crdt_registry_count(s->registry));
    uint32_t now = crdt_index_now(s->index);
    int news = crdt_index_observe(s->index, id, slot, CHECKPOINT_CODE_BINDING, now);
    if (news == 1 && s->replicated) {
        crdt_outbox_push(&s->outbox, s->rkey_known[slot], now,
                         crdt_point(id, CHECKPOINT_CODE_BINDING));
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

int crdt_state_event(struct crdt_state *s, unsigned slot, const struct crdt_event *event)
{
    CHECK(slot < crdt_registry_count(s->registry));
    struct crdt_event e = *event;
    e.rkey = s->rkey_known[slot];
    return crdt_events_append(s->log, &e);
}

/* --- reports -------------------------------------------------------------------------------- */

void crdt_state_load(struct crdt_state *s, unsigned slot, const struct crdt_load *load)
{
    crdt_reports_set(s->reports, &(struct crdt_report){
                                     .slot = slot, .kind = CRDT_REPORT_LOAD, .value.load = *load});
}

void crdt_state_sight(struct crdt_state *s, unsigned slot, const struct crdt_sight *sight)
{
    crdt_reports_set(
        s->reports,
        &(struct crdt_report){.slot = slot, .kind = CRDT_REPORT_SIGHT, .value.sight = *sight});
}

void crdt_state_learned(struct crdt_state *s, unsigned slot, const struct crdt_learned *learned)
{
    struct crdt_report report = {
        .slot = slot, .kind = CRDT_REPORT_LEARNED, .value.learned = *learned};
    FUTURE_LEARN(&report.value.learned);
    crdt_reports_set(s->reports, &report);
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

/* --- digest, counters ----------------------------------------------------------------------- */

void crdt_state_digest(const struct crdt_state *s, uint32_t from, struct crdt_digest *out)
{
    uint64_t loads = 0;
    uint64_t others = 0;
    crdt_reports_digest(s->reports, &loads, &others);
    *out = (struct crdt_digest){.registry = crdt_registry_digest(s->registry),
                                .index = crdt_index_digest(s->index, from),
                                .log = crdt_events_digest(s->log),
                                .reports = loads + others};
}

void crdt_state_stats(const struct crdt_state *s, struct crdt_state_stats *out)
{
    struct crdt_index_stats index;
    crdt_index_stats(s->index, &index);
    *out = s->stats;
    out->full += index.refused;
    out->outbox_bytes = s->outbox.used * sizeof(uint64_t);
    out->outbox_dropped = s->outbox.dropped;
}
