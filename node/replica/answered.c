#include "node/replica/answered.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/model.h"

/* Each replica has an extra row without a name, which always has a place. */
enum { ROWS = NODE_ANSWERED_ROWS_MAX + NODE_REPLICAS_MAX, SLOTS = ROWS * 2 };

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
    unsigned count, named; /* number of rows, and of rows with a name */
    uint16_t slots[SLOTS]; /* row + 1, open addressing, linear probing; 0 = empty */
    struct row rows[ROWS]; /* pages without rows are never touched */
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

static struct slice row_model(const struct row *row)
{
    return slice_of(row->name, row->name_len);
}

static bool is_row_of(const struct row *row, unsigned replica, struct slice model)
{
    return row->replica == replica && slice_equal(row_model(row), model);
}

/* The slot of the row for this replica and model; if there is no such row, the empty slot for
 * it. */
static unsigned slot_of(const struct node_answered *a, unsigned replica, struct slice model)
{
    uint64_t hash = hash_mix(hash64(&a->secret, model.at, model.len) + replica);
    unsigned at = (unsigned)(hash % SLOTS);
    while (a->slots[at] != 0 && !is_row_of(&a->rows[a->slots[at] - 1], replica, model))
        at = (at + 1) % SLOTS;
    return at;
}

static struct sums *find_or_make(struct node_answered *a, unsigned replica, struct slice model)
{
    unsigned at = slot_of(a, replica, model);
    if (a->slots[at] != 0)
        return &a->rows[a->slots[at] - 1].sums;
    if (model.len > 0 && (a->named == NODE_ANSWERED_ROWS_MAX || model.len > NODE_MODEL_NAME_MAX))
        return find_or_make(a, replica, SLICE(""));
    struct row *row = &a->rows[a->count++];
    a->slots[at] = (uint16_t)a->count;
    a->named += model.len > 0;
    *row = (struct row){.replica = (uint16_t)replica, .name_len = (uint16_t)model.len};
    if (model.len > 0)
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

void node_answered_forget(struct node_answered *a, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    unsigned count = a->count;
    a->count = a->named = 0;
    for (unsigned i = 0; i < count; i++) {
        if (a->rows[i].replica == replica)
            continue;
        a->named += a->rows[i].name_len > 0;
        a->rows[a->count++] = a->rows[i];
    }
    memset(a->slots, 0, sizeof a->slots);
    for (unsigned i = 0; i < a->count; i++)
        a->slots[slot_of(a, a->rows[i].replica, row_model(&a->rows[i]))] = (uint16_t)(i + 1);
}

bool node_answered_next(const struct node_answered *a, unsigned *at, struct node_answered_row *out)
{
    if (*at == a->count)
        return false;
    const struct row *row = &a->rows[(*at)++];
    *out = (struct node_answered_row){.replica = row->replica,
                                      .model = row_model(row),
                                      .prompt_tokens = row->sums.prompt_tokens,
                                      .cached_tokens = row->sums.cached_tokens};
    return true;
}
