#include "node/settings/aliases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/limits.h"

/* --- a single entry --------------------------------------------------------------------------- */

static bool is_model(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool alnum = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!alnum && (c == '\0' || strchr("._-/:@+", c) == NULL))
            return false;
    }
    return name.len > 0 && name.len <= NODE_MODEL_ID_MAX;
}

/* Cuts a weight such as ":90" off the end of `model`. `*weight` is 0 if there is no number. Returns
 * false if the number is not a valid weight. */
static bool weight_cut(struct slice *model, uint32_t *weight)
{
    size_t at = model->len;
    while (at > 0 && model->at[at - 1] >= '0' && model->at[at - 1] <= '9')
        at--;
    *weight = 0;
    if (at == model->len || at < 2 || model->at[at - 1] != ':')
        return true;
    uint64_t number = 0;
    for (size_t i = at; i < model->len && number <= NODE_ALIAS_WEIGHT_MAX; i++)
        number = number * 10 + (uint64_t)(model->at[i] - '0');
    model->len = at - 1;
    *weight = (uint32_t)number;
    return number > 0 && number <= NODE_ALIAS_WEIGHT_MAX;
}

/* The parts of an entry. */
struct parts {
    struct slice name; /* at == NULL: continues the split of the entry before */
    struct slice side;
    uint32_t weight; /* 0: not given */
    struct slice fallbacks[NODE_ALIAS_TARGETS_MAX];
    unsigned fallback_count;
};

static const char *parts_read(struct slice entry, struct parts *out)
{
    static const char names[] = "want names of letters, digits or any of . _ - / : @ +, 255 bytes "
                                "at most, such as gpt-4o=llama-70b";
    *out = (struct parts){.name = slice_of(NULL, 0)};
    if (slice_find(entry, '=') < entry.len) {
        out->name = slice_trim(slice_cut(&entry, '='));
        if (!is_model(out->name))
            return names;
    }
    out->side = slice_trim(slice_cut(&entry, '>'));
    if (!weight_cut(&out->side, &out->weight))
        return "want a weight from 1 to 1000000 behind the last colon; to send a model nothing, "
               "leave it out";
    if (!is_model(out->side))
        return names;
    while (entry.len > 0) {
        struct slice model = slice_trim(slice_cut(&entry, '>'));
        uint32_t weight;
        if (!weight_cut(&model, &weight) || weight > 0)
            return "want no weight behind >: fallbacks are tried in their order";
        if (!is_model(model))
            return names;
        if (out->fallback_count == NODE_ALIAS_TARGETS_MAX)
            return "want at most 16 models for an alias";
        out->fallbacks[out->fallback_count++] = model;
    }
    return NULL;
}

const char *node_alias_wrong(struct slice entry)
{
    struct parts parts;
    if (entry.len > 0 && entry.at[entry.len - 1] == '>')
        return "want a model behind >, such as gpt-4o=llama-70b>qwen-32b";
    return parts_read(entry, &parts);
}

/* --- all entries ------------------------------------------------------------------------------ */

