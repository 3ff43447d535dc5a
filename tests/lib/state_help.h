/* What tests do with the replicated state that no router does. */
#ifndef TESTS_LIB_STATE_HELP_H
#define TESTS_LIB_STATE_HELP_H

#include "base/err.h"
#include "crdt/state_internal.h"

/* The slot of a replica by name, made if new, which this router does not name: it will be
 * forgotten. Errors as crdt_state_name(). */
MUST_USE static inline int state_replica(struct crdt_state *s, struct slice name)
{
    int slot = crdt_state_name(s, name);
    crdt_state_unname(s, name);
    return slot;
}

/* An operator's wish; 1 if it was news, else 0. The row is no news by that for other routers. */
MUST_USE static inline int state_wish(struct crdt_state *s, unsigned slot, enum crdt_wish wish)
{
    bool news = crdt_registry_wish(s->registry, slot, wish);
    crdt_state_follow_registry(s);
    return news;
}

static inline void state_advance(struct crdt_state *s, uint32_t now_generation)
{
    crdt_state_clock(s, (uint64_t)now_generation * s->generation_ms);
}

#endif
