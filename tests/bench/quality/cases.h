/* Named cases: each measures one promise of docs/routing.md, and says whether it is kept. */
#ifndef TESTS_BENCH_QUALITY_CASES_H
#define TESTS_BENCH_QUALITY_CASES_H

#include "tests/bench/quality/play.h"

/* An engine as the router's defaults expect it, so many times faster. */
struct engine_spec engine_plain(double speed, double cache_tokens, uint32_t block_tokens);

/* `name` NULL: all of them. Returns how many promises were not kept. */
unsigned cases_run(const char *name, const char *traces);

#endif
