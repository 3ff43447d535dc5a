/* Named cases. Each measures one promise of promises.md and reports if it is kept. */
#ifndef TESTS_BENCH_QUALITY_CASES_H
#define TESTS_BENCH_QUALITY_CASES_H

#include "tests/bench/quality/play.h"

/* An engine as the router's defaults expect it, so many times faster. */
struct engine_spec engine_plain(double speed, double cache_tokens, uint32_t block_tokens);

/* So many such engines behind so many routers; what else a case may have is to be set. Borrows the
 * workload. */
struct quality_case case_plain(const struct workload *w, unsigned engines, unsigned routers,
                               struct engine_spec each);

/* `name` NULL: all of them. Returns how many promises were not kept. */
unsigned cases_run(const char *name, const char *traces);

#endif
