#include "node/replica/model.h"

#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/number.h"
#include "node/replica/constants.h"

enum {
    SLOTS = NODE_MODELS_MAX * 2,
    ROW_COMMON = NODE_MODELS_MAX, /* learns for names without a row */
    ROW_NONE = 0xffff,
    DENIAL_WAYS = 8,
};

/* What a denial of a replica that lists its models is worth. */
enum denial_state {
    DENIAL_HOLDS,  /* until its time is over, whatever the replica lists */
    DENIAL_FRESH,  /* until the replica lists its models again */
    DENIAL_LIFTED, /* it did; another one holds */
};

struct denial {
    uint64_t key; /* of replica and model; 0: none */
    uint64_t until_ms : 47;
    uint64_t replica : 13;
    uint64_t held : 1;  /* against the replica, which lists the model */
    uint64_t state : 3; /* enum denial_state */
};

_Static_assert(NODE_REPLICAS_MAX <= 1 << 13, "a denial has the number of the replica");

struct node_models {
    struct hash_secret secret;
    struct node_replica_set told;      /* replicas that listed their models */
    struct node_replica_set on_demand; /* replicas that load adapters that they have not listed */
    unsigned used;                     /* rows beyond were never taken */
    uint64_t denied_until_ms;          /* the last of all denials is over then */
    struct denial denials[NODE_MODELS_DENIALS];
    uint16_t held[NODE_REPLICAS_MAX]; /* of each replica: denials that are held against it */
    unsigned hand;                    /* the next row that was only learned to give way */
    double bytes_per_token, output_tokens;
    uint16_t slots[SLOTS]; /* row + 1, open addressing, linear probing; 0 = empty */
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
    row_learn_afresh(m, &m->rows[ROW_COMMON]);
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

/* The slot that holds the name, or the empty one where it would go. */
static unsigned slot_of(const struct node_models *m, struct slice name)
{
    unsigned at = (unsigned)(hash64(&m->secret, name.at, name.len) % SLOTS);
    while (m->slots[at] != 0 && !slice_equal(row_name(&m->rows[m->slots[at] - 1]), name))
        at = (at + 1) % SLOTS;
    return at;
}

static unsigned row_find(const struct node_models *m, struct slice name)
{
    if (name.len == 0 || name.len > NODE_MODEL_NAME_MAX)
        return ROW_NONE;
    uint16_t slot = m->slots[slot_of(m, name)];
    return slot == 0 ? ROW_NONE : slot - 1u;
}

static bool set_is_empty(const struct node_replica_set *s)
{
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++) {
        if (s->words[i] != 0)
            return false;
    }
    return true;
}

static void slots_rebuild(struct node_models *m)
{
    memset(m->slots, 0, sizeof m->slots);
    for (unsigned i = 0; i < m->used; i++) {
        if (m->rows[i].name_len > 0)
            m->slots[slot_of(m, row_name(&m->rows[i]))] = (uint16_t)(i + 1);
    }
}

/* Known from clients' requests alone. */
static bool is_learned(const struct node_models *m, const struct node_model *row)
{
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++) {
        if ((row->serving.words[i] & m->told.words[i]) != 0)
            return false;
    }
    return true;
}

/* An unused row, else one that nobody serves, else one that was only learned, each in its turn. */
static unsigned row_take(struct node_models *m)
{
    unsigned spare = ROW_NONE;
    if (m->used < NODE_MODELS_MAX)
        return m->used++;
    for (unsigned i = 0; i < NODE_MODELS_MAX; i++) {
        if (m->rows[i].name_len == 0)
            return i;
        if (spare == ROW_NONE && set_is_empty(&m->rows[i].serving))
            spare = i;
    }
    for (unsigned i = 0; i < NODE_MODELS_MAX && spare == ROW_NONE; i++) {
        unsigned at = (m->hand + i) % NODE_MODELS_MAX;
        if (is_learned(m, &m->rows[at])) {
            spare = at;
            m->hand = at + 1;
        }
    }
    if (spare != ROW_NONE) {
        m->rows[spare].name_len = 0;
        slots_rebuild(m);
    }
    return spare;
}

