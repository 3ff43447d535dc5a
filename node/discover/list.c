/* A source's list, and the comparison of names. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/discover/discover_internal.h"

int discover_name_compare(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return a.len < b.len ? -1 : 1;
    return memcmp(a.at, b.at, a.len);
}

static bool item_set(struct discover_item *item, const struct discover_entry *entry)
{
    const struct node_labels *labels = &entry->labels;
    if (entry->name.len == 0 || entry->name.len > NODE_NAME_MAX ||
        labels->model.len > NODE_MODEL_ID_MAX || labels->health.len > NODE_HEALTH_PATH_MAX ||
        labels->kv_events.len > KV_NAMED_MAX)
        return false;
    *item = (struct discover_item){
        .state = entry->state,
        .labels = *labels,
        .name_len = (uint16_t)entry->name.len,
        .model_len = (uint16_t)labels->model.len,
        .health_len = (uint16_t)labels->health.len,
        .kv_events_len = (uint16_t)labels->kv_events.len,
    };
    item->labels.weight = node_labels_weight(labels);
    memcpy(item->name, entry->name.at, entry->name.len);
    if (labels->model.len > 0)
        memcpy(item->model, labels->model.at, labels->model.len);
    if (labels->health.len > 0)
        memcpy(item->health, labels->health.at, labels->health.len);
    if (labels->kv_events.len > 0)
        memcpy(item->kv_events, labels->kv_events.at, labels->kv_events.len);
    return true;
}

/* An entry and the entry's position: of entries with equal names the first counts. */
struct placed {
    const struct discover_entry *entry;
    unsigned place;
};

static int compare_placed(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = discover_name_compare(x->entry->name, y->entry->name);
    return order != 0 ? order : x->place < y->place ? -1 : 1;
}

static int fill(struct discover_items *list, struct placed *order, unsigned count)
{
    qsort(order, count, sizeof *order, compare_placed);
    for (unsigned i = 0; i < count; i++) {
        if (i > 0 && slice_equal(order[i].entry->name, order[i - 1].entry->name))
            continue;
        if (!item_set(&list->at[list->count], order[i].entry))
            return ERR_RANGE;
        list->count++;
    }
    return ERR_OK;
}

int discover_items_of(struct discover_items *out, const struct discover_entry *entries,
                      unsigned count)
{
    *out = (struct discover_items){0};
    if (count > DISCOVER_ENTRIES_MAX)
        return ERR_LIMIT;
    if (count == 0)
        return ERR_OK;
    struct placed *order = malloc(count * sizeof *order);
    struct discover_items list = {.at = malloc(count * sizeof *list.at)};
    int err = order != NULL && list.at != NULL ? ERR_OK : ERR_NOMEM;
    for (unsigned i = 0; i < count && err == ERR_OK; i++)
        order[i] = (struct placed){.entry = &entries[i], .place = i};
    if (err == ERR_OK)
        err = fill(&list, order, count);
    free(order);
    if (err != ERR_OK)
        discover_items_free(&list);
    else
        *out = list;
    return err;
}

void discover_items_free(struct discover_items *list)
{
    free(list->at);
    *list = (struct discover_items){0};
}

bool discover_item_same(const struct discover_item *a, const struct discover_item *b)
{
    struct node_labels x = discover_item_labels(a), y = discover_item_labels(b);
    return a->state == b->state && x.engine == y.engine && x.weight == y.weight &&
           x.cache_tokens == y.cache_tokens && x.context_tokens == y.context_tokens &&
           x.ranks == y.ranks && x.adapters_on_demand == y.adapters_on_demand &&
           x.host_header == y.host_header && slice_equal(x.model, y.model) &&
           slice_equal(x.health, y.health) && slice_equal(x.kv_events, y.kv_events) &&
           slice_equal(discover_item_name(a), discover_item_name(b));
}

bool discover_items_equal(const struct discover_items *a, const struct discover_items *b)
{
    if (a->count != b->count)
        return false;
    for (unsigned i = 0; i < a->count; i++) {
        if (!discover_item_same(&a->at[i], &b->at[i]))
            return false;
    }
    return true;
}

static int compare_found(const void *name, const void *item)
{
    return discover_name_compare(*(const struct slice *)name, discover_item_name(item));
}

const struct discover_item *discover_items_find(const struct discover_items *list,
                                                struct slice name)
{
    if (list->count == 0)
        return NULL;
    return bsearch(&name, list->at, list->count, sizeof *list->at, compare_found);
}

bool discover_says_empty(const struct discover_origin *s)
{
    return s->empty_ms != 0 || (s->listed && s->list.count == 0);
}

const char *discover_why_empty(const struct discover_origin *s)
{
    return s->hint[0] != '\0' ? s->hint : "it lists no replica";
}

struct slice discover_title(const struct discover_origin *s, char *out)
{
    (void)snprintf(out, DISCOVER_TITLE_BYTES, "%s%s%s", s->kind, s->name[0] != '\0' ? " " : "",
                   s->name);
    return slice_of_cstr(out);
}
