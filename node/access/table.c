#include "node/access/table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

/* --- keys ------------------------------------------------------------------------------------ */

void access_key_hold(struct access_key *k)
{
    k->holders++;
}

void access_key_drop(struct access_key *k)
{
    CHECK(k->holders > 0);
    if (--k->holders > 0)
        return;
    access_use_drop(k->use);
    free(k->models);
    free(k->models_text);
    free(k);
}

static int copy_models(struct access_key *k, struct slice models)
{
    if (models.len == 0)
        return 0;
    k->models = calloc(ACCESS_MODELS_MAX, sizeof *k->models);
    k->models_text = malloc(models.len);
    if (k->models == NULL || k->models_text == NULL)
        return ERR_NOMEM;
    memcpy(k->models_text, models.at, models.len);
    struct slice rest = slice_of(k->models_text, models.len);
    while (rest.len > 0) {
        CHECK(k->model_count < ACCESS_MODELS_MAX);
        k->models[k->model_count++] = slice_cut(&rest, ',');
    }
    return 0;
}

static struct access_key *key_new(const struct access_line *line)
{
    struct access_key *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->use = access_use_new(line->name);
    if (k->use == NULL || copy_models(k, line->models) != 0) {
        if (k->use != NULL)
            access_use_drop(k->use);
        free(k->models);
        free(k->models_text);
        free(k);
        return NULL;
    }
    k->holders = 1;
    k->limits = line->limits;
    k->control = line->control;
    k->use->limited =
        line->limits.requests > 0 || line->limits.tokens > 0 || line->limits.in_flight > 0;
    return k;
}

bool access_key_allows(const struct access_key *k, struct slice model)
{
    for (unsigned i = 0; i < k->model_count; i++) {
        struct slice allowed = k->models[i];
        bool all = slice_ends_with(allowed, SLICE("*"));
        if (all ? slice_starts_with(model, slice_of(allowed.at, allowed.len - 1))
                : slice_equal(model, allowed))
            return true;
    }
    return k->models == NULL;
}

/* --- looking up ------------------------------------------------------------------------------ */

static int find_digest(const struct access_table *t, const struct access_digest *d)
{
    for (uint32_t at = (uint32_t)access_digest_number(d) & t->mask; t->by_digest[at] != 0;
         at = (at + 1) & t->mask) {
        uint32_t i = t->by_digest[at] - 1;
        if (access_digest_equal(&t->digests[i], d))
            return (int)i;
    }
    return ERR_NOT_FOUND;
}

struct access_key *access_table_find(const struct access_table *t, struct slice secret)
{
    if (secret.len == 0 || secret.len > ACCESS_KEY_BYTES_MAX)
        return NULL;
    struct access_digest d = access_digest_of(secret);
    int i = find_digest(t, &d);
    return i < 0 ? NULL : t->keys[t->owners[i]];
}

static int find_id(const struct access_table *t, uint64_t id)
{
    for (uint32_t at = (uint32_t)id & t->mask; t->by_name[at] != 0; at = (at + 1) & t->mask) {
        uint32_t i = t->by_name[at] - 1;
        if (t->keys[i]->use->id == id)
            return (int)i;
    }
    return ERR_NOT_FOUND;
}

struct access_key *access_table_of_id(const struct access_table *t, uint64_t id)
{
    int i = find_id(t, id);
    return i < 0 ? NULL : t->keys[i];
}

struct access_key *access_table_named(const struct access_table *t, struct slice name)
{
    struct access_key *k = access_table_of_id(t, access_use_id(name));
    return k != NULL && slice_equal(slice_of_cstr(k->use->name), name) ? k : NULL;
}

static void put(uint32_t *slots, uint32_t mask, uint64_t hash, uint32_t index)
{
    uint32_t at = (uint32_t)hash & mask;
    while (slots[at] != 0)
        at = (at + 1) & mask;
    slots[at] = index + 1;
}

/* --- reading --------------------------------------------------------------------------------- */

