#include "crdt/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"

enum { PLACES_MIN = 16 };

static const uint64_t id_mask = 0xffffffffffff;

/* A set of ids by linear probing, at most half full. A place holds id + 1, 0 is empty. */
struct set {
    uint64_t *place;
    uint32_t places; /* a power of two, or 0 */
    uint32_t count;
    uint64_t fold;
};

struct entry {
    uint32_t rkey;
    uint64_t version;
    struct set set;
};

struct crdt_events {
    uint64_t bytes_max;
    uint64_t bytes;
    uint64_t conflicts;
    uint64_t digest;
    unsigned max;
    unsigned count;
    struct entry *entry; /* by rkey */
};

/* --- sets ----------------------------------------------------------------------------------- */

static uint64_t fold_of(uint64_t id)
{
    return hash_mix(id + 0x9e3779b97f4a7c15u);
}

static uint32_t probe(const struct set *s, uint64_t id)
{
    uint32_t at = (uint32_t)hash_mix(id) & (s->places - 1);
    while (s->place[at] != 0 && s->place[at] != id + 1)
        at = (at + 1) & (s->places - 1);
    return at;
}

static bool set_holds(const struct set *s, uint64_t id)
{
    return s->places > 0 && s->place[probe(s, id)] != 0;
}

static void set_add(struct set *s, uint64_t id)
{
    CHECK(s->place != NULL);
    uint32_t at = probe(s, id);
    if (s->place[at] != 0)
        return;
    s->place[at] = id + 1;
    s->count++;
    s->fold += fold_of(id);
}

static void set_remove(struct set *s, uint64_t id)
{
    if (!set_holds(s, id))
        return;
    uint32_t mask = s->places - 1;
    uint32_t hole = probe(s, id);
    s->count--;
    s->fold -= fold_of(id);
    /* Ids that were pushed beyond the hole move back (Knuth, vol. 3, 6.4, algorithm R). */
    for (uint32_t at = (hole + 1) & mask; s->place[at] != 0; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)hash_mix(s->place[at] - 1) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            s->place[hole] = s->place[at];
            hole = at;
        }
    }
    s->place[hole] = 0;
}

static uint32_t places_for(uint32_t count)
{
    uint32_t places = PLACES_MIN;
    while (places < 2 * count)
        places *= 2;
    return places;
}

static uint64_t bytes_of(const struct set *s)
{
    return s->places * sizeof *s->place;
}

/* Room for `count` ids within the budget. */
static int set_reserve(struct crdt_events *l, struct set *s, uint32_t count)
{
    uint32_t places = places_for(count);
    if (places <= s->places)
        return 0;
    uint64_t more = (places - s->places) * sizeof *s->place;
    if (more > l->bytes_max - l->bytes)
        return ERR_FULL;
    uint64_t *place = calloc(places, sizeof *place);
    if (place == NULL)
        return ERR_FULL;
    struct set grown = {.place = place, .places = places};
    for (uint32_t i = 0; i < s->places; i++)
        if (s->place[i] != 0)
            set_add(&grown, s->place[i] - 1);
    l->bytes += more;
    free(s->place);
    *s = grown;
    return 0;
}

static void set_free(struct crdt_events *l, struct set *s)
{
    l->bytes -= bytes_of(s);
    free(s->place);
    *s = (struct set){0};
}

/* --- entries -------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct entry *e)
{
    return hash_mix(hash_mix(hash_mix(e->rkey + 0x632be59bd9b4e019u) ^ e->version) + e->set.fold);
}

static unsigned place_of(const struct crdt_events *l, uint32_t rkey)
{
    unsigned low = 0;
    unsigned high = l->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (l->entry[middle].rkey < rkey)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *find(const struct crdt_events *l, uint32_t rkey)
{
    unsigned at = place_of(l, rkey);
    return at < l->count && l->entry[at].rkey == rkey ? &l->entry[at] : NULL;
}

static struct entry *find_or_add(struct crdt_events *l, uint32_t rkey)
{
    unsigned at = place_of(l, rkey);
    if (at < l->count && l->entry[at].rkey == rkey)
        return &l->entry[at];
    if (l->count == l->max)
        return NULL;
    memmove(&l->entry[at + 1], &l->entry[at], (l->count - at) * sizeof *l->entry);
    l->entry[at] = (struct entry){.rkey = rkey};
    l->count++;
    l->digest += hash_of(&l->entry[at]);
    return &l->entry[at];
}

void crdt_events_retire(struct crdt_events *l, uint32_t rkey)
{
    struct entry *e = find(l, rkey);
    if (e == NULL)
        return;
    l->digest -= hash_of(e);
    set_free(l, &e->set);
    l->count--;
    unsigned at = (unsigned)(e - l->entry);
    memmove(e, e + 1, (l->count - at) * sizeof *e);
}

/* --- joining -------------------------------------------------------------------------------- */

