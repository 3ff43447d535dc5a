#include "node/replica/model.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/number.h"
#include "node/replica/constants.h"

enum {
    SLOTS = NODE_MODELS_MAX * 2,
    ROW_NONE = 0, /* the row of all names without a row; no replica serves it */
    DENIAL_WAYS = 8,
};

/* Validity of a denial by a replica that lists models. */
enum denial_state {
    DENIAL_HOLDS,  /* valid until `until_ms`, whatever the replica lists */
    DENIAL_FRESH,  /* valid until the replica lists models again */
    DENIAL_LIFTED, /* ended by a new list; a second denial would hold */
};

struct denial {
    uint64_t key; /* hash of replica and model; 0: none */
    uint64_t until_ms;
    uint16_t replica;
    uint16_t row;  /* the model's row */
    uint8_t state; /* enum denial_state */
    bool held;     /* held against the replica, which lists the model */
};

struct node_models {
    struct hash_secret secret;
    struct node_replica_set told;      /* replicas that listed their models */
    struct node_replica_set on_demand; /* replicas that load unlisted adapters */
    unsigned used;                     /* rows 1 to `used` have a name; later rows never had one */
    uint64_t denied_until_ms;          /* end of the last denial */
    struct denial denials[NODE_MODELS_DENIALS];
    struct node_replica_set holding; /* replicas that may have held denials */
    unsigned hand;                   /* number of the last row that was replaced among those learned
                                      * from clients */
    double bytes_per_token, output_tokens;
    uint16_t slots[SLOTS]; /* row, open addressing, linear probing; 0 = empty */
    struct node_model rows[NODE_MODELS_MAX + 1];
};

void node_model_bytes_believe(struct node_model *row, double bytes_per_token)
{
    node_tokens_init(&row->tokens, bytes_per_token);
    row->bytes_per_token = node_ratio_of(bytes_per_token, RULE(BYTES_PRIOR), RULE(BYTES_TOKENS));
}

void node_model_bytes_add(struct node_model *row, uint64_t bytes,
                          const struct chain_content *content, double tokens,
                          const int64_t media_tokens[CHAIN_MEDIA])
{
    node_tokens_add(&row->tokens, bytes, content, tokens, media_tokens);
    node_ratio_add(&row->bytes_per_token, (double)bytes, tokens);
    row->bytes_samples++;
}

static void row_learn_afresh(const struct node_models *m, struct node_model *row)
{
    node_model_bytes_believe(row, m->bytes_per_token);
    row->output_tokens = node_ratio_of(m->output_tokens, RULE(PRIOR), RULE(OUTPUT_ANSWERS));
}

int node_models_create(struct node_models **out, const struct hash_secret *secret,
                       double bytes_per_token, double output_tokens)
{
    struct node_models *m = calloc(1, sizeof *m);
    if (!m)
        return ERR_NOMEM;
    m->secret = *secret;
    m->bytes_per_token = bytes_per_token;
    m->output_tokens = output_tokens;
    row_learn_afresh(m, &m->rows[ROW_NONE]);
    *out = m;
    return ERR_OK;
}

void node_models_destroy(struct node_models *m)
{
    free(m);
}

static struct slice row_name(const struct node_model *row)
{
    return slice_of(row->name, row->name_len);
}

/* The slot of the row with this name; if there is no such row, the empty slot for it. */
static unsigned slot_of(const struct node_models *m, struct slice name)
{
    unsigned at = (unsigned)(hash64(&m->secret, name.at, name.len) % SLOTS);
    while (m->slots[at] != 0 && !slice_equal(row_name(&m->rows[m->slots[at]]), name))
        at = (at + 1) % SLOTS;
    return at;
}

static unsigned row_find(const struct node_models *m, struct slice name)
{
    if (name.len == 0 || name.len > NODE_MODEL_NAME_MAX)
        return ROW_NONE;
    return m->slots[slot_of(m, name)];
}

/* True if the model is known from clients' requests alone. */
static bool is_learned(const struct node_models *m, const struct node_model *row)
{
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++) {
        if ((row->serving.words[i] & m->told.words[i]) != 0)
            return false;
    }
    return true;
}

/* Number of a row to be replaced: a row that no replica serves, else the next row learned from
 * clients alone, in rotation. ROW_NONE: all rows are listed. */
