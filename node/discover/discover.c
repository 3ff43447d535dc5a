#include "node/discover/discover.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/discover/discover_internal.h"

int discover_create(struct discover **out, const struct discover_host *host, struct log *log)
{
    struct discover *d = calloc(1, sizeof *d);
    if (d == NULL)
        return ERR_NOMEM;
    d->host = *host;
    d->log = log;
    *out = d;
    return ERR_OK;
}

void discover_destroy(struct discover *d)
{
    if (d == NULL)
        return;
    for (unsigned i = 0; i < d->source_count; i++) {
        discover_items_free(&d->sources[i].list);
        free(d->sources[i].name);
        free(d->sources[i].model);
    }
    free(d->rows);
    free(d);
}

static int compare_row(const void *name, const void *row)
{
    const struct discover_row *r = row;
    return discover_name_compare(*(const struct slice *)name, discover_item_name(&r->said));
}

/* Returns the row of this name, or NULL. */
static struct discover_row *row_find(const struct discover *d, struct slice name)
{
    if (d->row_count == 0)
        return NULL;
    return bsearch(&name, d->rows, d->row_count, sizeof *d->rows, compare_row);
}

/* Merges all sources' entries of a name into `out`: the labels of the first entry, draining if any
 * entry drains. Returns false if no source lists the name. */
static bool said_of(const struct discover *d, struct slice name, struct discover_item *out)
{
    bool listed = false, draining = false;
    for (unsigned i = 0; i < d->source_count; i++) {
        const struct discover_item *item = discover_items_find(&d->sources[i].list, name);
        if (item == NULL)
            continue;
        if (!listed)
            *out = *item;
        listed = true;
        draining = draining || item->state == DISCOVER_DRAINING;
    }
    if (listed)
        out->state = draining ? DISCOVER_DRAINING : DISCOVER_SERVING;
    return listed;
}

void discover_check(const struct discover *d)
{
    for (unsigned i = 0; i < d->source_count; i++) {
        const struct discover_items *list = &d->sources[i].list;
        CHECK(list->count <= DISCOVER_ENTRIES_MAX);
        for (unsigned k = 0; k < list->count; k++) {
            struct slice name = discover_item_name(&list->at[k]);
            CHECK(k == 0 || discover_name_compare(discover_item_name(&list->at[k - 1]), name) < 0);
            CHECK(row_find(d, name) != NULL);
        }
    }
    for (unsigned i = 0; i < d->row_count; i++) {
        const struct discover_row *row = &d->rows[i];
        struct slice name = discover_item_name(&row->said);
        struct discover_item said;
        CHECK(i == 0 || discover_name_compare(discover_item_name(&d->rows[i - 1].said), name) < 0);
        bool listed = said_of(d, name, &said);
        CHECK(listed == (row->vanished_ms == 0));
        CHECK(listed || row->use == DISCOVER_USE_DRAINING);
        CHECK(row->use != DISCOVER_USE_USED || said.state == DISCOVER_SERVING);
    }
}

/* --- the rows follow the lists --------------------------------------------------------------- */

static void use(struct discover *d, struct discover_row *row, const struct discover_item *said)
{
    bool news = row->use != DISCOVER_USE_USED || !discover_item_same(&row->said, said);
    if (!news && !row->refused)
        return;
    struct node_labels labels = discover_item_labels(said);
    int err = d->host.use(d->host.context, discover_item_name(said), &labels);
    if (err >= 0) {
        row->said = *said;
        row->use = DISCOVER_USE_USED;
        row->refused = false;
        return;
    }
    d->pending = true;
    char full[64];
    (void)snprintf(full, sizeof full, "replicas-max (%u) is reached", d->host.names_max);
    if (!row->refused)
        log_event(d->log, LOG_ERROR, "replica_refused",
                  LOG_STR("replica", discover_item_name(said)),
                  LOG_CSTR("error", err == ERR_FULL ? full : err_text(err)),
                  LOG_CSTR("effect", "the router does not use it, and tries again every second"));
    row->refused = true;
}

static void drain(struct discover *d, struct discover_row *row)
{
    /* A host that refused the name may have queued it until there is room. */
    if (row->use == DISCOVER_USE_NEW && row->refused)
        d->host.forget(d->host.context, discover_item_name(&row->said));
    row->refused = false;
    if (row->use != DISCOVER_USE_USED)
        return;
    row->use = DISCOVER_USE_DRAINING;
    d->host.drain(d->host.context, discover_item_name(&row->said));
}

/* Tells the host what the sources now say about the row's name. Returns false if the row is to be
 * deleted. */
