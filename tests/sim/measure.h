/* Figures from the simulated network; the table of docs/simulation.md names them as such. */
#ifndef TESTS_SIM_MEASURE_H
#define TESTS_SIM_MEASURE_H

#include <stdint.h>

/* Time until all nodes hold a new observation, p50 and p99 over `count` observations, at random
 * nodes and times, while all nodes have requests of their own. */
void sim_measure_latency(uint64_t seed, unsigned nodes, double loss, unsigned count);
/* Bytes on the wire per observation, headers counted, at `per_s` observations a second. */
void sim_measure_bytes(uint64_t seed, unsigned nodes, unsigned per_s);
/* Packets that each router sends while idle. */
void sim_measure_idle(uint64_t seed, unsigned nodes);
/* Time until the load of routers that are killed at once counts nowhere any more, over `count`
 * times. */
void sim_measure_death(uint64_t seed, unsigned nodes, unsigned at_once, unsigned count);
/* Two regions, half of the routers in each: time until all hold an observation, until a restarted
 * router is ready, and until all agree after the regions were apart for five seconds. */
void sim_measure_regions(uint64_t seed, unsigned nodes, unsigned one_way_ms, double loss,
                         unsigned count);
/* Maelstrom's broadcast workload: messages between nodes per operation, and the time until an
 * element is everywhere. */
void sim_measure_broadcast(unsigned nodes, unsigned delay_ms, unsigned rate, double loss);

#endif
