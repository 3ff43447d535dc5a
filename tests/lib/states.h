/* For tests of the replicated state: making states, joining them whole, running anti-entropy
 * between two, and comparing them by content, not by digest. */
#ifndef TESTS_LIB_STATES_H
#define TESTS_LIB_STATES_H

#include "crdt/state.h"

struct states_setting {
    uint64_t self;
    uint32_t ttl;       /* 0: states_ttl */
    uint32_t now;       /* 0: 1,000 */
    uint64_t bytes_max; /* memory of the index; 0: states_bytes */
    uint64_t outbox_bytes;
    unsigned replicas_max; /* 0: 64 */
};
/* Limits for tests with thousands of states: 12 generations, 8 MiB. */
extern uint32_t states_ttl;
extern uint64_t states_bytes;
/* With the routers 1 .. 3 alive in life 1. */
struct crdt_state *states_make(const struct states_setting *setting);

/* into := into join from, by a snapshot. */
void states_join(struct crdt_state *into, const struct crdt_state *from);
/* A new state, the join of two. */
struct crdt_state *states_joined(const struct crdt_state *a, const struct crdt_state *b);

/* Compares by digest from a generation on, and row by row; both must agree. */
bool states_equal(struct crdt_state *a, struct crdt_state *b, uint32_t from);

/* A complete exchange begun by `a`. */
struct states_exchange {
    unsigned messages;
    uint64_t bytes, longest; /* bytes of all messages; of the longest message */
    uint64_t differences;
    uint64_t joined;
    bool equal;
    bool too_many;
    bool incomparable;
};
struct states_exchange states_reconcile(struct crdt_state *a, struct crdt_state *b, bool settled);

/* Sends all waiting rows as deltas to no router (the rows count as sent then). */
uint64_t states_tell_nobody(struct crdt_state *s, uint64_t seq);

/* A prompt of `points` checkpoints, equal for equal seeds. */
void states_prompt(struct chain *chain, uint64_t seed, unsigned points);
unsigned states_replica(struct crdt_state *s, unsigned number);

#endif
