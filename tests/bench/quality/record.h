/* Results for programs: a file of JSON lines, in addition to the printed text. Without a file
 * nothing is recorded.
 *
 *   {"kind":"row", "case":.., "says":.., "policy":.., "bound":.., "cached":.., "ttft_s":.., ...}
 *   {"kind":"promise", "name":.., "kept":.., "says":..}
 *
 * Broken promises are remembered for the exit status. */
#ifndef TESTS_BENCH_QUALITY_RECORD_H
#define TESTS_BENCH_QUALITY_RECORD_H

#include "tests/bench/quality/report.h"

/* `path` NULL: none. Exits if the file cannot be written. */
void record_open(const char *path);
void record_close(void);
/* `says`: description of the case; "": the case's name suffices. */
void record_row(const struct quality_case *c, const char *says, const struct chooser *chooser,
                const struct figures *f);
/* Writes a line of output, "kept" or "BROKEN", and a line of the file. `format` begins with the
 * promise's name, a colon, the subject, and another colon. Returns `kept`. */
bool record_promise(bool kept, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { RECORD_BROKEN_MAX = 128 }; /* further promises are counted, and never in `known` */
enum record_status { RECORD_KEPT = 0, RECORD_BROKEN = 1, RECORD_KNOWN = 3 };
/* Prints a line that names the promises broken since record_open(), each up to the second colon,
 * and returns the exit status: RECORD_KNOWN if all are in `known` (such names with semicolons
 * between them; NULL: nothing). */
enum record_status record_verdict(const char *known);

#endif
