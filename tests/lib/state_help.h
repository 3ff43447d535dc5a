/* What tests do with the replicated state that no router does. */
#ifndef TESTS_LIB_STATE_HELP_H
#define TESTS_LIB_STATE_HELP_H

#include "base/err.h"
#include "crdt/state.h"

/* The slot of a replica by name, made if new, which this router does not name: it will be
 * forgotten. Errors as crdt_state_name(). */
MUST_USE static inline int state_replica(struct crdt_state *s, struct slice name)
{
    int slot = crdt_state_name(s, name);
    crdt_state_unname(s, name);
    return slot;
}

/* To the beginning of a generation, of the length that a state has where none is said. */
static inline void state_advance(struct crdt_state *s, uint32_t now_generation)
{
    crdt_state_clock(s, (uint64_t)now_generation * 15000);
}

#endif