static unsigned row_add(struct node_models *m, struct slice name)
{
    unsigned number = row_take(m);
    if (number == ROW_NONE)
        return ROW_NONE;
    struct node_model *row = &m->rows[number];
    memset(row, 0, sizeof *row);
    memcpy(row->name, name.at, name.len);
    row->name_len = (uint16_t)name.len;
    row_learn_afresh(m, row);
    m->slots[slot_of(m, name)] = (uint16_t)(number + 1);
    return number;
}

int node_models_set(struct node_models *m, unsigned replica, const struct slice *ids,
                    unsigned count)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    for (unsigned i = 0; i < m->used; i++)
        node_replica_set_remove(&m->rows[i].serving, replica);
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
        m->rows[number].parent = (uint16_t)(base + 1);
}

bool node_models_is_adapter(const struct node_models *m, struct slice name)
{
    unsigned number = row_find(m, name);
    return number != ROW_NONE && m->rows[number].adapter;
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
    return !set_is_empty(&m->on_demand);
}

int node_models_also(struct node_models *m, unsigned replica, struct slice id)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    if (id.len == 0 || id.len > NODE_MODEL_NAME_MAX)
        return ERR_OK;
    unsigned number = row_find(m, id);
    if (number == ROW_NONE)
        number = row_add(m, id);
    if (number == ROW_NONE)
        return ERR_FULL;
    m->rows[number].listed = true;
    node_replica_set_add(&m->rows[number].serving, replica);
    return ERR_OK;
}

static void let_go(struct node_models *m, struct denial *d)
{
    m->held[d->replica] -= d->held;
    d->held = false;
}

/* But for those, if given. */
static void let_all_go(struct node_models *m, unsigned replica, const bool *but)
{
    for (unsigned i = 0; i < NODE_MODELS_DENIALS && m->held[replica] > 0; i++)
        if (m->denials[i].replica == replica && !(but && but[i]))
            let_go(m, &m->denials[i]);
}

void node_models_forget(struct node_models *m, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    node_replica_set_remove(&m->told, replica);
    node_replica_set_remove(&m->on_demand, replica);
    for (unsigned i = 0; i < m->used; i++)
        node_replica_set_remove(&m->rows[i].serving, replica);
    let_all_go(m, replica, NULL);
    for (unsigned i = 0; i < NODE_MODELS_DENIALS; i++)
        if (m->denials[i].replica == replica)
            m->denials[i] = (struct denial){0};
}

void node_models_unlist(struct node_models *m, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    node_replica_set_remove(&m->told, replica);
    let_all_go(m, replica, NULL);
}

void node_models_unknow(struct node_models *m, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    node_replica_set_remove(&m->told, replica);
    let_all_go(m, replica, NULL);
    for (unsigned i = 0; i < m->used; i++)
        node_replica_set_remove(&m->rows[i].serving, replica);
}

bool node_models_listed(const struct node_models *m, unsigned replica)
{
    CHECK(replica < NODE_REPLICAS_MAX);
    return node_replica_set_has(&m->told, replica);
}

bool node_models_all_listed(const struct node_models *m, unsigned count)
{
    CHECK(count <= NODE_REPLICAS_MAX);
    for (unsigned i = 0; i * 64 < count; i++) {
        unsigned bits = count - i * 64;
        uint64_t all = bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        if ((m->told.words[i] & all) != all)
            return false;
    }
    return true;
}

/* --- what clients' requests teach ------------------------------------------------------------ */

/* Of one replica and model; never 0. */
static uint64_t denial_key(uint64_t name_hash, unsigned replica)
{
    return hash_mix(name_hash + replica) | 1;
}

/* Where its DENIAL_WAYS places begin. */
static size_t denial_at(uint64_t key)
{
    return (key >> 32) % (NODE_MODELS_DENIALS / DENIAL_WAYS) * DENIAL_WAYS;
}

static uint64_t name_hash(const struct node_models *m, struct slice name)
{
    return hash64(&m->secret, name.at, name.len);
}

