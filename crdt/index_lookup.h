/* What the table knows of an id, for learning and for asking. */
#ifndef CRDT_INDEX_LOOKUP_H
#define CRDT_INDEX_LOOKUP_H

#include "crdt/index_state.h"

struct crdt_lookup {
    uint64_t *entry;  /* the live single entry of the replica, or NULL */
    uint64_t *set;    /* the entry that names the id's set, or NULL */
    unsigned holders; /* live single entries, of any replica */
};

static inline void crdt_look_in(const struct crdt_index *x, uint32_t bucket, unsigned second,
                                uint32_t tag, uint8_t code, unsigned replica,
                                struct crdt_lookup *out)
{
    struct crdt_bucket *b = &x->table.bucket[bucket];
    for (unsigned found = crdt_bucket_find(b, tag, code, second); found != 0; found &= found - 1) {
        uint64_t *entry = &b->slot[__builtin_ctz(found)];
        uint32_t stamp = crdt_entry_stamp(*entry);
        if (crdt_entry_is_set(*entry)) {
            out->set = entry;
        } else if (crdt_stamp_alive(&x->window, stamp)) {
            out->holders++;
            if (crdt_stamp_replica(stamp) == replica)
                out->entry = entry;
        }
    }
}

static inline struct crdt_lookup crdt_look_up(const struct crdt_index *x, struct crdt_place place,
                                              uint8_t code, unsigned replica)
{
    struct crdt_lookup found = {0};
    crdt_look_in(x, place.first, 0, place.tag, code, replica, &found);
    bool done = found.entry != NULL || found.set != NULL;
    if (!done && x->table.bucket[place.first].overflow > 0)
        crdt_look_in(x, place.second, CRDT_ENTRY_SECOND, place.tag, code, replica, &found);
    return found;
}

#endif
