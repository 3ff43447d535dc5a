/* Many runs of the simulation, each in a child, and the known bugs that they must catch. */
#ifndef TESTS_SIM_CONTROLS_H
#define TESTS_SIM_CONTROLS_H

#include "tests/sim/sim.h"

/* -1: as the seed has it. */
struct sim_settings {
    uint64_t seed;
    int profile, nodes, seconds;
    enum bug bug;
    bool verbose;
};

/* Ends the process if there is none of that name. */
enum bug sim_bug_of(const char *name);

/* One run in this process, which ends if a rule is broken. Returns its steps: all events that
 * happened, each a packet that arrived, a timer, a request, a probe or a trouble. */
uint64_t sim_run_seed(const struct sim_settings *s);

/* The others return an exit status. `count` seeds from s->seed on, a line each. */
int sim_seeds(struct sim_settings *s, uint64_t count);
/* Seeds of s->profile, from s->seed on, until so many steps are done or one fails. */
int sim_steps(struct sim_settings *s, uint64_t least);
/* Each known bug, or one: every seed runs without it first, and must be clean; then with it. It
 * must be caught by the rules that the table names and no others, in its share of the seeds. 0
 * seeds: by one of so many that its share makes that all but certain. */
int sim_controls(uint64_t seeds, enum bug only);
/* Prints the table of base/bug.h, a line each. A test compares tests/sim/README.md with it. */
int sim_bugs(void);

#endif
