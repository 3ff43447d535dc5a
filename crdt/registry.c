#include "crdt/registry.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "crdt/value.h"

enum {
    SLOTS = CRDT_REPLICAS_MAX,
    PLACES = 4 * SLOTS, /* of a look-up table: open addressing, so mostly empty */
};

/* A table from a number to a slot, by linear probing; 0 is an empty place. Nothing is taken out:
 * it is filled anew when an rkey changes, which is rare. */
struct lookup {
    uint16_t place[PLACES];
};

struct crdt_registry {
    unsigned count;
    unsigned max;
    uint64_t version;
    uint64_t digest;
    struct hash_secret secret; /* a constant: all routers must compute the same keys */
    struct lookup by_key;
    struct lookup by_rkey;
    struct crdt_replica row[SLOTS];
    uint64_t hash[SLOTS];
    uint32_t rkey_before[SLOTS]; /* for BUG(SKIP_FENCE) */
};

/* --- look-ups ------------------------------------------------------------------------------- */

static void put(struct lookup *t, uint64_t key, unsigned slot)
{
    uint64_t at = hash_mix(key);
    while (t->place[at % PLACES] != 0)
        at++;
    t->place[at % PLACES] = (uint16_t)(slot + 1);
}

int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key)
{
    for (uint64_t at = hash_mix(key);; at++) {
        unsigned slot = r->by_key.place[at % PLACES];
        if (slot == 0)
            return -1;
        if (r->row[slot - 1].key == key)
            return (int)slot - 1;
    }
}

static int find_retired(const struct crdt_registry *r, uint32_t rkey)
{
    for (unsigned i = 0; i < r->count; i++)
        if (rkey != 0 && r->rkey_before[i] == rkey)
            return (int)i;
    return -1;
}

int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey)
{
    for (uint64_t at = hash_mix(rkey);; at++) {
        unsigned slot = r->by_rkey.place[at % PLACES];
        if (slot == 0)
            return BUG(SKIP_FENCE) ? find_retired(r, rkey) : -1;
        if (r->row[slot - 1].rkey == rkey)
            return (int)slot - 1;
    }
}

static uint64_t key_of(const struct crdt_registry *r, struct slice name)
{
    return hash64(&r->secret, name.at, name.len) & 0xffffffffffff;
}

static struct slice name_of(const struct crdt_replica *row)
{
    return slice_of(row->name, row->name_len);
}

int crdt_registry_by_name(const struct crdt_registry *r, struct slice name)
{
    int slot = crdt_registry_by_key(r, key_of(r, name));
    return slot >= 0 && slice_equal(name_of(&r->row[slot]), name) ? slot : -1;
}

/* --- derived fields ------------------------------------------------------------------------- */

static uint64_t hash_of(const struct crdt_replica *row)
{
    uint64_t h = hash_mix(row->key + 0x9e3779b97f4a7c15u);
    h = hash_mix(h ^ row->incarnation.started);
    h = hash_mix(h + ((uint64_t)row->incarnation.raises << 32 | row->wish_version));
    h = hash_mix(h ^ ((uint64_t)row->wish << 1 | row->draining));
    return crdt_later_hash(h, slice_of(row->later, row->later_len));
}

static uint32_t rkey_of(const struct crdt_replica *row)
{
    uint64_t h = hash_mix(row->key ^ 0xd1b54a32d192ed03u);
    h = hash_mix(h + row->incarnation.started);
    h = hash_mix(h ^ row->incarnation.raises);
    uint32_t rkey = (uint32_t)(h >> 33);
    return rkey != 0 ? rkey : 1;
}

static void rehash(struct crdt_registry *r, unsigned slot)
{
    r->digest -= r->hash[slot];
    r->hash[slot] = hash_of(&r->row[slot]);
    r->digest += r->hash[slot];
    r->version++;
}

static int compare_names(const struct crdt_replica *a, const struct crdt_replica *b)
{
    size_t common = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, common);
    return order != 0 ? order : (int)a->name_len - (int)b->name_len;
}

static int find_same_rkey(const struct crdt_registry *r, unsigned slot)
{
    for (unsigned i = 0; i < r->count; i++)
        if (i != slot && r->row[i].rkey == r->row[slot].rkey)
            return (int)i;
    return -1;
}

/* The incarnation of `slot` is new. Gives it its rkey; where that is another's too, the greater of
 * the two names is raised, until all are distinct. */
static void settle(struct crdt_registry *r, unsigned slot)
{
    for (;;) {
        r->rkey_before[slot] = r->row[slot].rkey;
        r->row[slot].rkey = rkey_of(&r->row[slot]);
        rehash(r, slot);
        int other = find_same_rkey(r, slot);
        if (other < 0)
            break;
        if (compare_names(&r->row[other], &r->row[slot]) > 0)
            slot = (unsigned)other;
        /* What a peer given may be the greatest number: a raise has to be later all the same. */
        struct crdt_incarnation *raised = &r->row[slot].incarnation;
        if (++raised->raises == 0)
            raised->started++;
    }
    memset(&r->by_rkey, 0, sizeof r->by_rkey);
    for (unsigned i = 0; i < r->count; i++)
        put(&r->by_rkey, r->row[i].rkey, i);
}

/* --- changing ------------------------------------------------------------------------------- */

static bool later(const struct crdt_incarnation *a, const struct crdt_incarnation *b)
{
    return a->started != b->started ? a->started > b->started : a->raises > b->raises;
}

