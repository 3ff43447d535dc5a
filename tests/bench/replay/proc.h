/* The kernel's figures about another process: CPU time and memory. Linux's /proc. */
#ifndef TESTS_BENCH_REPLAY_PROC_H
#define TESTS_BENCH_REPLAY_PROC_H

#include <stdint.h>

/* CPU time of all the process's threads in microseconds: to the nanosecond from schedstat if the
 * kernel has it, otherwise in ticks of 10 ms. 0: no such process. */
double proc_cpu_us(int pid);

/* Resident bytes; 0: no such process. */
uint64_t proc_rss_bytes(int pid);

#endif
