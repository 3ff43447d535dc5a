#include "node/access/access_internal.h"

#include <stdlib.h>

#include "base/check.h"

int access_create(struct access **out)
{
    struct access *a = calloc(1, sizeof *a);
    if (a == NULL)
        return ERR_NOMEM;
    *out = a;
    return 0;
}

static void forget_rows(struct access *a)
{
    for (unsigned i = 0; a->table != NULL && i < a->table->keys_count; i++)
        access_use_forget(a->table->keys[i]->use, UINT64_MAX, &a->rows);
}

void access_destroy(struct access *a)
{
    if (a == NULL)
        return;
    forget_rows(a);
    CHECK(a->rows == 0);
    access_table_destroy(a->table);
    free(a);
}

void access_check(const struct access *a)
{
    unsigned keys = a->table != NULL ? a->table->keys_count : 0;
    CHECK(a->cursor <= keys);
    for (unsigned i = 0; i < keys; i++) {
        const struct access_key *k = a->table->keys[i];
        CHECK(k->holders > 0 && k->use->holders > 0);
        CHECK(!k->use->news || a->news);
        CHECK(access_table_of_id(a->table, k->use->id) == k);
    }
}

/* The new key takes over the use of the old key with the same name. */
static void inherit(struct access_key *k, const struct access_key *old)
{
    struct access_use *fresh = k->use;
    k->use = old->use;
    k->use->holders++;
    k->use->limited = fresh->limited;
    access_use_drop(fresh);
}

void access_take(struct access *a, struct access_table *table)
{
    struct access_table *old = a->table;
    for (unsigned i = 0; old != NULL && i < table->keys_count; i++) {
        struct access_key *k = table->keys[i];
        const struct access_key *before = access_table_of_id(old, k->use->id);
        if (before != NULL && strcmp(before->use->name, k->use->name) == 0)
            inherit(k, before);
    }
    for (unsigned i = 0; old != NULL && i < old->keys_count; i++) {
        struct access_use *u = old->keys[i]->use;
        if (access_table_of_id(table, u->id) != NULL)
            continue;
        access_use_forget(u, UINT64_MAX, &a->rows);
        a->shown -= u->shown;
        u->shown = false;
    }
    a->table = table;
    a->refused = false;
    a->cursor = 0;
    a->again_ms = 0; /* publish all active keys: a name may have a new limit */
    access_table_destroy(old);
}

void access_refused(struct access *a, bool refused)
{
    a->refused = refused;
}

struct access_key *access_find(const struct access *a, struct slice secret)
{
    return a->table == NULL ? NULL : access_table_find(a->table, secret);
}

/* --- a request ------------------------------------------------------------------------------- */

static void touch(struct access *a, struct access_use *u)
{
    u->news = u->news || u->limited;
    a->news = a->news || u->limited;
}

static void show(struct access *a, struct access_use *u)
{
    if (!u->shown && a->shown < ACCESS_SHOWN_MAX) {
        u->shown = true;
        a->shown++;
    }
}

enum access_verdict access_begin(struct access *a, struct access_key *k, uint64_t now_ms,
                                 unsigned *wait_s)
{
    struct access_use *u = k->use;
    uint64_t cluster_ms = access_cluster_ms(a, now_ms);
    show(a, u);
    enum access_verdict v = access_use_judge(u, &k->limits, cluster_ms, wait_s);
    u->refused[v] += v != ACCESS_GOOD;
    if (v == ACCESS_GOOD) {
        access_use_begin(u, cluster_ms);
        touch(a, u);
    }
    return v;
}

void access_note_refusal(struct access *a, struct access_key *k, enum access_verdict v)
{
    show(a, k->use);
    k->use->refused[v]++;
}

void access_tokens(struct access *a, struct access_key *k, const struct access_tokens *tokens,
                   uint64_t now_ms)
{
    struct access_use *u = k->use;
    u->prompt_tokens += tokens->prompt;
    u->cached_tokens += tokens->cached;
    u->completion_tokens += tokens->completion;
    access_use_tokens(u, tokens->prompt + tokens->completion, access_cluster_ms(a, now_ms));
    touch(a, u);
}

void access_end(struct access *a, struct access_key *k)
{
    access_use_end(k->use);
    touch(a, k->use);
}