/* The place of that denial, else of one that gives way to it. */
static struct denial *place_of(const struct node_models *m, uint64_t key)
{
    struct denial *set = (struct denial *)&m->denials[denial_at(key)];
    struct denial *place = set;
    for (unsigned i = 0; i < DENIAL_WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
        if (set[i].until_ms < place->until_ms)
            place = &set[i];
    }
    return place;
}

static bool is_denied(const struct node_models *m, uint64_t key, uint64_t now_ms)
{
    const struct denial *d = place_of(m, key);
    return d->key == key && d->until_ms > now_ms && d->state != DENIAL_LIFTED;
}

void node_models_learn(struct node_models *m, unsigned replica, struct slice name)
{
    if (node_models_listed(m, replica) || name.len == 0 || name.len > NODE_MODEL_NAME_MAX)
        return;
    uint64_t key = denial_key(name_hash(m, name), replica);
    struct denial *d = place_of(m, key);
    if (d->key == key)
        *d = (struct denial){0};
    unsigned number = row_find(m, name);
    if (number == ROW_NONE)
        number = row_add(m, name);
    if (number != ROW_NONE) /* full of what engines list: learned again with the next answer */
        node_replica_set_add(&m->rows[number].serving, replica);
}

void node_models_learn_listed(struct node_models *m, unsigned replica, struct slice name)
{
    node_models_learn(m, replica, name);
    unsigned number = row_find(m, name);
    if (number != ROW_NONE)
        m->rows[number].listed = true;
}

/* An engine that lists a model and denies it by turns is not asked at each turn. */
static enum denial_state denial_after(const struct denial *before, bool again, bool listed,
                                      uint64_t now_ms)
{
    bool repeats = again && before->until_ms > now_ms && before->state != DENIAL_FRESH;
    return listed && !repeats ? DENIAL_FRESH : DENIAL_HOLDS;
}

bool node_models_deny(struct node_models *m, unsigned replica, struct slice name, uint64_t now_ms)
{
    bool listed = node_models_listed(m, replica);
    if (name.len == 0)
        return false;
    unsigned number = row_find(m, name);
    if (number != ROW_NONE && !listed)
        node_replica_set_remove(&m->rows[number].serving, replica);
    uint64_t key = denial_key(name_hash(m, name), replica);
    struct denial *place = place_of(m, key);
    m->denied_until_ms = now_ms + NODE_MODELS_DENIED_MS;
    bool on_demand = node_replica_set_has(&m->on_demand, replica);
    bool lists =
        listed && number != ROW_NONE && node_replica_set_has(&m->rows[number].serving, replica);
    bool held = place->key == key && place->held;
    bool news = place->key == key && place->state != DENIAL_FRESH && lists && !held;
    enum denial_state state = denial_after(place, place->key == key, listed && !on_demand, now_ms);
    let_go(m, place);
    m->held[replica] += held || news;
    *place = (struct denial){.key = key,
                             .until_ms = m->denied_until_ms & 0xffffffffffff,
                             .replica = replica,
                             .held = held || news,
                             .state = state};
    return news;
}

bool node_models_accepted(struct node_models *m, unsigned replica, struct slice name,
                          uint64_t sent_ms, uint64_t now_ms)
{
    uint64_t key = denial_key(name_hash(m, name), replica);
    struct denial *d = place_of(m, key);
    if (d->key != key || sent_ms + NODE_MODELS_DENIED_MS < d->until_ms)
        return false;
    bool over = d->until_ms <= now_ms, held = d->held;
    if (!over && d->state != DENIAL_LIFTED)
        return false;
    let_go(m, d);
    if (over)
        *d = (struct denial){0};
    return held;
}

void node_models_unlisted_let_go(struct node_models *m, unsigned replica)
{
    bool listed[NODE_MODELS_DENIALS] = {false};
    if (m->held[replica] == 0)
        return;
    for (unsigned i = 0; i < m->used; i++) {
        if (!node_replica_set_has(&m->rows[i].serving, replica))
            continue;
        uint64_t key = denial_key(name_hash(m, row_name(&m->rows[i])), replica);
        const struct denial *d = place_of(m, key);
        if (d->key == key)
            listed[d - m->denials] = true;
    }
    let_all_go(m, replica, listed);
}