static bool row_settle(struct discover *d, struct discover_row *row, uint64_t now_ms)
{
    struct discover_item said;
    struct slice name = discover_item_name(&row->said);
    if (said_of(d, name, &said)) {
        row->vanished_ms = 0;
        if (said.state == DISCOVER_SERVING)
            use(d, row, &said);
        else
            drain(d, row);
        return true;
    }
    drain(d, row);
    if (row->use == DISCOVER_USE_NEW)
        return false;
    if (row->vanished_ms == 0)
        row->vanished_ms = now_ms > 0 ? now_ms : 1;
    d->pending = true;
    if (now_ms < row->vanished_ms + DISCOVER_KEEP_MS || d->host.busy(d->host.context, name))
        return true;
    d->host.forget(d->host.context, name);
    return false;
}

static void settle(struct discover *d, uint64_t now_ms)
{
    unsigned kept = 0;
    d->pending = false;
    for (unsigned i = 0; i < d->source_count; i++)
        d->pending = d->pending || d->sources[i].empty_ms != 0;
    for (unsigned i = 0; i < d->row_count; i++) {
        if (!row_settle(d, &d->rows[i], now_ms))
            continue;
        if (kept != i)
            d->rows[kept] = d->rows[i];
        kept++;
    }
    d->row_count = kept;
}

/* Makes a new array of rows: the existing rows and a row for each new name in `list`. ERR_NOMEM. */
static int rows_with(const struct discover *d, const struct discover_items *list,
                     struct discover_row **out, unsigned *count)
{
    struct discover_row *rows = calloc((size_t)d->row_count + list->count + 1, sizeof *rows);
    if (rows == NULL)
        return ERR_NOMEM;
    unsigned a = 0, b = 0, n = 0;
    while (a < d->row_count || b < list->count) {
        int order = a == d->row_count  ? 1
                    : b == list->count ? -1
                                       : discover_name_compare(discover_item_name(&d->rows[a].said),
                                                               discover_item_name(&list->at[b]));
        if (order <= 0)
            rows[n] = d->rows[a++];
        else
            rows[n].said = list->at[b];
        b += order >= 0;
        n++;
    }
    *out = rows;
    *count = n;
    return ERR_OK;
}

/* --- sources ---------------------------------------------------------------------------------- */

int discover_source(struct discover *d, const char *kind, struct slice name)
{
    if (d->source_count == DISCOVER_SOURCES_MAX)
        return ERR_FULL;
    for (unsigned i = 0; i < d->source_count; i++) {
        if (strcmp(d->sources[i].kind, kind) == 0 &&
            slice_equal(slice_of_cstr(d->sources[i].name), name))
            return ERR_EXISTS;
    }
    char *copy = malloc(name.len + 1);
    if (copy == NULL)
        return ERR_NOMEM;
    (void)slice_to_cstr(name, copy, name.len + 1);
    d->sources[d->source_count] = (struct discover_origin){.kind = kind, .name = copy};
    return (int)d->source_count++;
}

int discover_source_labels(struct discover *d, unsigned source, const struct node_labels *labels)
{
    CHECK(source < d->source_count);
    struct discover_origin *s = &d->sources[source];
    s->adapters_on_demand = labels->adapters_on_demand;
    if (labels->model.len == 0)
        return ERR_OK;
    char *copy = malloc(labels->model.len + 1);
    if (copy == NULL)
        return ERR_NOMEM;
    (void)slice_to_cstr(labels->model, copy, labels->model.len + 1);
    free(s->model);
    s->model = copy;
    return ERR_OK;
}

static void log_works(const struct discover *d, const struct discover_origin *s)
{
    char title[DISCOVER_TITLE_BYTES];
    log_event(d->log, LOG_INFO, "discovery_works", LOG_STR("source", discover_title(s, title)),
              LOG_UINT("entries", s->list.count));
}

static void succeeded(struct discover *d, struct discover_origin *s, uint64_t now_ms)
{
    if (s->failing)
        log_works(d, s);
    s->failing = false;
    s->listed = true;
    s->success_ms = now_ms;
}

/* True if the source's empty list does not count yet: the last list has names, and the source has
 * not said "empty" for DISCOVER_EMPTY_MS. */
