/* What a later version of this program might add, for tests of mixed builds (`make build-future`,
 * tests/e2e/test_versions.py): kinds, fields and frames that the ordinary build does not know, and
 * a greater version. Only GRAPEVINE_FUTURE, which only that build sets, brings any of it; FUTURE is
 * 0 otherwise, and the compiler removes what it guards.
 *
 * Such a build speaks the versions that FUTURE_SPEAKS in the environment names ("3-3"), if it is
 * set: one that shares none with the others is not understood.
 */
#ifndef BASE_FUTURE_H
#define BASE_FUTURE_H

#include "base/slice.h"

enum { FUTURE_KIND = 200 }; /* of a record, section, frame or chunk */

/* Behind whatever has room. No zero at the end. */
#define FUTURE_BYTES SLICE("\x2a of a later version")
/* Behind the head of a delta or part, where there is little. */
#define FUTURE_HEAD_BYTES SLICE("\x2a!")

#ifdef GRAPEVINE_FUTURE
#define FUTURE                   1
#define FUTURE_LEARNED_FIELDS(X) X(u32, future, CHANGED) /* crdt/learned.h */
#define FUTURE_LEARN(learned)    ((learned)->future = 4711)
#else
#define FUTURE 0
#define FUTURE_LEARNED_FIELDS(X)
#define FUTURE_LEARN(learned) ((void)(learned))
#endif

#endif