bool node_models_denied_any(const struct node_models *m)
{
    return m->denied_until_ms > 0;
}

struct node_denials node_models_denials(const struct node_models *m, unsigned replica)
{
    struct node_denials out = {.held = m->held[replica]};
    for (unsigned i = 0; i < NODE_MODELS_DENIALS && out.held > 0; i++) {
        const struct denial *d = &m->denials[i];
        if (d->replica == replica && d->held && d->state != DENIAL_LIFTED &&
            d->until_ms > out.until_ms)
            out.until_ms = d->until_ms;
    }
    return out;
}

void node_models_doubt(struct node_models *m, unsigned replica, struct slice name)
{
    unsigned number = row_find(m, name);
    if (number != ROW_NONE && !node_models_listed(m, replica))
        node_replica_set_remove(&m->rows[number].serving, replica);
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

void node_models_denied_remove(const struct node_models *m, struct slice name, unsigned count,
                               uint64_t now_ms, struct node_replica_set *set)
{
    if (now_ms >= m->denied_until_ms || name.len == 0)
        return;
    uint64_t hash = name_hash(m, name);
    for (unsigned k = 0; k < count; k++) {
        if (node_replica_set_has(set, k) && is_denied(m, denial_key(hash, k), now_ms))
            node_replica_set_remove(set, k);
    }
}

bool node_models_denied(const struct node_models *m, unsigned replica, struct slice name,
                        uint64_t now_ms)
{
    return now_ms < m->denied_until_ms &&
           is_denied(m, denial_key(name_hash(m, name), replica), now_ms);
}

/* --- who serves what ------------------------------------------------------------------------- */

void node_models_each(const struct node_models *m, unsigned replica,
                      void (*each)(void *context, struct slice name), void *context)
{
    for (unsigned i = 0; i < m->used; i++) {
        if (node_replica_set_has(&m->rows[i].serving, replica))
            each(context, row_name(&m->rows[i]));
    }
}

void node_models_surely(const struct node_models *m, struct slice name,
                        struct node_replica_set *out)
{
    unsigned number = row_find(m, name);
    *out = number == ROW_NONE ? (struct node_replica_set){0} : m->rows[number].serving;
}

void node_models_serving(const struct node_models *m, struct slice name,
                         struct node_replica_set *out)
{
    unsigned number = row_find(m, name);
    bool listed = number != ROW_NONE;
    const struct node_model *row = &m->rows[listed ? number : 0];
    const struct node_model *base =
        listed && row->adapter && row->parent > 0 ? &m->rows[row->parent - 1] : NULL;
    bool known = listed && !row->adapter && !set_is_empty(&row->serving);
    for (unsigned i = 0; i < NODE_REPLICA_WORDS; i++) {
        uint64_t surely = listed ? row->serving.words[i] : 0;
        uint64_t loads = known ? 0 : m->on_demand.words[i];
        if (base)
            loads &= base->serving.words[i];
        out->words[i] = name.len == 0 ? UINT64_MAX : surely | ~m->told.words[i] | loads;
    }
}

bool node_models_known(const struct node_models *m, struct slice name)
{
    unsigned number = row_find(m, name);
    return number != ROW_NONE && !set_is_empty(&m->rows[number].serving);
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
    return &m->rows[number == ROW_NONE ? ROW_COMMON : number];
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

unsigned node_models_rows(const struct node_models *m)
{
    return m->used;
}

struct node_models_range node_models_range(const struct node_models *m)
{
    struct node_models_range range = {INFINITY, 0, INFINITY, 0, INFINITY, 0};
    bool any = false;
    for (unsigned n = 0; n <= m->used; n++) {
        unsigned i = n < m->used ? n : (unsigned)ROW_COMMON;
        const struct node_model *row = &m->rows[i];
        bool counts = i == ROW_COMMON ? !any : !set_is_empty(&row->serving);
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
    for (unsigned i = 0; i < m->used; i++) {
        const struct node_model *row = &m->rows[i];
        if (row->name_len == 0) {
            CHECK(set_is_empty(&row->serving));
            continue;
        }
        CHECK(row_find(m, row_name(row)) == i);
    }
}
