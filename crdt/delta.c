#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "crdt/classes.h"
#include "crdt/record.h"
#include "crdt/state_internal.h"

/* --- telling -------------------------------------------------------------------------------- */

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

static void produce_tidings(struct crdt_state *s, struct wire_writer *w)
{
    struct crdt_tiding tiding;
    while (s->outbox.used == 0 && crdt_tidings_peek(&s->tidings, &tiding)) {
        struct slice body = slice_of((const char *)tiding.body, tiding.len);
        if (!crdt_record_write_tiding(w, tiding.kind, body))
            return;
        crdt_tidings_take(&s->tidings);
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
    unsigned done = 0;
    while (done < CRDT_CLASSES && crdt_classes[done].produce(s, seq, &w))
        done++;
    if (done == CRDT_CLASSES) {
        produce_observations(s, &w);
        produce_tidings(s, &w);
    }
    CHECK(!w.bad);
    CHECK_SLOW(crdt_records_valid(slice_of((const char *)out, wire_written(&w)), false));
    return wire_written(&w);
}

bool crdt_state_has_news(const struct crdt_state *s)
{
    return s->replicated &&
           (crdt_registry_news(s->registry) >= 0 || s->outbox.used > 0 || s->poison.news > 0 ||
            s->tidings.used > 0 || crdt_reports_any_waiting(s->reports));
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
