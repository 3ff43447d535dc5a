/* Figures from the simulated network; the table of docs/replication.md names them as such. */
#ifndef TESTS_SIM_MEASURE_H
#define TESTS_SIM_MEASURE_H

#include <stdint.h>

/* Time until all nodes hold one new observation, p50 and p99 over `count` of them, at random nodes
 * and moments, while all go on with requests of their own. */
void sim_measure_latency(uint64_t seed, unsigned nodes, double loss, unsigned count);
/* Bytes on the wire per observation, headers counted, at `per_s` observations a second. */
void sim_measure_bytes(uint64_t seed, unsigned nodes, unsigned per_s);
/* Time until the load of a killed router counts nowhere any more, over `count` kills. */
void sim_measure_death(uint64_t seed, unsigned nodes, unsigned count);

#endif
