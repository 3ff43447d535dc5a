/* Operations of tests on the replicated state, not needed by routers. */
#ifndef TESTS_LIB_STATE_HELP_H
#define TESTS_LIB_STATE_HELP_H

#include "base/err.h"
#include "crdt/state.h"

/* The slot of a replica by name, made if new. This router does not list the replica, so the state
 * will forget it. Errors as crdt_state_name(). */
MUST_USE static inline int state_replica(struct crdt_state *s, struct slice name)
{
    int slot = crdt_state_name(s, name);
    crdt_state_unname(s, name);
    return slot;
}

/* Advances to the beginning of a generation of the default length. */
static inline void state_advance(struct crdt_state *s, uint32_t now_generation)
{
    crdt_state_clock(s, (uint64_t)now_generation * 15000);
}

#endif
