/* Many runs of the simulation, each in a child, and the known bugs that they must catch. */
#ifndef TESTS_SIM_CONTROLS_H
#define TESTS_SIM_CONTROLS_H

#include "tests/sim/sim.h"

/* -1: chosen by the seed */
struct sim_settings {
    uint64_t seed;
    int profile, nodes, seconds;
    enum bug bug;
    bool verbose;
};

/* Ends the process if the name is unknown. */
enum bug sim_bug_of(const char *name);

/* Runs a simulation in this process, which ends if a rule is broken. Returns the number of steps:
 * all events, each a packet that arrived, a timer, a request, a probe or a trouble. */
uint64_t sim_run_seed(const struct sim_settings *s);

/* Returns an exit status. Runs `count` seeds from s->seed on, and prints a line for each. */
int sim_seeds(struct sim_settings *s, uint64_t count);
/* Returns an exit status. Runs seeds of s->profile, from s->seed on, until `least` steps are done
 * or a seed fails. */
int sim_steps(struct sim_settings *s, uint64_t least);
/* Returns an exit status. Tests each known bug, or only bug `only`. Every seed runs without the bug
 * first, and must be clean; then with the bug. Only the rules in the table may catch it, in at
 * least the share of seeds in the table. With 0 seeds: enough seeds to make a catch all but
 * certain, given that share; a single catch is enough. */
int sim_controls(uint64_t seeds, enum bug only);
/* Returns an exit status. Prints the table of base/bug.h, a line each. A test compares
 * tests/sim/README.md with the output. */
int sim_bugs(void);

#endif
