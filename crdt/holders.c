#include "crdt/holders.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"

enum {
    LIST_PER_UNIT = CRDT_UNIT_BYTES / 4,
    ARRAY_PER_UNIT = CRDT_UNIT_BYTES / 2,
    LANE = 32, /* replicas that a match handles together; divides ARRAY_PER_UNIT */
};

/* True if the set is an array: sets of the top order are arrays. */
static bool is_array(const struct crdt_holders *h, uint32_t set)
{
    return crdt_arena_order(&h->arena, set) == h->arena.top;
}

static uint32_t places(const struct crdt_holders *h, uint32_t set)
{
    uint32_t units = 1u << crdt_arena_order(&h->arena, set);
    return units * (is_array(h, set) ? ARRAY_PER_UNIT : LIST_PER_UNIT);
}

/* The stamp at an index, in a set of either form. */
static uint32_t stamp_at(const struct crdt_holders *h, uint32_t set, uint32_t at)
{
    const void *memory = crdt_arena_at(&h->arena, set);
    if (is_array(h, set))
        return at << CRDT_STAMP_LOW_BITS | (((const uint16_t *)memory)[at] & CRDT_STAMP_LOW_MASK);
    return ((const uint32_t *)memory)[at];
}

/* True if the stamp marks an empty place: no replica gets the incarnation in this stamp. */
static bool is_empty(uint32_t stamp)
{
    return (stamp & CRDT_STAMP_LOW_MASK) == CRDT_STAMP_LOW_MASK;
}

int crdt_holders_init(struct crdt_holders *h, const struct crdt_window *window, uint32_t replicas,
                      uint64_t bytes_max)
{
    unsigned top = 0;
    while ((uint32_t)ARRAY_PER_UNIT << top < replicas)
        top++;
    uint64_t units = bytes_max / (CRDT_UNIT_BYTES + 1);
    units = units > 0 ? units - 1 : 0; /* alignment */
    uint64_t units_max = 1u << 22;     /* a set's number must fit into a table entry with a tag */
    h->window = window;
    return crdt_arena_init(&h->arena, (uint32_t)(units < units_max ? units : units_max), top);
}

void crdt_holders_free(struct crdt_holders *h)
{
    crdt_arena_free(&h->arena);
}

static uint32_t create(struct crdt_holders *h, unsigned order)
{
    uint32_t set = crdt_arena_take(&h->arena, order);
    if (set != CRDT_ARENA_NONE)
        memset(crdt_arena_at(&h->arena, set), 0xff, (size_t)CRDT_UNIT_BYTES << order);
    return set;
}

uint32_t crdt_holders_create(struct crdt_holders *h)
{
    return create(h, 0);
}

void crdt_holders_destroy(struct crdt_holders *h, uint32_t set)
{
    crdt_arena_give_back(&h->arena, set);
}

bool crdt_holders_get(const struct crdt_holders *h, uint32_t set, unsigned replica,
                      uint32_t *generation)
{
    const struct crdt_window *w = h->window;
    uint32_t at = is_array(h, set) ? replica : 0;
    uint32_t end = is_array(h, set) ? replica + 1 : places(h, set);
    for (; at < end; at++) {
        uint32_t stamp = stamp_at(h, set, at);
        if (crdt_stamp_replica(stamp) != replica || !crdt_stamp_alive(w, stamp))
            continue;
        *generation = crdt_stamp_generation(w, stamp);
        return true;
    }
    return false;
}

/* Copies the live stamps into a new set of this order, frees the old set, and sets *set to the new
 * set. ERR_FULL: there is no room for the new set, and nothing changed. */
static int move(struct crdt_holders *h, uint32_t *set, unsigned order)
{
    uint32_t to = create(h, order);
    if (to == CRDT_ARENA_NONE)
        return ERR_FULL;
    uint32_t *list = crdt_arena_at(&h->arena, to);
    uint16_t *array = crdt_arena_at(&h->arena, to);
    uint32_t stamp = 0;
    for (uint32_t at = 0, n = 0; crdt_holders_next(h, *set, &at, &stamp); n++) {
        if (order == h->arena.top)
            array[crdt_stamp_replica(stamp)] = (uint16_t)(stamp & CRDT_STAMP_LOW_MASK);
        else
            list[n] = stamp;
    }
    crdt_holders_destroy(h, *set);
    *set = to;
    return 0;
}

static bool is_dead(const struct crdt_holders *h, uint32_t stamp)
{
    return !is_empty(stamp) && !crdt_stamp_alive(h->window, stamp);
}

