/* Decides which of two rows gets a slot first, and which is kept if the registry is full. */
#include "crdt/registry_internal.h"

bool crdt_registry_is_up(const struct crdt_registry *r, const struct crdt_replica *row)
{
    return row->up_s != 0 && r->now - row->up_s <= r->config.ttl_s;
}

static enum crdt_standing standing_of(const struct crdt_registry *r, const struct crdt_replica *row)
{
    if (row->ours || row->asked)
        return CRDT_STANDING_OWN;
    if (row->wish == CRDT_WISH_REMOVED)
        return CRDT_STANDING_REMOVED;
    if (crdt_registry_is_up(r, row))
        return CRDT_STANDING_OWN;
    if (row->down)
        return CRDT_STANDING_DOWN;
    return row->excess ? CRDT_STANDING_EXCESS : CRDT_STANDING_TOLD;
}

struct crdt_registry_rank crdt_registry_rank_of(const struct crdt_registry *r,
                                                const struct crdt_replica *row)
{
    return (struct crdt_registry_rank){
        .standing = standing_of(r, row), .born = row->born, .key = row->key};
}

bool crdt_registry_is_smaller(struct crdt_registry_rank a, struct crdt_registry_rank b)
{
    if (a.standing != b.standing)
        return a.standing < b.standing;
    return a.born != b.born ? a.born < b.born : a.key < b.key;
}
