/* Writes the sources as JSON and as metrics. */
#include "base/check.h"
#include "node/discover/discover_internal.h"

void discover_names_write(const struct discover *d, struct slice name, struct json_writer *w)
{
    char text[DISCOVER_TITLE_BYTES];
    json_array_begin(w);
    for (unsigned i = 0; d != NULL && i < d->source_count; i++) {
        if (discover_lists(d, i, name))
            json_slice(w, discover_title(&d->sources[i], text));
    }
    json_array_end(w);
}

static double age_s(const struct discover_origin *s, uint64_t now_ms)
{
    if (!s->listed)
        return -1;
    return now_ms > s->success_ms ? (double)(now_ms - s->success_ms) / 1000 : 0;
}

static void write_removed(const struct discover_origin *s, discover_removed *removed,
                          const void *context, struct json_writer *w)
{
    json_array_begin(w);
    for (unsigned i = 0; i < s->list.count; i++) {
        struct slice name = discover_item_name(&s->list.at[i]);
        if (removed != NULL && removed(context, name))
            json_slice(w, name);
    }
    json_array_end(w);
}

static unsigned draining_of(const struct discover_origin *s)
{
    unsigned draining = 0;
    for (unsigned i = 0; i < s->list.count; i++)
        draining += s->list.at[i].state == DISCOVER_DRAINING;
    return draining;
}

/* Writes null for NULL. */
static void put_why(struct json_writer *w, const char *key, const char *why)
{
    json_key(w, key);
    if (why != NULL)
        json_cstr(w, why);
    else
        json_nil(w);
}

void discover_sources_write(const struct discover *d, uint64_t now_ms, discover_removed *removed,
                            const void *context, struct json_writer *w)
{
    json_array_begin(w);
    for (unsigned i = 0; i < d->source_count; i++) {
        const struct discover_origin *s = &d->sources[i];
        json_object_begin(w);
        json_put_cstr(w, "kind", s->kind);
        json_put_cstr(w, "name", s->name);
        json_put_u64(w, "entries", s->list.count);
        json_put_u64(w, "draining", draining_of(s));
        json_put_u64(w, "failures", s->failures);
        json_key(w, "age_s"); /* time since the source's last success; null: never */
        json_double(w, s->listed ? age_s(s, now_ms) : 0.0 / 0.0);
        put_why(w, "error", s->failing ? s->why : NULL);
        put_why(w, "lacks", s->lacks[0] != '\0' ? s->lacks : NULL);
        /* Why the list is empty now; null: not empty. */
        put_why(w, "empty", discover_says_empty(s) ? discover_why_empty(s) : NULL);
        json_key(w, "removed"); /* listed, and removed by an operator */
        write_removed(s, removed, context, w);
        json_object_end(w);
    }
    json_array_end(w);
}

static double value_entries(const struct discover_origin *s, uint64_t now_ms)
{
    (void)now_ms;
    return s->list.count;
}

static double value_failures(const struct discover_origin *s, uint64_t now_ms)
{
    (void)now_ms;
    return (double)s->failures;
}

static double value_failing(const struct discover_origin *s, uint64_t now_ms)
{
    (void)now_ms;
    return s->failing;
}

static const struct {
    const char *name;
    const char *help;
    double (*value)(const struct discover_origin *s, uint64_t now_ms);
} rows[] = {
    {"discovery_entries", "Replicas in the source's last list.", value_entries},
    {"discovery_age_seconds", "Time since the last success; -1 if never.", age_s},
    {"discovery_failing", "1 if the source's last query failed.", value_failing},
    {"discovery_failures_total", "Failed queries of the source.", value_failures},
};

void discover_metrics(const struct discover *d, uint64_t now_ms, struct prometheus *p)
{
    char text[DISCOVER_TITLE_BYTES];
    for (unsigned r = 0; r < ARRAY_LEN(rows); r++) {
        prometheus_family(p, rows[r].name, rows[r].help);
        for (unsigned i = 0; i < d->source_count; i++) {
            prometheus_label(p, "source", discover_title(&d->sources[i], text));
            prometheus_value(p, rows[r].value(&d->sources[i], now_ms));
        }
    }
}