int crdt_events_append(struct crdt_events *l, const struct crdt_event *event)
{
    CHECK(event->version > 0);
    struct entry *e = find(l, event->rkey);
    uint64_t version = e != NULL ? e->version : 0;
    if (event->version <= version)
        return 0;
    if (event->version > version + 1 && !BUG(LOG_GAP_APPLIED))
        return ERR_AGAIN;
    if (event->added_count > CRDT_EVENTS_IDS_MAX)
        return ERR_FULL;
    uint32_t count = (e != NULL ? e->set.count : 0) + event->added_count;
    if (count > CRDT_EVENTS_IDS_MAX)
        return ERR_FULL;
    e = find_or_add(l, event->rkey);
    if (e == NULL)
        return ERR_FULL;
    int err = set_reserve(l, &e->set, count);
    if (err != 0) {
        if (e->version == 0)
            crdt_events_retire(l, event->rkey);
        return err;
    }
    l->digest -= hash_of(e);
    for (unsigned i = 0; i < event->added_count; i++)
        set_add(&e->set, event->added[i] & id_mask);
    for (unsigned i = 0; i < event->removed_count; i++)
        set_remove(&e->set, event->removed[i] & id_mask);
    e->version = event->version;
    l->digest += hash_of(e);
    return 1;
}

int crdt_events_join(struct crdt_events *l, uint32_t rkey, uint64_t version, const uint64_t *ids,
                     unsigned count)
{
    CHECK(version > 0);
    if (count > CRDT_EVENTS_IDS_MAX)
        return ERR_LIMIT;
    struct entry *e = find(l, rkey);
    if (e != NULL && version < e->version)
        return 0;
    struct set theirs = {0};
    int err = set_reserve(l, &theirs, count);
    if (err != 0)
        return err;
    for (unsigned i = 0; i < count; i++)
        set_add(&theirs, ids[i] & id_mask);
    if (e != NULL && version == e->version && theirs.fold != e->set.fold)
        l->conflicts++;
    bool greater = e == NULL || version > e->version || theirs.fold > e->set.fold;
    if (greater)
        e = find_or_add(l, rkey);
    if (!greater || e == NULL) {
        set_free(l, &theirs);
        return greater ? ERR_FULL : 0;
    }
    l->digest -= hash_of(e);
    set_free(l, &e->set);
    e->set = theirs;
    e->version = version;
    l->digest += hash_of(e);
    return 1;
}

/* --- asking, life --------------------------------------------------------------------------- */

static struct crdt_events_head head_of(const struct entry *e)
{
    return (struct crdt_events_head){
        .rkey = e->rkey, .version = e->version, .fold = e->set.fold, .count = e->set.count};
}

bool crdt_events_find(const struct crdt_events *l, uint32_t rkey, struct crdt_events_head *out)
{
    const struct entry *e = find(l, rkey);
    if (e != NULL)
        *out = head_of(e);
    return e != NULL;
}

bool crdt_events_holds(const struct crdt_events *l, uint32_t rkey, uint64_t id48)
{
    const struct entry *e = find(l, rkey);
    return e != NULL && set_holds(&e->set, id48 & id_mask);
}

unsigned crdt_events_count(const struct crdt_events *l)
{
    return l->count;
}

struct crdt_events_head crdt_events_at(const struct crdt_events *l, unsigned index)
{
    CHECK(index < l->count);
    return head_of(&l->entry[index]);
}

void crdt_events_ids(const struct crdt_events *l, unsigned index, uint64_t *out)
{
    CHECK(index < l->count);
    const struct set *s = &l->entry[index].set;
    for (uint32_t i = 0; i < s->places; i++)
        if (s->place[i] != 0)
            *out++ = s->place[i] - 1;
}

uint64_t crdt_events_digest(const struct crdt_events *l)
{
    return l->digest;
}

uint64_t crdt_events_conflicts(const struct crdt_events *l)
{
    return l->conflicts;
}

int crdt_events_create(struct crdt_events **out, unsigned replicas_max, uint64_t bytes_max)
{
    struct crdt_events *l = calloc(1, sizeof *l);
    if (l == NULL)
        return ERR_NOMEM;
    l->entry = calloc(replicas_max, sizeof *l->entry);
    if (l->entry == NULL) {
        free(l);
        return ERR_NOMEM;
    }
    l->max = replicas_max;
    l->bytes_max = bytes_max;
    *out = l;
    return 0;
}

void crdt_events_destroy(struct crdt_events *l)
{
    if (l == NULL)
        return;
    for (unsigned i = 0; i < l->count; i++)
        free(l->entry[i].set.place);
    free(l->entry);
    free(l);
}

void crdt_events_check(const struct crdt_events *l)
{
    uint64_t bytes = 0;
    uint64_t digest = 0;
    for (unsigned i = 0; i < l->count; i++) {
        const struct entry *e = &l->entry[i];
        CHECK(i == 0 || l->entry[i - 1].rkey < e->rkey);
        CHECK(e->version > 0 && e->set.count <= CRDT_EVENTS_IDS_MAX);
        uint64_t fold = 0;
        uint32_t count = 0;
        for (uint32_t at = 0; at < e->set.places; at++) {
            if (e->set.place[at] == 0)
                continue;
            CHECK(probe(&e->set, e->set.place[at] - 1) == at);
            fold += fold_of(e->set.place[at] - 1);
            count++;
        }
        CHECK(fold == e->set.fold && count == e->set.count && 2 * count <= e->set.places);
        bytes += bytes_of(&e->set);
        digest += hash_of(e);
    }
    CHECK(bytes == l->bytes && bytes <= l->bytes_max && digest == l->digest);
}
