/* What a later version of this program might add, for tests of mixed builds (`make build-future`,
 * tests/e2e/test_versions.py): kinds, fields and frames that the ordinary build does not know.
 * Without GRAPEVINE_FUTURE, which only that build sets, there is none of it.
 */
#ifndef BASE_FUTURE_H
#define BASE_FUTURE_H

#ifdef GRAPEVINE_FUTURE
#define FUTURE 1
/* A learned field, of the form of crdt/learned.h. */
#define FUTURE_LEARNED_FIELDS(X) X(u32, future, CHANGED)
#else
#define FUTURE 0
#define FUTURE_LEARNED_FIELDS(X)
#endif

/* Of records, sections and frames. */
enum { FUTURE_KIND = 200 };

/* In front of a body, or behind it, whatever it is. */
#define FUTURE_BYTES SLICE("\x2a\x63 of a later version")

#endif
