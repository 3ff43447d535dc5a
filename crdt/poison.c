#include "crdt/poison.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"

/* Seconds by which `until` may be ahead of now: the longest time to live, and 600 changes of the
 * row, each of which adds a second. */
enum { AHEAD_S = CRDT_POISON_TTL_S + 600 };

void crdt_poison_init(struct crdt_poison *p, uint32_t now_s, uint32_t skew_s)
{
    memset(p, 0, sizeof *p);
    p->now_s = now_s;
    p->skew_s = skew_s;
}

static uint64_t hash_of(const struct crdt_poison_row *r)
{
    uint64_t h = hash_mix(r->hash + 0x2545f4914f6cdd1du);
    h = hash_mix(h ^ ((uint64_t)r->until << 8 | r->level));
    h = hash_mix(h ^ r->last);
    return hash_mix(h ^ r->before);
}

/* The order of values of the same hash. */
static int compare(const struct crdt_poison_row *a, const struct crdt_poison_row *b)
{
    if (a->until != b->until)
        return a->until < b->until ? -1 : 1;
    if (a->level != b->level)
        return a->level < b->level ? -1 : 1;
    if (a->last != b->last)
        return a->last < b->last ? -1 : 1;
    return a->before < b->before ? -1 : a->before > b->before;
}

static unsigned place_of(const struct crdt_poison *p, uint64_t hash)
{
    unsigned low = 0;
    unsigned high = p->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (p->row[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has(const struct crdt_poison *p, unsigned at, uint64_t hash)
{
    return at < p->count && p->row[at].hash == hash;
}

static void set_waiting(struct crdt_poison *p, unsigned at, bool waiting)
{
    p->news += waiting;
    p->news -= p->waiting[at];
    p->waiting[at] = waiting;
}

static void drop(struct crdt_poison *p, unsigned at)
{
    set_waiting(p, at, false);
    p->digest -= hash_of(&p->row[at]);
    p->count--;
    memmove(&p->row[at], &p->row[at + 1], (p->count - at) * sizeof p->row[0]);
    memmove(&p->waiting[at], &p->waiting[at + 1], (p->count - at) * sizeof p->waiting[0]);
}

void crdt_poison_advance(struct crdt_poison *p, uint32_t now_s)
{
    if (now_s <= p->now_s)
        return;
    p->now_s = now_s;
    for (unsigned i = p->count; i-- > 0;)
        if (p->row[i].until <= now_s)
            drop(p, i);
}

/* The row to drop first if the table is full. */
static unsigned least(const struct crdt_poison *p)
{
    unsigned at = 0;
    for (unsigned i = 1; i < p->count; i++)
        if (p->row[i].until < p->row[at].until) /* at equal `until` the first has the least hash */
            at = i;
    return at;
}

/* Makes room for a row: drops the least row. False: the least row is greater than the new row. */
static bool make_room(struct crdt_poison *p, const struct crdt_poison_row *row)
{
    if (p->count < CRDT_POISON_MAX)
        return true;
    unsigned at = least(p);
    const struct crdt_poison_row *l = &p->row[at];
    if (row->until < l->until || (row->until == l->until && row->hash < l->hash))
        return false;
    drop(p, at);
    return true;
}

int crdt_poison_join(struct crdt_poison *p, const struct crdt_poison_row *row)
{
    if (row->until <= p->now_s)
        return ERR_STALE;
    if (row->until - p->now_s > AHEAD_S + p->skew_s)
        return ERR_RANGE;
    unsigned at = place_of(p, row->hash);
    if (!has(p, at, row->hash)) {
        if (!make_room(p, row))
            return ERR_FULL;
        at = place_of(p, row->hash);
        memmove(&p->row[at + 1], &p->row[at], (p->count - at) * sizeof p->row[0]);
        memmove(&p->waiting[at + 1], &p->waiting[at], (p->count - at) * sizeof p->waiting[0]);
        p->count++;
        p->row[at] = *row;
        p->row[at].refused = 0;
        p->waiting[at] = false;
    } else {
        if (compare(&p->row[at], row) >= 0)
            return 0;
        p->digest -= hash_of(&p->row[at]);
        uint32_t refused = p->row[at].refused;
        p->row[at] = *row;
        p->row[at].refused = refused;
    }
    set_waiting(p, at, false); /* this router need not send the row: the sender does */
    p->digest += hash_of(&p->row[at]);
    return 1;
}

int crdt_poison_set(struct crdt_poison *p, uint64_t hash, enum crdt_poison_level level,
                    uint64_t died, uint32_t ttl_s)
{
    const struct crdt_poison_row *known = crdt_poison_find(p, hash);
    struct crdt_poison_row row = {
        .hash = hash, .until = p->now_s + ttl_s, .level = (uint8_t)level, .last = died};
    if (known != NULL) {
        row.until = row.until > known->until ? row.until : known->until + 1;
        row.last = died != 0 ? died : known->last;
        row.before = died != 0 && died != known->last ? known->last : known->before;
    }
    int err = crdt_poison_join(p, &row);
    if (err == 1)
        set_waiting(p, place_of(p, hash), true);
    return err;
}

const struct crdt_poison_row *crdt_poison_find(const struct crdt_poison *p, uint64_t hash)
{
    unsigned at = place_of(p, hash);
    return has(p, at, hash) ? &p->row[at] : NULL;
}

void crdt_poison_refused(struct crdt_poison *p, uint64_t hash)
{
    unsigned at = place_of(p, hash);
    if (has(p, at, hash))
        p->row[at].refused++;
}

int crdt_poison_news(const struct crdt_poison *p)
{
    for (unsigned i = 0; p->news > 0 && i < p->count; i++)
        if (p->waiting[i])
            return (int)i;
    return -1;
}

void crdt_poison_sent(struct crdt_poison *p, unsigned at)
{
    CHECK(at < p->count);
    set_waiting(p, at, false);
}

void crdt_poison_check(const struct crdt_poison *p)
{
    uint64_t digest = 0;
    unsigned news = 0;
    CHECK(p->count <= CRDT_POISON_MAX);
    for (unsigned i = 0; i < p->count; i++) {
        CHECK(i == 0 || p->row[i - 1].hash < p->row[i].hash);
        CHECK(p->row[i].until > p->now_s);
        digest += hash_of(&p->row[i]);
        news += p->waiting[i];
    }
    CHECK(digest == p->digest && news == p->news);
}
