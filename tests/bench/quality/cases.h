/* Named cases. Each measures a promise of promises.md and reports whether the promise is kept. */
#ifndef TESTS_BENCH_QUALITY_CASES_H
#define TESTS_BENCH_QUALITY_CASES_H

#include "tests/bench/quality/play.h"

/* An engine as the router's defaults expect, `speed` times as fast. */
struct engine_spec engine_plain(double speed, double cache_tokens, uint32_t block_tokens);

/* `engines` engines of that kind behind `routers` routers; the caller sets the rest. Borrows the
 * workload. */
struct quality_case case_plain(const struct workload *w, unsigned engines, unsigned routers,
                               struct engine_spec each);

/* `name` NULL: all cases. Returns the number of broken promises. */
unsigned cases_run(const char *name, const char *traces);

#endif