static bool empty_waits(struct discover *d, struct discover_origin *s, uint64_t now_ms)
{
    char title[DISCOVER_TITLE_BYTES];
    if (s->list.count == 0)
        return false;
    if (s->empty_ms == 0) {
        s->empty_ms = now_ms > 0 ? now_ms : 1;
        d->pending = true;
        log_event(d->log, LOG_WARN, "discovery_empty", LOG_STR("source", discover_title(s, title)),
                  LOG_UINT("entries", s->list.count), LOG_CSTR("why", discover_why_empty(s)),
                  LOG_UINT("waits_ms", DISCOVER_EMPTY_MS),
                  LOG_CSTR("effect", "the source's last list stays in use until then"));
    }
    return now_ms < s->empty_ms + DISCOVER_EMPTY_MS;
}

void discover_same(struct discover *d, unsigned source, uint64_t now_ms)
{
    CHECK(source < d->source_count);
    struct discover_origin *s = &d->sources[source];
    succeeded(d, s, now_ms);
    if (s->said_empty)
        (void)empty_waits(d, s, now_ms);
}

void discover_failed(struct discover *d, unsigned source, const char *why, uint64_t now_ms)
{
    CHECK(source < d->source_count);
    (void)now_ms;
    struct discover_origin *s = &d->sources[source];
    char text[DISCOVER_WHY_MAX], title[DISCOVER_TITLE_BYTES];
    (void)slice_to_cstr(slice_of_cstr(why), text, sizeof text);
    if (!s->failing || strcmp(text, s->why) != 0)
        log_event(d->log, LOG_WARN, "discovery_failed", LOG_STR("source", discover_title(s, title)),
                  LOG_CSTR("error", text), LOG_UINT("entries", s->list.count),
                  LOG_CSTR("effect", s->list.count > 0 ? "the source's last list stays in use"
                                                       : "it names no replica yet"));
    (void)memcpy(s->why, text, sizeof text);
    s->failing = true;
    s->failures++;
    s->empty_ms = 0; /* DISCOVER_EMPTY_MS begins anew: the list must be empty all that time */
}

void discover_hint(struct discover *d, unsigned source, const char *why)
{
    CHECK(source < d->source_count);
    struct discover_origin *s = &d->sources[source];
    (void)slice_to_cstr(slice_of_cstr(why), s->hint, sizeof s->hint);
}

void discover_lacks(struct discover *d, unsigned source, const char *what)
{
    CHECK(source < d->source_count);
    struct discover_origin *s = &d->sources[source];
    char text[DISCOVER_WHY_MAX], title[DISCOVER_TITLE_BYTES];
    (void)slice_to_cstr(slice_of_cstr(what), text, sizeof text);
    if (text[0] != '\0' && strcmp(text, s->lacks) != 0)
        log_event(d->log, LOG_WARN, "discovery_incomplete",
                  LOG_STR("source", discover_title(s, title)), LOG_CSTR("error", text));
    (void)memcpy(s->lacks, text, sizeof text);
}

/* Logs the numbers of added, vanished and draining names. */
static void log_change(struct discover *d, const struct discover_origin *s,
                       const struct discover_items *before)
{
    char title[DISCOVER_TITLE_BYTES];
    unsigned added = 0, gone = 0, draining = 0;
    for (unsigned i = 0; i < s->list.count; i++) {
        added += discover_items_find(before, discover_item_name(&s->list.at[i])) == NULL;
        draining += s->list.at[i].state == DISCOVER_DRAINING;
    }
    for (unsigned i = 0; i < before->count; i++)
        gone += discover_items_find(&s->list, discover_item_name(&before->at[i])) == NULL;
    log_event(d->log, LOG_INFO, "discovered", LOG_STR("source", discover_title(s, title)),
              LOG_UINT("entries", s->list.count), LOG_UINT("added", added), LOG_UINT("gone", gone),
              LOG_UINT("draining", draining));
}

/* A source's new list, and the rows that result from it. */
struct change {
    struct discover_items list;
    struct discover_row *rows;
    unsigned row_count;
};

static void take(struct discover *d, struct discover_origin *s, const struct change *change,
                 uint64_t now_ms)
{
    struct discover_items before = s->list;
    char title[DISCOVER_TITLE_BYTES];
    bool nothing = before.count == 0 && change->list.count == 0;
    s->list = change->list;
    s->empty_ms = 0;
    free(d->rows);
    d->rows = change->rows;
    d->row_count = change->row_count;
    if (nothing) /* a source without any replica so far may have the wrong name */
        log_event(d->log, LOG_WARN, "discovery_empty", LOG_STR("source", discover_title(s, title)),
                  LOG_UINT("entries", 0), LOG_CSTR("why", discover_why_empty(s)),
                  LOG_CSTR("effect", "it names no replica"));
    else
        log_change(d, s, &before);
    discover_items_free(&before);
    settle(d, now_ms);
}

