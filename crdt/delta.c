#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "crdt/record.h"
#include "crdt/state_internal.h"

/* --- telling -------------------------------------------------------------------------------- */

static bool produce_replicas(struct crdt_state *s, struct wire_writer *w)
{
    for (int place; (place = crdt_registry_news(s->registry)) >= 0;) {
        struct crdt_registry_row row = crdt_registry_row(s->registry, (unsigned)place);
        if (!crdt_record_write_replica(w, &row))
            return false;
        crdt_registry_sent(s->registry, (unsigned)place);
    }
    return true;
}

static bool produce_poison(struct crdt_state *s, struct wire_writer *w)
{
    for (int at; (at = crdt_poison_news(&s->poison)) >= 0;) {
        if (!crdt_record_write_poison(w, &s->poison.row[at]))
            return false;
        crdt_poison_sent(&s->poison, (unsigned)at);
    }
    return true;
}

static bool produce_reports(struct crdt_state *s, uint64_t seq, enum crdt_report_kind kind,
                            struct wire_writer *w)
{
    for (int slot = crdt_reports_waiting(s->reports, kind, 0); slot >= 0;
         slot = crdt_reports_waiting(s->reports, kind, (unsigned)slot)) {
        struct crdt_report row;
        crdt_reports_own(s->reports, kind, (unsigned)slot, &row);
        if (!crdt_record_write_report(w, crdt_registry_at(s->registry, (unsigned)slot)->key, &row,
                                      false))
            return false;
        crdt_reports_heard(s->reports, kind, (unsigned)slot, seq);
    }
    return true;
}

static void produce_observations(struct crdt_state *s, struct wire_writer *w)
{
    struct crdt_outbox_run run;
    for (;;) {
        crdt_outbox_peek(&s->outbox, &run);
        if (run.count == 0)
            return;
        unsigned written =
            crdt_record_write_run(w, run.rkey, run.generation, run.points, run.count);
        if (written == 0)
            return;
        crdt_outbox_take(&s->outbox, written);
    }
}

size_t crdt_state_produce(struct crdt_state *s, uint64_t seq, uint8_t *out, size_t max)
{
    CHECK(max >= CRDT_DELTA_MIN);
    if (!s->replicated)
        return 0;
    struct wire_writer w = wire_writer_of(out, max);
    if (FUTURE && crdt_state_has_news(s))
        crdt_record_write_future(&w);
    if (produce_replicas(s, &w) && produce_poison(s, &w) &&
        produce_reports(s, seq, CRDT_REPORT_LOAD, &w) &&
        produce_reports(s, seq, CRDT_REPORT_SIGHT, &w) &&
        produce_reports(s, seq, CRDT_REPORT_LEARNED, &w))
        produce_observations(s, &w);
    CHECK(!w.bad);
    CHECK_SLOW(crdt_records_valid(slice_of((const char *)out, wire_written(&w)), false));
    return wire_written(&w);
}

bool crdt_state_has_news(const struct crdt_state *s)
{
    return s->replicated && (crdt_registry_news(s->registry) >= 0 || s->outbox.used > 0 ||
                             s->poison.news > 0 || crdt_reports_any_waiting(s->reports));
}

/* --- hearing -------------------------------------------------------------------------------- */

int crdt_state_apply(struct crdt_state *s, const struct crdt_origin *origin, struct slice delta)
{
    if (!crdt_records_valid(delta, false)) {
        s->stats.malformed++;
        return ERR_SYNTAX;
    }
    (void)crdt_state_join(s, origin, delta);
    return 0;
}
