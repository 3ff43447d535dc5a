/* What runs in a process of the group. */
#ifndef TESTS_BENCH_GOSSIP_CHILD_H
#define TESTS_BENCH_GOSSIP_CHILD_H

#include "tests/bench/gossip/group.h"

struct child_setup {
    struct bench_node_setup node;
    unsigned expected; /* other members, until it is ready */
    int fd;            /* commands come in here, events go out */
};

/* The chain of a prompt that nobody has sent before, of `points` points. */
void child_chain(struct chain *chain, uint64_t number, unsigned points);

_Noreturn void child_run(const struct child_setup *setup);

#endif