static unsigned row_spare(struct node_models *m)
{
    for (unsigned i = 1; i <= NODE_MODELS_MAX; i++) {
        if (!node_replica_set_any(&m->rows[i].serving))
            return i;
    }
    for (unsigned i = 0; i < NODE_MODELS_MAX; i++) {
        unsigned at = 1 + (m->hand + i) % NODE_MODELS_MAX;
        if (is_learned(m, &m->rows[at])) {
            m->hand = at;
            return at;
        }
    }
    return ROW_NONE;
}

static void slots_rebuild(struct node_models *m)
{
    memset(m->slots, 0, sizeof m->slots);
    for (unsigned i = 1; i <= m->used; i++)
        m->slots[slot_of(m, row_name(&m->rows[i]))] = (uint16_t)i;
}

static unsigned row_find_or_make(struct node_models *m, struct slice name)
{
    unsigned number = row_find(m, name);
    if (number != ROW_NONE)
        return number;
    bool fresh = m->used < NODE_MODELS_MAX;
    number = fresh ? ++m->used : row_spare(m);
    if (number == ROW_NONE)
        return ROW_NONE;
    struct node_model *row = &m->rows[number];
    memset(row, 0, sizeof *row);
    memcpy(row->name, name.at, name.len);
    row->name_len = (uint16_t)name.len;
    row_learn_afresh(m, row);
    if (fresh)
        m->slots[slot_of(m, name)] = (uint16_t)number;
    else
        slots_rebuild(m);
    return number;
}

struct node_model *node_models_row_made(struct node_models *m, struct slice name)
{
    if (name.len > NODE_MODEL_NAME_MAX)
        return NULL;
    unsigned number = name.len > 0 ? row_find_or_make(m, name) : ROW_NONE;
    return name.len > 0 && number == ROW_NONE ? NULL : &m->rows[number];
}

static void serving_clear(struct node_models *m, unsigned replica)
{
    for (unsigned i = 1; i <= m->used; i++)
        node_replica_set_remove(&m->rows[i].serving, replica);
}

int node_models_set(struct node_models *m, unsigned replica, const struct slice *ids,
                    unsigned count)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    serving_clear(m, replica);
    node_replica_set_add(&m->told, replica);
    int result = ERR_OK;
    for (unsigned i = 0; i < count; i++) {
        if (node_models_also(m, replica, ids[i]) != ERR_OK)
            result = ERR_FULL;
    }
    return result;
}

void node_models_adapter(struct node_models *m, struct slice name, struct slice parent)
{
    unsigned number = row_find(m, name), base = row_find(m, parent);
    if (number == ROW_NONE)
        return;
    m->rows[number].adapter = true;
    if (base != ROW_NONE)
        m->rows[number].parent = (uint16_t)base;
}

bool node_models_is_adapter(const struct node_models *m, struct slice name)
{
    return m->rows[row_find(m, name)].adapter;
}

void node_models_on_demand(struct node_models *m, unsigned replica, bool loads)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    if (loads)
        node_replica_set_add(&m->on_demand, replica);
    else
        node_replica_set_remove(&m->on_demand, replica);
}

bool node_models_any_on_demand(const struct node_models *m)
{
    return node_replica_set_any(&m->on_demand);
}

int node_models_also(struct node_models *m, unsigned replica, struct slice id)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    if (id.len == 0 || id.len > NODE_MODEL_NAME_MAX)
        return ERR_OK;
    unsigned number = row_find_or_make(m, id);
    if (number == ROW_NONE)
        return ERR_FULL;
    m->rows[number].listed = true;
    node_replica_set_add(&m->rows[number].serving, replica);
    return ERR_OK;
}

static bool lists(const struct node_models *m, unsigned replica, unsigned row)
{
    return node_models_listed(m, replica) && node_replica_set_has(&m->rows[row].serving, replica);
}

void node_models_unlisted_let_go(struct node_models *m, unsigned replica)
{
    if (!node_replica_set_has(&m->holding, replica))
        return;
    for (unsigned i = 0; i < NODE_MODELS_DENIALS; i++) {
        struct denial *d = &m->denials[i];
        if (d->replica == replica)
            d->held &= lists(m, replica, d->row);
    }
    if (node_models_denials(m, replica).held == 0)
        node_replica_set_remove(&m->holding, replica);
}

void node_models_unlist(struct node_models *m, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    node_replica_set_remove(&m->told, replica);
    node_models_unlisted_let_go(m, replica);
}

void node_models_unknow(struct node_models *m, unsigned replica)
{
    node_models_unlist(m, replica);
    serving_clear(m, replica);
}

void node_models_forget(struct node_models *m, unsigned replica)
{
    node_models_unknow(m, replica);
    node_replica_set_remove(&m->on_demand, replica);
    for (unsigned i = 0; i < NODE_MODELS_DENIALS; i++)
        if (m->denials[i].replica == replica)
            m->denials[i] = (struct denial){0};
}