static int refuse(struct discover *d, unsigned source, int err, uint64_t now_ms)
{
    discover_failed(d, source,
                    err == ERR_LIMIT   ? "more names than a list may have"
                    : err == ERR_RANGE ? "a name or model that is empty or too long"
                                       : err_text(err),
                    now_ms);
    return err;
}

int discover_list(struct discover *d, unsigned source, const struct discover_entry *entries,
                  unsigned count, uint64_t now_ms)
{
    CHECK(source < d->source_count);
    struct discover_origin *s = &d->sources[source];
    struct change change = {0};
    s->said_empty = count == 0;
    int err = discover_items_of(&change.list, entries, count);
    if (err != ERR_OK)
        return refuse(d, source, err, now_ms);
    bool same = s->listed && discover_items_equal(&change.list, &s->list);
    if (!same)
        err = rows_with(d, &change.list, &change.rows, &change.row_count);
    if (err != ERR_OK) {
        discover_items_free(&change.list);
        return refuse(d, source, err, now_ms);
    }
    succeeded(d, s, now_ms);
    if (same || (count == 0 && empty_waits(d, s, now_ms))) {
        if (count > 0 && s->empty_ms != 0)
            log_works(d, s);
        if (count > 0)
            s->empty_ms = 0;
        free(change.rows);
        discover_items_free(&change.list);
    } else {
        take(d, s, &change, now_ms);
    }
    return ERR_OK;
}

/* Marks names that the host has dropped as new, so that settle() offers them again. */
static void notice_lost(struct discover *d)
{
    for (unsigned i = 0; i < d->row_count; i++) {
        struct discover_row *row = &d->rows[i];
        if (row->use == DISCOVER_USE_NEW ||
            d->host.has(d->host.context, discover_item_name(&row->said)))
            continue;
        row->use = DISCOVER_USE_NEW;
        d->pending = true;
    }
}

void discover_tick(struct discover *d, uint64_t now_ms)
{
    notice_lost(d);
    if (!d->pending)
        return;
    for (unsigned i = 0; i < d->source_count; i++) {
        struct discover_origin *s = &d->sources[i];
        struct change none = {0}; /* without memory for the rows, the next tick tries again */
        if (s->empty_ms != 0 && !empty_waits(d, s, now_ms) &&
            rows_with(d, &none.list, &none.rows, &none.row_count) == ERR_OK)
            take(d, s, &none, now_ms);
    }
    settle(d, now_ms);
}

unsigned discover_source_count(const struct discover *d)
{
    return d->source_count;
}

bool discover_lists(const struct discover *d, unsigned source, struct slice name)
{
    CHECK(source < d->source_count);
    return discover_items_find(&d->sources[source].list, name) != NULL;
}

bool discover_pending(const struct discover *d)
{
    for (unsigned i = 0; i < d->source_count; i++)
        if (!d->sources[i].listed)
            return true;
    return false;
}

bool discover_listed(const struct discover *d, struct slice name)
{
    const struct discover_row *row = row_find(d, name);
    return row != NULL && row->vanished_ms == 0;
}

static bool is_model(struct slice label, struct slice model)
{
    struct slice rest = model;
    return label.len > 0 &&
           (slice_equal(label, model) || slice_equal(label, slice_cut(&rest, ':')));
}

bool discover_names_model(const struct discover *d, struct slice model, bool denied)
{
    for (unsigned i = 0; i < d->source_count; i++) {
        const struct discover_origin *s = &d->sources[i];
        bool counts = s->list.count == 0 || !denied;
        if (counts && s->model != NULL && is_model(slice_of_cstr(s->model), model))
            return true;
        for (unsigned k = 0; k < s->list.count && !denied; k++) {
            if (is_model(discover_item_labels(&s->list.at[k]).model, model))
                return true;
        }
    }
    return false;
}

bool discover_may_have(const struct discover *d)
{
    for (unsigned i = 0; i < d->source_count; i++) {
        const struct discover_origin *s = &d->sources[i];
        bool unheard = !s->listed && s->model == NULL;
        if (unheard || (s->adapters_on_demand && s->list.count == 0))
            return true;
    }
    return false;
}

bool discover_told(const struct discover *d, struct slice name, struct node_labels *labels,
                   bool *draining)
{
    const struct discover_row *row = row_find(d, name);
    if (row == NULL || row->use == DISCOVER_USE_NEW)
        return false;
    *labels = discover_item_labels(&row->said);
    *draining = row->use == DISCOVER_USE_DRAINING;
    return true;
}
