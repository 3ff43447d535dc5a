#include "crdt/registry.h"

#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "crdt/registry_internal.h"
#include "crdt/value.h"

static uint64_t key_of(const struct crdt_registry *r, struct slice name)
{
    return hash64(&r->secret, name.at, name.len) & 0xffffffffffff;
}

static struct slice name_of(const struct crdt_replica *row)
{
    return slice_of(row->name, row->name_len);
}

/* --- derived fields ------------------------------------------------------------------------- */

static uint64_t hash_of(const struct crdt_replica *row)
{
    uint64_t h = hash_mix(row->key + 0x9e3779b97f4a7c15u);
    h = hash_mix(h ^ ((uint64_t)row->named << 32 | row->born));
    h = hash_mix(h + row->incarnation.started);
    h = hash_mix(h ^ (UINT64_C(0x100000000) * row->incarnation.raises | row->wish_version));
    h = hash_mix(h + ((uint64_t)row->drain_version << 8 | (uint64_t)row->wish << 1 |
                      (uint64_t)row->draining));
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

bool crdt_registry_is_derived(const struct crdt_registry *r, unsigned place)
{
    const struct crdt_replica *row = &r->row[place];
    return row->key == key_of(r, name_of(row)) && row->rkey == rkey_of(row) &&
           r->hash[place] == hash_of(row);
}

void crdt_registry_rehash(struct crdt_registry *r, unsigned place)
{
    r->digest -= r->hash[place];
    r->hash[place] = hash_of(&r->row[place]);
    r->digest += r->hash[place];
    r->version++;
}

static int compare_names(const struct crdt_replica *a, const struct crdt_replica *b)
{
    size_t common = a->name_len < b->name_len ? a->name_len : b->name_len;
    int order = memcmp(a->name, b->name, common);
    return order != 0 ? order : (int)a->name_len - (int)b->name_len;
}

static int find_same_rkey(const struct crdt_registry *r, unsigned place)
{
    for (int i = -1; (i = crdt_registry_next(r, i)) >= 0;)
        if ((unsigned)i != place && r->rkey[i] == r->rkey[place])
            return i;
    return -1;
}

/* Computes the rkey of a row with a new incarnation. While another row has the same rkey, raises
 * the incarnation of the row with the greater name. */
static void settle(struct crdt_registry *r, unsigned place)
{
    for (;;) {
        if (place < r->config.slots)
            r->rkey_before[place] = r->rkey[place];
        r->rkey[place] = r->row[place].rkey = rkey_of(&r->row[place]);
        crdt_registry_rehash(r, place);
        int other = find_same_rkey(r, place);
        if (other < 0)
            break;
        if (compare_names(&r->row[other], &r->row[place]) > 0)
            place = (unsigned)other;
        /* A peer may have sent the greatest number of raises, and the raised incarnation must still
         * be later. */
        struct crdt_incarnation *raised = &r->row[place].incarnation;
        if (++raised->raises == 0)
            raised->started++;
    }
    crdt_registry_index(r);
}

/* True if the registry has CRDT_TOLD_MAX names from the router `told_by`, apart from replicas that
 * this router named or saw up. Further names from that router rank lower. */
static bool told_enough(const struct crdt_registry *r, uint64_t told_by)
{
    unsigned told = 0;
    for (int i = -1; (i = crdt_registry_next(r, i)) >= 0 && told < CRDT_TOLD_MAX;)
        told += r->row[i].told_by == told_by &&
                crdt_registry_rank_of(r, &r->row[i]).standing != CRDT_STANDING_OWN;
    return told >= CRDT_TOLD_MAX;
}

/* --- joining -------------------------------------------------------------------------------- */

static bool later(const struct crdt_incarnation *a, const struct crdt_incarnation *b)
{
    return a->started != b->started ? a->started > b->started : a->raises > b->raises;
}

/* Keeps the greater bytes. For registers of a fixed width, most significant byte first, the greater
 * bytes are the maximum. */
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

/* Makes the row of a name that is not in the registry. Returns the row's place, or ERR_FULL. `own`:
 * this router lists the name, or an operator added the replica here. */
static int add(struct crdt_registry *r, uint64_t key, const struct crdt_registry_row *in, bool own)
{
    if (crdt_registry_place(r, key) >= 0)
        return ERR_FULL; /* two names with the same key: a chance of 2^-29 among 1,024 */
    bool excess = !own && told_enough(r, in->told_by);
    if (excess && r->stats.names + r->stats.waiting == r->config.rows_max) {
        r->stats.refused++; /* refused without comparing all rows, because a peer may send names at
                             * any rate */
        return ERR_FULL;
    }
    enum crdt_standing standing = own      ? CRDT_STANDING_OWN
                                  : excess ? CRDT_STANDING_EXCESS
                                           : CRDT_STANDING_TOLD;
    int at = crdt_registry_room(
        r, (struct crdt_registry_rank){.standing = standing, .born = in->born, .key = key});
    if (at < 0)
        return at;
    struct crdt_replica *row = &r->row[at];
    memcpy(row->name, in->name.at, in->name.len);
    row->name_len = (uint16_t)in->name.len;
    row->key = key;
    row->excess = excess;
    row->heard_s = r->now;
    row->told_by = in->told_by;
    row->named = in->named;
    row->born = in->born;
    row->incarnation = in->incarnation;
    (void)join_later(row, in->later);
    crdt_registry_occupy(r, (unsigned)at);
    settle(r, (unsigned)at);
    crdt_registry_arrange(r);
    return crdt_registry_place(r, key);
}

/* Two operators may have taken the same version at once: then the greater wish wins. Any order
 * would do if all routers use it. */
static bool supersedes(uint32_t version, unsigned value, uint32_t known_version, unsigned known)
{
    return version != known_version ? version > known_version : value > known;
}

static bool join_wishes(struct crdt_replica *row, const struct crdt_registry_row *in)
{
    bool wish = supersedes(in->wish_version, in->wish, row->wish_version, row->wish);
    bool drain = supersedes(in->drain_version, in->draining, row->drain_version, row->draining);
    if (BUG(DRAIN_LOST))
        wish = drain = supersedes(in->wish_version + in->drain_version, in->wish,
                                  row->wish_version + row->drain_version, row->wish);
    if (wish) {
        row->wish_version = in->wish_version;
        row->wish = in->wish;
        row->asked = false;
    }
    if (drain) {
        row->drain_version = in->drain_version;
        row->draining = in->draining;
    }
    return wish || drain;
}

static bool join_life(struct crdt_replica *row, const struct crdt_registry_row *in)
{
    bool moved = in->named > row->named || in->born < row->born;
    row->named = in->named > row->named ? in->named : row->named;
    row->born = in->born < row->born ? in->born : row->born;
    return moved;
}

static int refuse(struct crdt_registry *r, const struct crdt_registry_row *in)
{
    if (in->name.len == 0 || in->name.len > CRDT_NAME_MAX || in->born > in->named)
        return ERR_RANGE;
    if (r->config.is_name != NULL && !r->config.is_name(in->name)) {
        r->stats.no_names++;
        memcpy(r->no_name, in->name.at, in->name.len);
        r->no_name_len = (uint16_t)in->name.len;
        r->no_name_by = in->told_by;
        return ERR_SYNTAX;
    }
    if (in->named < r->floor && !BUG(NAME_RETURNS)) {
        r->stats.late++;
        return ERR_STALE;
    }
    if (in->named > r->now + r->config.skew_s) {
        r->stats.future++;
        return ERR_RANGE;
    }
    return 0;
}

/* The slot of a row at this place, or ERR_AGAIN if the row waits for a slot. */
static int slot_of(const struct crdt_registry *r, int place)
{
    return place < (int)r->config.slots ? place : ERR_AGAIN;
}

int crdt_registry_join(struct crdt_registry *r, const struct crdt_registry_row *in, bool *news)
{
    *news = false;
    int err = refuse(r, in);
    if (err != 0)
        return err;
    uint64_t key = key_of(r, in->name);
    int at = crdt_registry_place(r, key);
    if (at < 0 || !slice_equal(name_of(&r->row[at]), in->name)) {
        at = add(r, key, in, false);
        if (at < 0)
            return at;
        *news = true;
    }
    struct crdt_replica *row = &r->row[at];
    struct crdt_registry_rank rank = crdt_registry_rank_of(r, row);
    bool moved = join_life(row, in);
    moved = join_later(row, in->later) || moved;
    moved = join_wishes(row, in) || moved;
    if (moved) {
        crdt_registry_rehash(r, (unsigned)at);
        *news = true;
    }
    if (later(&in->incarnation, &row->incarnation)) {
        row->incarnation = in->incarnation;
        settle(r, (unsigned)at);
        *news = true;
    }
    struct crdt_registry_rank now = crdt_registry_rank_of(r, &r->row[at]);
    if (now.standing != rank.standing || now.born != rank.born) {
        crdt_registry_arrange(r);
        at = crdt_registry_place(r, key);
    }
    return slot_of(r, at);
}

int crdt_registry_name(struct crdt_registry *r, struct slice name, bool ours, bool *news)
{
    *news = false;
    if (name.len == 0 || name.len > CRDT_NAME_MAX)
        return ERR_RANGE;
    uint64_t key = key_of(r, name);
    int at = crdt_registry_place(r, key);
    if (at < 0 || !slice_equal(name_of(&r->row[at]), name)) {
        struct crdt_registry_row row = {.name = name, .named = r->now, .born = r->now};
        if (FUTURE)
            row.later = FUTURE_BYTES;
        at = add(r, key, &row, true);
        if (at < 0)
            return at;
        *news = true;
    }
    r->row[at].ours = r->row[at].ours || ours;
    crdt_registry_arrange(r);
    return slot_of(r, crdt_registry_place(r, key));
}

void crdt_registry_seen(struct crdt_registry *r, unsigned slot, bool up)
{
    CHECK(crdt_registry_has(r, slot));
    struct crdt_replica *row = &r->row[slot];
    bool was_down = row->down, was_up = crdt_registry_is_up(r, row);
    row->down = !up;
    if (up)
        row->up_s = r->now > 0 ? r->now : 1;
    if (row->down != was_down || crdt_registry_is_up(r, row) != was_up)
        crdt_registry_arrange(r);
}

void crdt_registry_unname(struct crdt_registry *r, struct slice name)
{
    int at = crdt_registry_place(r, key_of(r, name));
    if (at < 0)
        return;
    r->row[at].ours = false;
    crdt_registry_arrange(r);
}

/* --- wishes, losses ------------------------------------------------------------------------- */

static struct crdt_replica *row_at(struct crdt_registry *r, unsigned place)
{
    CHECK(place < r->places && crdt_registry_occupied(r, place));
    return &r->row[place];
}

static void wished(struct crdt_registry *r, unsigned place)
{
    struct crdt_replica *row = &r->row[place];
    row->named = row->named > r->now ? row->named : r->now;
    crdt_registry_rehash(r, place);
}

bool crdt_registry_wish(struct crdt_registry *r, unsigned place, enum crdt_wish wish)
{
    struct crdt_replica *row = row_at(r, place);
    if (row->wish == wish || row->wish_version == UINT32_MAX)
        return false;
    row->wish = wish;
    row->wish_version++;
    row->asked = wish == CRDT_WISH_ADDED;
    wished(r, place);
    crdt_registry_tell(r, place);
    crdt_registry_arrange(r);
    return true;
}

bool crdt_registry_drain(struct crdt_registry *r, unsigned place, bool draining)
{
    struct crdt_replica *row = row_at(r, place);
    if (row->draining == draining || row->drain_version == UINT32_MAX)
        return false;
    row->draining = draining;
    row->drain_version++;
    wished(r, place);
    return true;
}

bool crdt_registry_restarted(struct crdt_registry *r, unsigned slot, uint64_t started)
{
    struct crdt_incarnation *now = &row_at(r, slot)->incarnation;
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

/* --- asking --------------------------------------------------------------------------------- */

unsigned crdt_registry_count(const struct crdt_registry *r)
{
    return r->count;
}

bool crdt_registry_has(const struct crdt_registry *r, unsigned slot)
{
    return slot < r->count && crdt_registry_occupied(r, slot);
}

const struct crdt_replica *crdt_registry_at(const struct crdt_registry *r, unsigned slot)
{
    CHECK(crdt_registry_has(r, slot));
    return &r->row[slot];
}

static int in_use(const struct crdt_registry *r, int place)
{
    return place < (int)r->config.slots ? place : -1;
}

int crdt_registry_by_key(const struct crdt_registry *r, uint64_t key)
{
    return in_use(r, crdt_registry_place(r, key));
}

int crdt_registry_by_rkey(const struct crdt_registry *r, uint32_t rkey)
{
    return in_use(r, crdt_registry_find_rkey(r, rkey));
}

int crdt_registry_place_of(const struct crdt_registry *r, struct slice name)
{
    int place = crdt_registry_place(r, key_of(r, name));
    return place >= 0 && slice_equal(name_of(&r->row[place]), name) ? place : -1;
}

bool crdt_registry_is_ours(const struct crdt_registry *r, struct slice name)
{
    int place = crdt_registry_place_of(r, name);
    return place >= 0 && r->row[place].ours;
}

int crdt_registry_by_name(const struct crdt_registry *r, struct slice name)
{
    return in_use(r, crdt_registry_place_of(r, name));
}

uint32_t crdt_registry_oldest_s(const struct crdt_registry *r, unsigned slot)
{
    uint32_t born = crdt_registry_at(r, slot)->born;
    return born > r->config.skew_s ? born - r->config.skew_s : 0;
}

uint64_t crdt_registry_version(const struct crdt_registry *r)
{
    return r->version;
}

struct slice crdt_registry_waiting(const struct crdt_registry *r)
{
    int at = crdt_registry_next_in(r);
    return at < 0 ? slice_of("", 0) : name_of(&r->row[at]);
}

struct slice crdt_registry_no_name(const struct crdt_registry *r, uint64_t *told_by)
{
    *told_by = r->no_name_by;
    return slice_of(r->no_name, r->no_name_len);
}

unsigned crdt_registry_slots(unsigned names_max)
{
    unsigned slots = (names_max + names_max / 8 + 32 + 63) / 64 * 64;
    return slots < CRDT_REPLICAS_MAX ? slots : CRDT_REPLICAS_MAX;
}

const struct crdt_registry_stats *crdt_registry_stats(const struct crdt_registry *r)
{
    return &r->stats;
}

/* --- all rows ------------------------------------------------------------------------------- */

struct crdt_registry_row crdt_registry_row(const struct crdt_registry *r, unsigned place)
{
    CHECK(place < r->places && crdt_registry_occupied(r, place));
    const struct crdt_replica *row = &r->row[place];
    return (struct crdt_registry_row){.name = name_of(row),
                                      .named = row->named,
                                      .born = row->born,
                                      .incarnation = row->incarnation,
                                      .wish_version = row->wish_version,
                                      .drain_version = row->drain_version,
                                      .wish = row->wish,
                                      .draining = row->draining,
                                      .later = slice_of(row->later, row->later_len)};
}

struct crdt_registry_mark crdt_registry_mark(const struct crdt_registry *r, unsigned place)
{
    CHECK(place < r->places && crdt_registry_occupied(r, place));
    return (struct crdt_registry_mark){
        .key = r->row[place].key, .hash = r->hash[place], .named = r->row[place].named};
}

uint64_t crdt_registry_digest(const struct crdt_registry *r, uint32_t from_s)
{
    uint64_t digest = r->digest;
    if (from_s <= r->floor)
        return digest;
    for (int i = -1; (i = crdt_registry_next(r, i)) >= 0;)
        if (r->row[i].named < from_s)
            digest -= r->hash[i];
    return digest;
}
