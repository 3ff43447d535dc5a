/* Shadow mode: the predicted share from cache, against the share after the switch. */
#ifndef TESTS_BENCH_QUALITY_SHADOW_H
#define TESTS_BENCH_QUALITY_SHADOW_H

#include "tests/bench/quality/settings.h"

void shadow_run(const struct settings *set);

#endif
