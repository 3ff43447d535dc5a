#include "gossip/ring.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

enum { PLACES_FIRST = 256 };

int gossip_ring_init(struct gossip_ring *r, uint64_t bytes_max)
{
    CHECK(bytes_max < UINT32_MAX);
    *r = (struct gossip_ring){.bytes_max = bytes_max, .cap = PLACES_FIRST, .first = 1, .next = 1};
    /* Untouched pages cost nothing, so all memory is reserved at once. */
    r->bytes = malloc(bytes_max);
    r->places = calloc(r->cap, sizeof *r->places);
    if (r->bytes != NULL && r->places != NULL)
        return 0;
    gossip_ring_free(r);
    return ERR_NOMEM;
}

void gossip_ring_free(struct gossip_ring *r)
{
    free(r->bytes);
    free(r->places);
    *r = (struct gossip_ring){0};
}

void gossip_ring_restart(struct gossip_ring *r)
{
    r->first = r->next = 1;
    r->at = r->bytes_used = 0;
}

static struct gossip_ring_place *place(const struct gossip_ring *r, uint64_t seq)
{
    return &r->places[seq & (r->cap - 1)];
}

static bool grow(struct gossip_ring *r)
{
    uint64_t cap = r->cap * 2;
    struct gossip_ring_place *places = calloc(cap, sizeof *places);
    if (places == NULL)
        return false;
    for (uint64_t seq = r->first; seq < r->next; seq++)
        places[seq & (cap - 1)] = *place(r, seq);
    free(r->places);
    r->places = places;
    r->cap = cap;
    return true;
}

static void drop_oldest(struct gossip_ring *r)
{
    r->bytes_used -= place(r, r->first)->len;
    r->first++;
}

/* True if the oldest delta begins in [from, to), where the next delta is to be written. */
static bool oldest_within(const struct gossip_ring *r, uint64_t from, uint64_t to)
{
    if (r->first == r->next)
        return false;
    uint64_t offset = place(r, r->first)->offset;
    return offset >= from && offset < to;
}

uint64_t gossip_ring_put(struct gossip_ring *r, struct slice delta)
{
    CHECK(delta.len > 0 && delta.len <= r->bytes_max);
    if (r->next - r->first == r->cap && !grow(r))
        return 0;
    if (r->at + delta.len > r->bytes_max) {
        while (oldest_within(r, r->at, r->bytes_max))
            drop_oldest(r);
        r->at = 0;
    }
    while (oldest_within(r, r->at, r->at + delta.len))
        drop_oldest(r);
    memcpy(r->bytes + r->at, delta.at, delta.len);
    *place(r, r->next) =
        (struct gossip_ring_place){.offset = (uint32_t)r->at, .len = (uint32_t)delta.len};
    r->at += delta.len;
    r->bytes_used += delta.len;
    return r->next++;
}

bool gossip_ring_get(const struct gossip_ring *r, uint64_t seq, struct slice *out)
{
    if (seq < r->first || seq >= r->next)
        return false;
    const struct gossip_ring_place *p = place(r, seq);
    *out = slice_of((const char *)r->bytes + p->offset, p->len);
    return true;
}

void gossip_ring_check(const struct gossip_ring *r)
{
    CHECK(r->first >= 1 && r->first <= r->next && r->next - r->first <= r->cap);
    CHECK(r->bytes_used <= r->bytes_max && r->at <= r->bytes_max);
    CHECK((r->first == r->next) == (r->bytes_used == 0));
}
