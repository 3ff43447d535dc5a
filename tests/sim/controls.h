/* Many runs of the simulation, each in a child, and the known bugs that they must catch. */
#ifndef TESTS_SIM_CONTROLS_H
#define TESTS_SIM_CONTROLS_H

#include "tests/sim/sim.h"

/* -1: by the seed. */
struct sim_settings {
    uint64_t seed;
    int profile, nodes, seconds;
    enum bug bug;
    bool verbose;
};

/* Ends the process if the name is unknown. */
enum bug sim_bug_of(const char *name);

/* One run in this process, which ends if a rule is broken. Returns its steps: all events, each a
 * packet that arrived, a timer, a request, a probe or a trouble. */
uint64_t sim_run_seed(const struct sim_settings *s);

/* The others return an exit status. `count` seeds from s->seed on, a line each. */
int sim_seeds(struct sim_settings *s, uint64_t count);
/* Seeds of s->profile, from s->seed on, until so many steps are done or one fails. */
int sim_steps(struct sim_settings *s, uint64_t least);
/* Tests each known bug, or one. Every seed runs without the bug first, and must be clean; then
 * with the bug. Only the rules in the table may catch it, in its share of the seeds. With 0
 * seeds: enough seeds to make a catch all but certain, given its share; one of them must catch
 * the bug. */
int sim_controls(uint64_t seeds, enum bug only);
/* Prints the table of base/bug.h, a line each. A test compares tests/sim/README.md with the
 * output. */
int sim_bugs(void);

#endif
