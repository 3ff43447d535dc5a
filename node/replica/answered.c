#include "node/replica/answered.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/model.h"

enum { SLOTS = NODE_ANSWERED_ROWS_MAX * 2 };

struct sums {
    uint64_t prompt_tokens, cached_tokens;
};

struct row {
    struct sums sums;
    uint16_t replica;
    uint16_t name_len;
    char name[NODE_MODEL_NAME_MAX];
};

struct node_answered {
    struct hash_secret secret;
    unsigned count;        /* of rows */
    uint16_t slots[SLOTS]; /* row + 1, open addressing, linear probing; 0 = empty */
    struct sums nameless[NODE_REPLICAS_MAX];
    struct row rows[NODE_ANSWERED_ROWS_MAX]; /* pages that no row needs are never touched */
};

int node_answered_create(struct node_answered **out, const struct hash_secret *secret)
{
    struct node_answered *a = calloc(1, sizeof *a);
    if (!a)
        return ERR_NOMEM;
    a->secret = *secret;
    *out = a;
    return ERR_OK;
}

void node_answered_destroy(struct node_answered *a)
{
    free(a);
}

static bool is_row_of(const struct row *row, unsigned replica, struct slice model)
{
    return row->replica == replica && slice_equal(slice_of(row->name, row->name_len), model);
}

static struct sums *find_or_make(struct node_answered *a, unsigned replica, struct slice model)
{
    if (model.len == 0 || model.len > NODE_MODEL_NAME_MAX)
        return &a->nameless[replica];
    uint64_t hash = hash_mix(hash64(&a->secret, model.at, model.len) + replica);
    unsigned at = (unsigned)(hash % SLOTS);
    while (a->slots[at] != 0 && !is_row_of(&a->rows[a->slots[at] - 1], replica, model))
        at = (at + 1) % SLOTS;
    if (a->slots[at] != 0)
        return &a->rows[a->slots[at] - 1].sums;
    if (a->count == NODE_ANSWERED_ROWS_MAX)
        return &a->nameless[replica];
    struct row *row = &a->rows[a->count++];
    a->slots[at] = (uint16_t)a->count;
    row->replica = (uint16_t)replica;
    row->name_len = (uint16_t)model.len;
    memcpy(row->name, model.at, model.len);
    return &row->sums;
}

void node_answered_add(struct node_answered *a, unsigned replica, struct slice model,
                       uint64_t prompt_tokens, uint64_t cached_tokens)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    struct sums *sums = find_or_make(a, replica, model);
    sums->prompt_tokens += prompt_tokens;
    sums->cached_tokens += cached_tokens < prompt_tokens ? cached_tokens : prompt_tokens;
}

static unsigned slot_of(const struct node_answered *a, const struct row *row)
{
    struct slice model = slice_of(row->name, row->name_len);
    uint64_t hash = hash_mix(hash64(&a->secret, model.at, model.len) + row->replica);
    unsigned at = (unsigned)(hash % SLOTS);
    while (a->slots[at] != 0)
        at = (at + 1) % SLOTS;
    return at;
}

void node_answered_forget(struct node_answered *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    a->nameless[replica] = (struct sums){0};
    unsigned kept = 0;
    for (unsigned i = 0; i < a->count; i++)
        if (a->rows[i].replica != replica)
            a->rows[kept++] = a->rows[i];
    if (kept == a->count)
        return;
    a->count = kept;
    memset(a->slots, 0, sizeof a->slots);
    for (unsigned i = 0; i < kept; i++)
        a->slots[slot_of(a, &a->rows[i])] = (uint16_t)(i + 1);
}

bool node_answered_next(const struct node_answered *a, unsigned *at, struct node_answered_row *out)
{
    while (*at < a->count + NODE_REPLICAS_MAX) {
        unsigned i = (*at)++;
        bool named = i < a->count;
        const struct sums *sums = named ? &a->rows[i].sums : &a->nameless[i - a->count];
        if (sums->prompt_tokens == 0)
            continue;
        *out = (struct node_answered_row){
            .replica = named ? a->rows[i].replica : i - a->count,
            .model = named ? slice_of(a->rows[i].name, a->rows[i].name_len) : SLICE(""),
            .prompt_tokens = sums->prompt_tokens,
            .cached_tokens = sums->cached_tokens,
        };
        return true;
    }
    return false;
}