bool node_models_listed(const struct node_models *m, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return node_replica_set_has(&m->told, replica);
}

/* --- what clients' requests teach ------------------------------------------------------------ */

/* Key of a replica and a model; never 0. */
static uint64_t denial_key(const struct node_models *m, unsigned replica, struct slice name)
{
    return hash_mix(hash64(&m->secret, name.at, name.len) + replica) | 1;
}

/* The place of the denial with this key; if there is none, the place of the denial to be
 * replaced. */
static struct denial *place_of(const struct node_models *m, uint64_t key)
{
    size_t first = (key >> 32) % (NODE_MODELS_DENIALS / DENIAL_WAYS) * DENIAL_WAYS;
    struct denial *set = (struct denial *)&m->denials[first];
    struct denial *place = set;
    for (unsigned i = 0; i < DENIAL_WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
        if (set[i].until_ms < place->until_ms)
            place = &set[i];
    }
    return place;
}

/* The replica's denial of the model; NULL: none. */
static struct denial *denial_of(const struct node_models *m, unsigned replica, struct slice name)
{
    uint64_t key = denial_key(m, replica, name);
    struct denial *d = place_of(m, key);
    return d->key == key ? d : NULL;
}

void node_models_learn(struct node_models *m, unsigned replica, struct slice name, bool by_list)
{
    unsigned number = row_find(m, name);
    if (!node_models_listed(m, replica) && name.len > 0 && name.len <= NODE_MODEL_NAME_MAX) {
        struct denial *d = denial_of(m, replica, name);
        if (d != NULL)
            *d = (struct denial){0};
        number = row_find_or_make(m, name);
        if (number != ROW_NONE) /* table full of listed models: learned again with the next
                                 * answer */
            node_replica_set_add(&m->rows[number].serving, replica);
    }
    if (number != ROW_NONE)
        m->rows[number].listed |= by_list;
}

bool node_models_deny(struct node_models *m, unsigned replica, struct slice name, uint64_t now_ms)
{
    bool listed = node_models_listed(m, replica);
    if (name.len == 0)
        return false;
    unsigned row = row_find(m, name);
    if (!listed)
        node_replica_set_remove(&m->rows[row].serving, replica);
    uint64_t key = denial_key(m, replica, name);
    struct denial *d = place_of(m, key);
    m->denied_until_ms = now_ms + NODE_MODELS_DENIED_MS;
    bool again = d->key == key && d->state != DENIAL_FRESH; /* a second denial, when a new list or
                                                             * the time had ended the first */
    bool was_held = d->key == key && d->held, held = was_held || (again && lists(m, replica, row));
    /* If an engine alternates between listing and denying a model, the next list lifts no
     * denial. */
    bool by_turns = again && d->until_ms > now_ms;
    bool may_lift = listed && !by_turns && !node_replica_set_has(&m->on_demand, replica);
    if (held)
        node_replica_set_add(&m->holding, replica);
    *d = (struct denial){.key = key,
                         .until_ms = m->denied_until_ms,
                         .replica = (uint16_t)replica,
                         .row = (uint16_t)row,
                         .held = held,
                         .state = may_lift ? DENIAL_FRESH : DENIAL_HOLDS};
    return held && !was_held;
}

bool node_models_accepted(struct node_models *m, unsigned replica, struct slice name,
                          uint64_t sent_ms, uint64_t now_ms)
{
    struct denial *d = denial_of(m, replica, name);
    if (d == NULL || sent_ms + NODE_MODELS_DENIED_MS < d->until_ms)
        return false;
    bool over = d->until_ms <= now_ms, held = d->held;
    if (!over && d->state != DENIAL_LIFTED)
        return false;
    d->held = false;
    if (over)
        *d = (struct denial){0};
    return held;
}

bool node_models_denied_any(const struct node_models *m)
{
    return m->denied_until_ms > 0;
}

struct node_denials node_models_denials(const struct node_models *m, unsigned replica)
{
    struct node_denials out = {.held = 0};
    if (!node_replica_set_has(&m->holding, replica))
        return out;
    for (unsigned i = 0; i < NODE_MODELS_DENIALS; i++) {
        const struct denial *d = &m->denials[i];
        if (d->replica != replica || !d->held)
            continue;
        out.held++;
        if (d->state != DENIAL_LIFTED && d->until_ms > out.until_ms)
            out.until_ms = d->until_ms;
    }
    return out;
}

