/* The program that each process of the group runs. */
#ifndef TESTS_BENCH_GOSSIP_CHILD_H
#define TESTS_BENCH_GOSSIP_CHILD_H

#include "tests/bench/gossip/group.h"

struct child_setup {
    struct bench_node_setup node;
    unsigned expected; /* number of other members, until ready */
    int fd;            /* commands come in here, events go out */
};

/* Makes the chain of a new prompt of `points` points. */
void child_chain(struct chain *chain, uint64_t number, unsigned points);

_Noreturn void child_run(const struct child_setup *setup);

#endif
