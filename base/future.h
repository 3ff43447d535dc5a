/* What a later version of this program might add, for tests of mixed builds
 * (tests/e2e/test_versions.py): kinds, fields and frames that this version does not know, and a
 * greater version. Only VARIANT=lab sets GRAPEVINE_LAB, and then FUTURE=1 in the environment of a
 * router brings all of it. Without it FUTURE is the constant false, and the compiler removes what
 * it guards.
 *
 * Such a router speaks the versions that FUTURE_SPEAKS in the environment names ("3-3"), if it is
 * set: one that shares none with the others is not understood.
 */
#ifndef BASE_FUTURE_H
#define BASE_FUTURE_H

#include <stdbool.h>

#include "base/slice.h"

enum { FUTURE_KIND = 200 }; /* of a record, section, frame or chunk */

/* Behind whatever has room. No zero at the end. */
#define FUTURE_BYTES SLICE("\x2a of a later version")
/* Behind the head of a delta or part, where there is little. */
#define FUTURE_HEAD_BYTES SLICE("\x2a!")

/* The last fields of crdt/learned.h: always there where GRAPEVINE_LAB is set, used if FUTURE. */
#ifdef GRAPEVINE_LAB
extern bool future_active;
#define FUTURE                   future_active
#define FUTURE_LEARNED_FIELDS(X) X(u32, future, CHANGED)
#define FUTURE_LEARN(learned)    ((learned)->future = FUTURE ? 4711 : 0)
#else
#define FUTURE false
#define FUTURE_LEARNED_FIELDS(X)
#define FUTURE_LEARN(learned) ((void)(learned))
#endif

#endif