static int compare(struct slice a, struct slice b)
{
    int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

struct node_alias *node_alias_find(const struct node_aliases *a, struct slice name)
{
    unsigned from = 0, to = a->count;
    while (from < to) {
        unsigned middle = from + (to - from) / 2;
        int order = compare(a->at[middle].name, name);
        if (order == 0)
            return &a->at[middle];
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

int node_alias_target(const struct node_alias *a, struct slice model)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (slice_equal(a->targets[i].model, model))
            return (int)i;
    }
    return ERR_NOT_FOUND;
}

/* Aliases under construction, and their fault. */
struct making {
    struct node_aliases *out;
    struct node_alias *last; /* alias of the last entry; the next entry may continue it */
    unsigned target_count;
    struct node_alias_fault *fault;
};

static int wrong(const struct making *m, const char *format, struct slice a, struct slice b)
{
    (void)snprintf(m->fault->reason, sizeof m->fault->reason, format, SLICE_ARG(a), SLICE_ARG(b));
    return ERR_RANGE;
}

static int target_add(struct making *m, struct slice model, uint32_t weight)
{
    struct node_alias *a = m->last;
    if (slice_equal(a->name, model))
        return wrong(m, "%.*s names itself, want another name for the alias, or leave %.*s out",
                     a->name, model);
    if (node_alias_target(a, model) >= 0)
        return wrong(m, "%.*s has the model %.*s twice, leave one out", a->name, model);
    if (a->count == NODE_ALIAS_TARGETS_MAX)
        return wrong(m, "%.*s has more than 16 models, leave out %.*s and what follows", a->name,
                     model);
    m->out->targets[m->target_count++] =
        (struct node_alias_target){.model = model, .weight = weight};
    a->count++;
    return ERR_OK;
}

static int side_add(struct making *m, const struct parts *parts)
{
    struct node_alias *a = m->last;
    bool begins = a->count == 0;
    if (a->count > a->sides)
        return wrong(m, "%.*s has fallbacks already, write %.*s before the first >", a->name,
                     parts->side);
    if (!begins && (parts->weight > 0) != (a->weight > 0))
        return wrong(m, "want a weight for each model of %.*s or for none; see %.*s", a->name,
                     parts->side);
    a->weight += parts->weight;
    a->sides++;
    return target_add(m, parts->side, parts->weight);
}

static int entry_add(struct making *m, struct slice entry)
{
    struct parts parts;
    CHECK(parts_read(entry, &parts) == NULL);
    if (parts.name.at != NULL) {
        m->last = &m->out->at[m->out->count++];
        *m->last =
            (struct node_alias){.name = parts.name, .targets = m->out->targets + m->target_count};
    } else if (m->last == NULL) {
        return wrong(m, "want the alias before its first model, such as %.*s=%.*s", SLICE("gpt-4o"),
                     parts.side);
    }
    int err = side_add(m, &parts);
    for (unsigned i = 0; i < parts.fallback_count && err == ERR_OK; i++)
        err = target_add(m, parts.fallbacks[i], 0);
    return err;
}

static int by_name(const void *a, const void *b)
{
    const struct node_alias *x = a, *y = b;
    return compare(x->name, y->name);
}

/* Gives each side of an alias the weight 1, if the alias was written without weights. Sets
 * out->splits. */
static void weights_fill(struct node_aliases *out)
{
    for (unsigned i = 0; i < out->count; i++) {
        struct node_alias *a = &out->at[i];
        out->splits |= a->sides > 1;
        for (unsigned k = 0; k < a->sides && a->weight == 0; k++)
            a->targets[k].weight = 1;
        if (a->weight == 0)
            a->weight = a->sides;
    }
}

/* Refuses an alias as a target. Chains would sooner or later become circles, and make the models
 * permitted to a client's key unclear. */
static int check_targets(const struct making *m, unsigned i, struct slice text)
{
    struct parts parts;
    CHECK(parts_read(text, &parts) == NULL);
    m->fault->entry = i;
    for (unsigned k = 0; k <= parts.fallback_count; k++) {
        struct slice model = k == 0 ? parts.side : parts.fallbacks[k - 1];
        if (node_alias_find(m->out, model) != NULL)
            return wrong(m,
                         "%.*s is an alias itself, want the name that an engine lists "
                         "(GET /v1/models) in place of %.*s",
                         model, model);
    }
    return ERR_OK;
}

static int check_all(const struct making *m, const struct node_strings *entries)
{
    for (unsigned i = 1; i < m->out->count; i++) {
        if (!slice_equal(m->out->at[i - 1].name, m->out->at[i].name))
            continue;
        m->fault->entry = 0;
        struct parts parts;
        for (unsigned k = 0; k < entries->count; k++) {
            CHECK(parts_read(slice_of_cstr(entries->at[k]), &parts) == NULL);
            if (parts.name.at != NULL && slice_equal(parts.name, m->out->at[i].name))
                m->fault->entry = k; /* the last entry with this name */
        }
        return wrong(m, "%.*s is there twice, want all models of %.*s in one entry",
                     m->out->at[i].name, m->out->at[i].name);
    }
    int err = ERR_OK;
    for (unsigned i = 0; i < entries->count && err == ERR_OK; i++)
        err = check_targets(m, i, slice_of_cstr(entries->at[i]));
    return err;
}

static int room_make(struct node_aliases *out, const struct node_strings *entries)
{
    size_t bytes = 0, targets = 0;
    for (unsigned i = 0; i < entries->count; i++) {
        struct slice entry = slice_of_cstr(entries->at[i]);
        bytes += entry.len;
        targets++;
        for (size_t k = 0; k < entry.len; k++)
            targets += entry.at[k] == '>';
    }
    out->at = calloc(entries->count, sizeof *out->at);
    out->targets = calloc(targets, sizeof *out->targets);
    out->text = malloc(bytes);
    return out->at != NULL && out->targets != NULL && out->text != NULL ? ERR_OK : ERR_NOMEM;
}

int node_aliases_make(struct node_aliases *out, const struct node_strings *entries,
                      struct node_alias_fault *fault)
{
    struct making m = {.out = out, .fault = fault};
    *out = (struct node_aliases){0};
    fault->entry = 0;
    if (entries->count == 0)
        return ERR_OK;
    int err = room_make(out, entries);
    size_t used = 0;
    for (unsigned i = 0; i < entries->count && err == ERR_OK; i++) {
        struct slice text = slice_of_cstr(entries->at[i]);
        memcpy(out->text + used, text.at, text.len);
        fault->entry = i;
        err = entry_add(&m, slice_of(out->text + used, text.len));
        used += text.len;
    }
    if (err == ERR_OK) {
        qsort(out->at, out->count, sizeof *out->at, by_name);
        weights_fill(out);
        err = check_all(&m, entries);
    }
    if (err != ERR_OK)
        node_aliases_free(out);
    return err;
}

void node_aliases_free(struct node_aliases *a)
{
    free(a->at);
    free(a->targets);
    free(a->text);
    *a = (struct node_aliases){0};
}

void node_aliases_count_on(struct node_aliases *fresh, const struct node_aliases *before)
{
    for (unsigned i = 0; i < fresh->count; i++) {
        const struct node_alias *a = &fresh->at[i], *old = node_alias_find(before, a->name);
        for (unsigned k = 0; k < a->count && old != NULL; k++) {
            int at = node_alias_target(old, a->targets[k].model);
            if (at < 0)
                continue;
            a->targets[k].requests = old->targets[at].requests;
            a->targets[k].fallbacks = old->targets[at].fallbacks;
        }
    }
}

unsigned node_alias_order(const struct node_alias *a, uint64_t hash,
                          uint8_t out[NODE_ALIAS_TARGETS_MAX])
{
    uint32_t place = (uint32_t)(hash % a->weight);
    unsigned first = 0, count = 0;
    while (place >= a->targets[first].weight)
        place -= a->targets[first++].weight;
    out[count++] = (uint8_t)first;
    for (unsigned i = 0; i < a->count; i++) {
        if (i != first)
            out[count++] = (uint8_t)i;
    }
    return count;
}