static int add(struct crdt_registry *r, const struct crdt_registry_row *in)
{
    uint64_t key = key_of(r, in->name);
    if (r->count == r->max || crdt_registry_by_key(r, key) >= 0)
        return ERR_FULL; /* two names with the same key: a chance of 2^-29 among 1,024 */
    unsigned slot = r->count++;
    struct crdt_replica *row = &r->row[slot];
    memcpy(row->name, in->name.at, in->name.len);
    row->name_len = (uint16_t)in->name.len;
    row->key = key;
    row->incarnation = in->incarnation;
    put(&r->by_key, key, slot);
    settle(r, slot);
    return (int)slot;
}

static bool join_wish(struct crdt_replica *row, const struct crdt_registry_row *in)
{
    /* Two operators may have taken the same version at once: any fixed order of their wishes
     * does, as long as it is the same everywhere. */
    unsigned known = (unsigned)row->wish << 1 | row->draining;
    unsigned given = (unsigned)in->wish << 1 | in->draining;
    if (in->wish_version < row->wish_version ||
        (in->wish_version == row->wish_version && given <= known))
        return false;
    row->wish_version = in->wish_version;
    row->wish = in->wish;
    row->draining = in->draining;
    return true;
}

/* A register of a fixed width, most significant byte first, joins by its bytes. */
static bool join_later(struct crdt_replica *row, struct slice in)
{
    size_t common = in.len < row->later_len ? in.len : row->later_len;
    int order = common > 0 ? memcmp(in.at, row->later, common) : 0;
    if (in.len > CRDT_LATER_MAX || order < 0 || (order == 0 && in.len <= row->later_len))
        return false;
    row->later_len = (uint8_t)in.len;
    memcpy(row->later, in.at, in.len);
    return true;
}

int crdt_registry_join(struct crdt_registry *r, const struct crdt_registry_row *in, bool *news)
{
    *news = false;
    if (in->name.len == 0 || in->name.len > CRDT_NAME_MAX)
        return ERR_RANGE;
    int slot = crdt_registry_by_name(r, in->name);
    if (slot < 0) {
        slot = add(r, in);
        if (slot < 0)
            return slot;
        *news = true;
    }
    struct crdt_replica *row = &r->row[slot];
    bool wished = join_wish(row, in);
    if (join_later(row, in->later) || wished) {
        rehash(r, (unsigned)slot);
        *news = true;
    }
    if (later(&in->incarnation, &row->incarnation)) {
        row->incarnation = in->incarnation;
        settle(r, (unsigned)slot);
        *news = true;
    }
    return slot;
}

bool crdt_registry_wish(struct crdt_registry *r, unsigned slot, enum crdt_wish wish, bool draining)
{
    CHECK(slot < r->count);
    struct crdt_replica *row = &r->row[slot];
    if ((row->wish == wish && row->draining == draining) || row->wish_version == UINT32_MAX)
        return false;
    row->wish = wish;
    row->draining = draining;
    row->wish_version++;
    rehash(r, slot);
    return true;
}

bool crdt_registry_restarted(struct crdt_registry *r, unsigned slot, uint64_t started)
{
    CHECK(slot < r->count);
    struct crdt_incarnation *now = &r->row[slot].incarnation;
    if (started != 0) {
        if (started <= now->started)
            return false;
        *now = (struct crdt_incarnation){.started = started};
    } else {
        if (now->raises >= CRDT_RAISES_MAX)
            return false;
        now->raises++;
    }
    settle(r, slot);
    return true;
}

/* --- asking, life --------------------------------------------------------------------------- */

unsigned crdt_registry_count(const struct crdt_registry *r)
{
    return r->count;
}

const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot)
{
    CHECK(slot < r->count);
    return &r->row[slot];
}

struct crdt_registry_row crdt_registry_row(const struct crdt_registry *r, unsigned slot)
{
    const struct crdt_replica *row = crdt_registry_at(r, slot);
    return (struct crdt_registry_row){.name = name_of(row),
                                      .incarnation = row->incarnation,
                                      .wish_version = row->wish_version,
                                      .wish = row->wish,
                                      .draining = row->draining,
                                      .later = slice_of(row->later, row->later_len)};
}

uint64_t crdt_registry_version(const struct crdt_registry *r)
{
    return r->version;
}

uint64_t crdt_registry_digest(const struct crdt_registry *r)
{
    return r->digest;
}

uint64_t crdt_registry_digest_at(const struct crdt_registry *r, unsigned slot)
{
    CHECK(slot < r->count);
    return r->hash[slot];
}

int crdt_registry_create(struct crdt_registry **out, unsigned replicas_max)
{
    CHECK(replicas_max <= SLOTS);
    struct crdt_registry *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->max = replicas_max;
    hash_secret_from_seed(&r->secret, 0x67726170); /* any constant */
    *out = r;
    return 0;
}

void crdt_registry_destroy(struct crdt_registry *r)
{
    free(r);
}

void crdt_registry_check(const struct crdt_registry *r)
{
    CHECK(r->count <= r->max);
    uint64_t digest = 0;
    for (unsigned i = 0; i < r->count; i++) {
        const struct crdt_replica *row = &r->row[i];
        CHECK(row->name_len > 0 && row->name_len <= CRDT_NAME_MAX);
        CHECK(row->name[row->name_len] == '\0');
        CHECK(row->key == key_of(r, name_of(row)) && row->rkey == rkey_of(row));
        CHECK(crdt_registry_by_key(r, row->key) == (int)i);
        CHECK(crdt_registry_by_rkey(r, row->rkey) == (int)i);
        CHECK(crdt_registry_by_name(r, name_of(row)) == (int)i);
        CHECK(r->hash[i] == hash_of(row));
        digest += r->hash[i];
    }
    CHECK(digest == r->digest);
}
