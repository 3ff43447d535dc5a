/* KV-cache events (docs/adr/0074-kv-events.md): the coding sessions at engines that publish.
 * Compares routers that read, routers that do not read, and perfect knowledge, with the same
 * clients. */
#ifndef TESTS_BENCH_QUALITY_EVENTS_H
#define TESTS_BENCH_QUALITY_EVENTS_H

#include "tests/bench/quality/record.h"
#include "tests/bench/quality/settings.h"

void events_run(const struct settings *set);

#endif
