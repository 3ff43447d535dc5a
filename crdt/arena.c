#include "crdt/arena.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

enum { ORDER_FREE = 0x80 }; /* flag in `order`: the piece is free */

struct link {
    uint32_t previous;
    uint32_t next;
};

uint64_t crdt_arena_bytes(uint32_t units)
{
    return units == 0 ? 0 : (uint64_t)units * (CRDT_UNIT_BYTES + 1) + CRDT_UNIT_BYTES;
}

int crdt_arena_init(struct crdt_arena *a, uint32_t units, unsigned top)
{
    CHECK(top < CRDT_ORDERS_MAX);
    *a = (struct crdt_arena){.units = units >> top << top, .top = top};
    for (unsigned o = 0; o < CRDT_ORDERS_MAX; o++)
        a->free[o] = CRDT_ARENA_NONE;
    if (a->units == 0)
        return 0;
    a->memory = calloc((size_t)a->units + 1, CRDT_UNIT_BYTES);
    a->order = calloc(a->units, 1);
    if (a->memory == NULL || a->order == NULL) {
        crdt_arena_free(a);
        return ERR_NOMEM;
    }
    a->base = (uint8_t *)a->memory + (-(uintptr_t)a->memory & (CRDT_UNIT_BYTES - 1));
    return 0;
}

void crdt_arena_free(struct crdt_arena *a)
{
    free(a->memory);
    free(a->order);
    *a = (struct crdt_arena){0};
}

static void list_push(struct crdt_arena *a, unsigned order, uint32_t unit)
{
    struct link *l = crdt_arena_at(a, unit);
    *l = (struct link){.previous = CRDT_ARENA_NONE, .next = a->free[order]};
    if (l->next != CRDT_ARENA_NONE)
        ((struct link *)crdt_arena_at(a, l->next))->previous = unit;
    a->free[order] = unit;
    a->order[unit] = (uint8_t)(order | ORDER_FREE);
}

static void list_remove(struct crdt_arena *a, unsigned order, uint32_t unit)
{
    const struct link *l = crdt_arena_at(a, unit);
    if (l->previous == CRDT_ARENA_NONE)
        a->free[order] = l->next;
    else
        ((struct link *)crdt_arena_at(a, l->previous))->next = l->next;
    if (l->next != CRDT_ARENA_NONE)
        ((struct link *)crdt_arena_at(a, l->next))->previous = l->previous;
}

uint32_t crdt_arena_take(struct crdt_arena *a, unsigned order)
{
    CHECK(order <= a->top);
    unsigned from = order;
    while (from < a->top && a->free[from] == CRDT_ARENA_NONE)
        from++;
    uint32_t unit = a->free[from];
    if (unit != CRDT_ARENA_NONE) {
        list_remove(a, from, unit);
    } else {
        if (a->fresh == a->units)
            return CRDT_ARENA_NONE;
        unit = a->fresh;
        a->fresh += 1u << a->top;
    }
    while (from > order) {
        from--;
        list_push(a, from, unit + (1u << from));
    }
    a->order[unit] = (uint8_t)order;
    a->used += 1u << order;
    return unit;
}

void crdt_arena_give_back(struct crdt_arena *a, uint32_t unit)
{
    CHECK(unit < a->fresh && (a->order[unit] & ORDER_FREE) == 0);
    unsigned order = a->order[unit];
    a->used -= 1u << order;
    /* The buddy's first unit is the start of some piece, because all pieces come from halving. */
    while (order < a->top) {
        uint32_t buddy = unit ^ (1u << order);
        if (a->order[buddy] != (order | ORDER_FREE))
            break;
        list_remove(a, order, buddy);
        unit &= ~(1u << order);
        order++;
    }
    list_push(a, order, unit);
}

void crdt_arena_check(const struct crdt_arena *a)
{
    uint32_t used = 0;
    uint32_t unused = 0;
    for (uint32_t unit = 0; unit < a->fresh;) {
        unsigned order = a->order[unit] & ~(unsigned)ORDER_FREE;
        CHECK(order <= a->top && (unit & ((1u << order) - 1)) == 0);
        if ((a->order[unit] & ORDER_FREE) == 0)
            used += 1u << order;
        else
            unused += 1u << order;
        unit += 1u << order;
    }
    CHECK(used == a->used && used + unused == a->fresh && a->fresh <= a->units);
    for (unsigned o = 0; o <= a->top; o++) {
        uint32_t previous = CRDT_ARENA_NONE;
        for (uint32_t unit = a->free[o]; unit != CRDT_ARENA_NONE;) {
            const struct link *l = crdt_arena_at(a, unit);
            CHECK(a->order[unit] == (o | ORDER_FREE) && l->previous == previous);
            CHECK(unused >= 1u << o);
            unused -= 1u << o;
            previous = unit;
            unit = l->next;
        }
    }
    CHECK(unused == 0);
}
