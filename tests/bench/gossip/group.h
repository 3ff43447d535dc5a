/* Processes that gossip with each other on loopback, and their reports to the measuring process.
 *
 * Each child runs a bench_node. Commands go to the child and events come back as packets over a
 * socket pair. Events carry times of a clock that all processes share. */
#ifndef TESTS_BENCH_GOSSIP_GROUP_H
#define TESTS_BENCH_GOSSIP_GROUP_H

#include "tests/bench/gossip/bench.h"
#include "tests/bench/gossip/node.h"

enum { GROUP_MAX = 16 };

enum group_command_kind {
    GROUP_OBSERVE, /* a new observation, number `value`; MADE follows here, HELD elsewhere */
    GROUP_STREAM,  /* from now on `value` observations a second, 0: no more */
    GROUP_REQUEST, /* as GROUP_STREAM, made as requests of a service: with load */
    GROUP_BOOK,    /* takes `value` requests and never ends them */
    GROUP_FILL,    /* `value` observations, straight into the state; FILLED follows */
    GROUP_COUNTS,  /* COUNTED follows */
};

struct group_command {
    enum group_command_kind kind;
    uint64_t value;
};

enum group_event_kind {
    GROUP_READY,    /* the child is ready and has a session with all expected members */
    GROUP_MADE,     /* `value`: number of the observation */
    GROUP_HELD,     /* the same */
    GROUP_LOADED,   /* load of others arrived; `value`: requests */
    GROUP_UNLOADED, /* no other member has load any more */
    GROUP_FILLED,
    GROUP_COUNTED,
};

struct group_counts {
    double cpu_s;
    uint64_t packets_out, bytes_out; /* UDP payload */
    uint64_t observations;           /* observations sent to others */
    uint64_t refused;                /* datagrams */
    uint64_t members;                /* members believed alive */
    uint64_t again, gaps, deltas;
    struct crdt_digest digest;
};

struct group_event {
    enum group_event_kind kind;
    uint64_t value;
    uint64_t at_us;
    struct group_counts counts;
};

struct group_child {
    int pid; /* 0: none */
    int fd;
    uint16_t port; /* 0: any free port */
    uint16_t seed; /* 0: the first child */
    uint16_t told; /* as in bench_node_setup */
    uint64_t started_us;
};

struct group {
    unsigned count;
    uint64_t index_bytes;
    char key_file[64];
    struct group_child children[GROUP_MAX];
};

/* Starts no process; makes a new key. */
void group_init(struct group *g, uint64_t index_bytes);
/* Starts (again) child number `child`, which is ready when all `expected` others are known. */
void group_child_start(struct group *g, unsigned child, unsigned expected);
/* Initializes the group and starts `count` children, the first as the seed; waits until each is
 * ready and knows all. */
void group_start(struct group *g, unsigned count, uint64_t index_bytes);
void group_kill(struct group *g, unsigned child);
void group_end(struct group *g);

void group_tell(struct group *g, unsigned child, enum group_command_kind kind, uint64_t value);
/* Returns the child's next event of the given kind and skips others. False after `timeout_us`. */
bool group_await(struct group *g, unsigned child, enum group_event_kind kind, uint64_t timeout_us,
                 struct group_event *out);
struct group_counts group_counts_of(struct group *g, unsigned child);

/* A port that is free for UDP and TCP. */
uint16_t group_port(void);

#endif