static int add_key(struct access_table *t, const struct access_line *line)
{
    struct access_key *k = key_new(line);
    if (k == NULL)
        return ERR_NOMEM;
    put(t->by_name, t->mask, k->use->id, t->keys_count);
    t->keys[t->keys_count++] = k;
    return 0;
}

static bool has_options(const struct access_line *line)
{
    return line->models.len > 0 || line->limits.requests > 0 || line->limits.tokens > 0 ||
           line->limits.in_flight > 0 || line->control;
}

/* Adds the key of a line. Returns 0, or an error with the reason in `*wrong`. */
static int add(struct access_table *t, const struct access_line *line, const char **wrong)
{
    if (t->count == ACCESS_KEYS_MAX) {
        *wrong = "there are more than 65536 keys";
        return ERR_LIMIT;
    }
    if (find_digest(t, &line->digest) >= 0) {
        *wrong = "the same hash is on a line above: give each name its own keys";
        return ERR_SYNTAX;
    }
    uint64_t id = access_use_id(line->name);
    int owner = find_id(t, id);
    if (owner >= 0 && !slice_equal(slice_of_cstr(t->keys[owner]->use->name), line->name)) {
        *wrong = "this name and one above have the same hash: choose another name";
        return ERR_SYNTAX;
    }
    if (owner >= 0 && has_options(line)) {
        *wrong = "this name is on a line above: write its options only there";
        return ERR_SYNTAX;
    }
    int err = owner < 0 ? add_key(t, line) : 0;
    *wrong = "out of memory";
    if (err != 0)
        return err;
    t->digests[t->count] = line->digest;
    t->owners[t->count] = owner < 0 ? t->keys_count - 1 : (uint32_t)owner;
    put(t->by_digest, t->mask, access_digest_number(&line->digest), t->count);
    t->count++;
    return 0;
}

/* Allocates room for as many keys as there are lines. */
static struct access_table *table_new(struct slice text)
{
    uint32_t lines = 1, slots = 16;
    for (size_t i = 0; i < text.len && lines <= ACCESS_KEYS_MAX; i++)
        lines += text.at[i] == '\n';
    while (slots < 2 * lines)
        slots *= 2;
    struct access_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->mask = slots - 1;
    t->keys = calloc(lines, sizeof(struct access_key *));
    t->digests = calloc(lines, sizeof *t->digests);
    t->owners = calloc(lines, sizeof *t->owners);
    t->by_digest = calloc(slots, sizeof *t->by_digest);
    t->by_name = calloc(slots, sizeof *t->by_name);
    if (t->keys != NULL && t->digests != NULL && t->owners != NULL && t->by_digest != NULL &&
        t->by_name != NULL)
        return t;
    access_table_destroy(t);
    return NULL;
}

int access_table_create(struct access_table **out, struct slice text, char *message)
{
    struct access_table *t = table_new(text);
    int err = t == NULL ? ERR_NOMEM : 0;
    const char *wrong = "out of memory";
    unsigned number = 0;
    while (err == 0 && text.len > 0) {
        struct access_line line;
        number++;
        err = access_line_parse(slice_cut(&text, '\n'), &line, &wrong);
        if (err > 0)
            err = add(t, &line, &wrong);
    }
    if (err == 0 && t->count == 0) {
        err = ERR_SYNTAX;
        (void)snprintf(message, ACCESS_MESSAGE_BYTES,
                       "it has no key in it; `gvctl key new NAME` makes one");
    } else if (err != 0) {
        (void)snprintf(message, ACCESS_MESSAGE_BYTES, "line %u: %s", number, wrong);
    }
    if (err != 0) {
        access_table_destroy(t);
        return err;
    }
    *out = t;
    return 0;
}

void access_table_destroy(struct access_table *t)
{
    if (t == NULL)
        return;
    for (unsigned i = 0; i < t->keys_count; i++)
        access_key_drop(t->keys[i]);
    free(t->keys);
    free(t->digests);
    free(t->owners);
    free(t->by_digest);
    free(t->by_name);
    free(t);
}