int crdt_holders_put(struct crdt_holders *h, uint32_t *set, unsigned replica, uint32_t generation,
                     uint32_t *taken)
{
    uint32_t stamp = crdt_stamp(h->window, replica, generation);
    *taken = CRDT_STAMP_NONE;
    if (!is_array(h, *set)) {
        uint32_t *list = crdt_arena_at(&h->arena, *set);
        uint32_t n = places(h, *set);
        uint32_t room = n;
        for (uint32_t i = 0; i < n; i++) {
            if (!crdt_stamp_alive(h->window, list[i])) {
                room = room == n ? i : room;
            } else if (crdt_stamp_replica(list[i]) == replica) {
                list[i] = stamp;
                return 0;
            }
        }
        if (room < n) {
            *taken = is_dead(h, list[room]) ? list[room] : CRDT_STAMP_NONE;
            list[room] = stamp;
            return 0;
        }
        if (move(h, set, crdt_arena_order(&h->arena, *set) + 1) != 0)
            return ERR_FULL;
        if (!is_array(h, *set)) { /* the new set has twice the places, so place n is free */
            ((uint32_t *)crdt_arena_at(&h->arena, *set))[n] = stamp;
            return 0;
        }
    }
    uint32_t before = stamp_at(h, *set, replica);
    *taken = is_dead(h, before) ? before : CRDT_STAMP_NONE;
    ((uint16_t *)crdt_arena_at(&h->arena, *set))[replica] = (uint16_t)(stamp & CRDT_STAMP_LOW_MASK);
    return 0;
}

bool crdt_holders_next_dead(const struct crdt_holders *h, uint32_t set, uint32_t *at,
                            uint32_t *stamp)
{
    uint32_t n = places(h, set);
    while (*at < n) {
        *stamp = stamp_at(h, set, (*at)++);
        if (is_dead(h, *stamp))
            return true;
    }
    return false;
}

bool crdt_holders_next(const struct crdt_holders *h, uint32_t set, uint32_t *at, uint32_t *stamp)
{
    uint32_t n = places(h, set);
    while (*at < n) {
        *stamp = stamp_at(h, set, (*at)++);
        if (crdt_stamp_alive(h->window, *stamp))
            return true;
    }
    return false;
}

uint32_t crdt_holders_tidy(struct crdt_holders *h, uint32_t *set, uint64_t *reclaimed)
{
    uint32_t alive = 0;
    uint32_t n = places(h, *set);
    for (uint32_t at = 0; at < n; at++) {
        uint32_t stamp = stamp_at(h, *set, at);
        if (crdt_stamp_alive(h->window, stamp)) {
            alive++;
            continue;
        }
        if (is_empty(stamp))
            continue;
        (*reclaimed)++;
        if (is_array(h, *set))
            ((uint16_t *)crdt_arena_at(&h->arena, *set))[at] = UINT16_MAX;
        else
            ((uint32_t *)crdt_arena_at(&h->arena, *set))[at] = CRDT_STAMP_NONE;
    }
    unsigned order = 0;
    while ((uint32_t)LIST_PER_UNIT << order < 2 * alive)
        order++;
    if (order < crdt_arena_order(&h->arena, *set))
        (void)move(h, set, order); /* no room for the smaller piece: the set stays as it is */
    return alive;
}

/* Matches an array against all unresolved replicas, LANE at a time; the compiler vectorises the
 * first loop. */
static void match_array(const struct crdt_holders *h, const uint16_t *array, struct crdt_match *m,
                        unsigned index)
{
    const struct crdt_window *w = h->window;
    const uint16_t newest = w->newest;
    for (uint32_t from = 0; from < m->replicas; from += LANE) {
        uint16_t age[LANE];
        uint16_t any = 0;
        const uint16_t *stamp = array + from;
        const uint16_t *incarnation = w->incarnation + from;
        const uint16_t *limit = m->limit + from;
        for (unsigned i = 0; i < LANE; i++) {
            age[i] = crdt_stamp_age(stamp[i], incarnation[i], newest);
            any |= age[i] < limit[i];
        }
        if (any == 0)
            continue;
        for (unsigned i = 0; i < LANE; i++) {
            if (age[i] < limit[i])
                crdt_match_resolve(m, w, from + i, age[i], index);
        }
    }
}

void crdt_holders_match(const struct crdt_holders *h, uint32_t set, struct crdt_match *m,
                        unsigned index)
{
    const struct crdt_window *w = h->window;
    if (is_array(h, set)) {
        match_array(h, crdt_arena_at(&h->arena, set), m, index);
        return;
    }
    const uint32_t *list = crdt_arena_at(&h->arena, set);
    uint32_t n = places(h, set);
    for (uint32_t i = 0; i < n; i++) {
        unsigned replica = crdt_stamp_replica(list[i]);
        uint16_t age = crdt_stamp_age((uint16_t)list[i], w->incarnation[replica], w->newest);
        if (age < m->limit[replica])
            crdt_match_resolve(m, w, replica, age, index);
    }
}

void crdt_holders_check(const struct crdt_holders *h, uint32_t set, const uint16_t *retired,
                        uint32_t span)
{
    const struct crdt_window *w = h->window;
    uint64_t seen[CRDT_WINDOW_REPLICAS / 64] = {0};
    uint32_t n = places(h, set);
    for (uint32_t at = 0; at < n; at++) {
        uint32_t stamp = stamp_at(h, set, at);
        if (is_empty(stamp))
            continue;
        unsigned replica = crdt_stamp_replica(stamp);
        unsigned incarnation = crdt_stamp_incarnation(stamp);
        CHECK(incarnation == w->incarnation[replica] >> 12 ||
              (retired[replica] >> incarnation & 1));
        CHECK((((uint32_t)w->newest - stamp) & CRDT_GENERATION_MASK) <= span);
        if (!crdt_stamp_alive(w, stamp))
            continue;
        CHECK((seen[replica / 64] >> replica % 64 & 1) == 0);
        seen[replica / 64] |= UINT64_C(1) << replica % 64;
    }
}
