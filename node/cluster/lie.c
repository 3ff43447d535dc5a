/* A lying member: for the fault `member-lies` of jepsen-lite. Only routers with bugs compiled in
 * have this code. */
#include <stdio.h>

#include "base/bug.h"
#include "base/check.h"
#include "node/cluster/replication_internal.h"

#ifndef GRAPEVINE_LAB
void node_lie(struct node_replication *n, uint64_t now_us)
{
    (void)n, (void)now_us;
}
#else

/* Seconds that an invented name still has to live when it arrives: more than a sixteenth of
 * CRDT_NAMES_TTL_S, because other routers would repeat a name that expires sooner after its
 * arrival. */
enum { NAMES_AGO_S = 75 };

enum {
    NAMES = 80,        /* more than CRDT_TOLD_MAX */
    TELL_US = 50000,   /* time between two invented names */
    TURN_US = 3000000, /* time after which another choice of replicas is reported as full */
    REQUESTS = 100000,
    TOKENS = 100000000,
};

static void tell_name(struct crdt_state *s, unsigned i)
{
    static const char *const strange[] = {"\x1b[2Jjunk", "no-port", "10.77.251.1:8000@r9", "a b:1"};
    char name[32];
    (void)snprintf(name, sizeof name, "10.77.251.%u:8000", i);
    struct slice told = i < ARRAY_LEN(strange) ? slice_of_cstr(strange[i]) : slice_of_cstr(name);
    crdt_state_lie(s, told, CRDT_NAMES_TTL_S - NAMES_AGO_S);
}

/* Reports two thirds of the replicas as full, in turn, and all replicas every fourth time. */
static void tell_loads(struct crdt_state *s, uint64_t turn)
{
    const struct crdt_registry *r = crdt_state_registry(s);
    const struct crdt_load all = {
        .requests = REQUESTS, .prefill_tokens = TOKENS, .context_tokens = TOKENS};
    for (unsigned slot = 0; slot < crdt_registry_count(r); slot++) {
        if (crdt_registry_has(r, slot) && ((slot + turn) % 3 != 0 || turn % 4 == 0))
            crdt_state_load(s, slot, &all);
    }
}

void node_lie(struct node_replication *n, uint64_t now_us)
{
    static unsigned told;
    static uint64_t due_us; /* static, because lab builds run a single router per process */
    struct crdt_state *s = node_state_crdt(n->state);
    if (told < NAMES && now_us >= due_us) {
        tell_name(s, told++);
        due_us = now_us + TELL_US;
    }
    tell_loads(s, now_us / TURN_US);
}
#endif
