/* KV-cache events (docs/adr/0074-kv-events.md): the coding sessions at engines that publish, with
 * and without routers that read, beside perfect knowledge. All three have the same clients. */
#ifndef TESTS_BENCH_QUALITY_EVENTS_H
#define TESTS_BENCH_QUALITY_EVENTS_H

#include "tests/bench/quality/record.h"
#include "tests/bench/quality/settings.h"

void events_run(const struct settings *set);

#endif
