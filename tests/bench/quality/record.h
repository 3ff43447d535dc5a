/* Results for programs: a file of JSON lines beside the text that is printed. Without a file
 * nothing is recorded.
 *
 *   {"kind":"row", "case":.., "says":.., "policy":.., "bound":.., "cached":.., "ttft_s":.., ...}
 *   {"kind":"promise", "name":.., "kept":.., "says":..}
 */
#ifndef TESTS_BENCH_QUALITY_RECORD_H
#define TESTS_BENCH_QUALITY_RECORD_H

#include "tests/bench/quality/report.h"

/* `path` NULL: none. Exits where it cannot be written. */
void record_open(const char *path);
void record_close(void);
/* `says`: what the case is; "": its name says it. */
void record_row(const struct quality_case *c, const char *says, const struct chooser *chooser,
                const struct figures *f);
/* One line of output, "kept" or "BROKEN", and one of the file; `format` begins with the promise's
 * name and a colon. Returns `kept`. */
bool record_promise(bool kept, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