void node_models_doubt(struct node_models *m, unsigned replica, struct slice name)
{
    if (!node_models_listed(m, replica))
        node_replica_set_remove(&m->rows[row_find(m, name)].serving, replica);
}

void node_models_listed_anew(struct node_models *m, unsigned replica, uint64_t asked_ms)
{
    if (asked_ms >= m->denied_until_ms)
        return;
    for (unsigned i = 0; i < NODE_MODELS_DENIALS; i++) {
        struct denial *d = &m->denials[i];
        bool before = d->until_ms <= asked_ms + NODE_MODELS_DENIED_MS;
        if (d->key != 0 && d->replica == replica && d->state == DENIAL_FRESH && before)
            d->state = DENIAL_LIFTED;
    }
}

bool node_models_denied(const struct node_models *m, unsigned replica, struct slice name,
                        uint64_t now_ms)
{
    if (now_ms >= m->denied_until_ms)
        return false;
    const struct denial *d = denial_of(m, replica, name);
    return d != NULL && d->until_ms > now_ms && d->state != DENIAL_LIFTED;
}

/* --- served models -------------------------------------------------------------------------- */

bool node_models_next(const struct node_models *m, unsigned replica, unsigned *at,
                      struct slice *name)
{
    while (++*at <= m->used) {
        if (!node_replica_set_has(&m->rows[*at].serving, replica))
            continue;
        *name = row_name(&m->rows[*at]);
        return true;
    }
    return false;
}

const struct node_replica_set *node_models_surely(const struct node_models *m, struct slice name)
{
    return &m->rows[row_find(m, name)].serving;
}

void node_models_serving(const struct node_models *m, struct slice name,
                         struct node_replica_set *out)
{
    const struct node_model *row = &m->rows[row_find(m, name)];
    bool known = !row->adapter && node_replica_set_any(&row->serving);
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++) {
        uint64_t loads = known ? 0 : m->on_demand.words[i];
        if (row->parent != ROW_NONE)
            loads &= m->rows[row->parent].serving.words[i];
        out->words[i] =
            name.len == 0 ? UINT64_MAX : row->serving.words[i] | ~m->told.words[i] | loads;
    }
}

bool node_models_known(const struct node_models *m, struct slice name)
{
    return node_replica_set_any(node_models_surely(m, name));
}

struct slice node_models_base(const struct node_models *m, struct slice name)
{
    struct slice rest = name, base = slice_cut(&rest, ':');
    bool has_part = base.len < name.len;
    return has_part && !node_models_known(m, name) && node_models_known(m, base) ? base : SLICE("");
}

struct node_model *node_models_row(struct node_models *m, struct slice name)
{
    unsigned number = row_find(m, name);
    if (number == ROW_NONE)
        number = row_find(m, node_models_base(m, name));
    return &m->rows[number];
}

unsigned node_models_row_number(const struct node_models *m, const struct node_model *row)
{
    return (unsigned)(row - m->rows);
}

struct node_model *node_models_row_at(struct node_models *m, unsigned number)
{
    CHECK(number <= NODE_MODELS_MAX);
    return &m->rows[number];
}

unsigned node_models_last(const struct node_models *m)
{
    return m->used;
}

struct node_models_range node_models_range(const struct node_models *m)
{
    struct node_models_range range = {INFINITY, 0, INFINITY, 0, INFINITY, 0};
    bool any = false;
    for (unsigned i = m->used + 1; i-- > 0;) {
        const struct node_model *row = &m->rows[i];
        bool counts = i == ROW_NONE ? !any : node_replica_set_any(&row->serving);
        if (!counts)
            continue;
        any = true;
        double bytes = node_ratio_value(&row->bytes_per_token);
        double output = node_ratio_value(&row->output_tokens);
        range.bytes_per_token_min = number_min(range.bytes_per_token_min, bytes);
        range.bytes_per_token_max = number_max(range.bytes_per_token_max, bytes);
        double image = node_tokens_each(&row->tokens, NODE_KIND_IMAGE);
        range.image_tokens_min = number_min(range.image_tokens_min, image);
        range.image_tokens_max = number_max(range.image_tokens_max, image);
        range.output_tokens_min = number_min(range.output_tokens_min, output);
        range.output_tokens_max = number_max(range.output_tokens_max, output);
    }
    return range;
}

void node_models_check(const struct node_models *m)
{
    CHECK(!node_replica_set_any(&m->rows[ROW_NONE].serving));
    for (unsigned i = 1; i <= m->used; i++)
        CHECK(row_find(m, row_name(&m->rows[i])) == i);
}
