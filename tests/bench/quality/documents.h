/* The case `documents`: prompts of documents in any order, at engines that reuse a document
 * anywhere in the prompt, and at engines that reuse only prefixes. */
#ifndef TESTS_BENCH_QUALITY_DOCUMENTS_H
#define TESTS_BENCH_QUALITY_DOCUMENTS_H

#include "tests/bench/quality/play.h"

/* Engines of either kind, at seven tenths of their capacity. Borrows the workload, which
 * workload_rag() makes. */
struct quality_case case_of_documents(const struct workload *w, bool any_place);

unsigned case_documents(const char *traces);

#endif
