/* Whole services: the profile that has clients and engines too. The rest is in
 * tests/sim/service. */
#ifndef TESTS_SIM_SERVICE_H
#define TESTS_SIM_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

struct service_settings {
    uint64_t seed;
    int routers; /* -1: chosen by the seed */
    int seconds;
    bool verbose;
};

/* Runs a service in this process, which ends if a rule is broken; prints a line. Returns the number
 * of steps. */
uint64_t service_run_seed(const struct service_settings *s);

#endif
