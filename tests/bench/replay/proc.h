/* What the kernel says about another process: CPU time and memory. Linux's /proc. */
#ifndef TESTS_BENCH_REPLAY_PROC_H
#define TESTS_BENCH_REPLAY_PROC_H

#include <stdint.h>

/* CPU time of all its threads in microseconds: to the nanosecond from schedstat where the kernel
 * keeps it, in ticks of 10 ms otherwise. 0 if there is no such process. */
double proc_cpu_us(int pid);

/* Resident bytes; 0 if there is no such process. */
uint64_t proc_rss_bytes(int pid);

#endif
