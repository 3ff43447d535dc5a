/* Possible additions of a later version, for tests of mixed builds (tests/e2e/test_versions.py):
 * kinds, fields and frames unknown to this version, and a greater version number. Only VARIANT=lab
 * sets GRAPEVINE_LAB; FUTURE=1 in a router's environment then enables all of them. Otherwise FUTURE
 * is the constant false, and the compiler removes the guarded code.
 *
 * FUTURE_SPEAKS in the environment ("3-3") sets the protocol versions of a router with FUTURE=1.
 * Routers need a common version to understand each other.
 */
#ifndef BASE_FUTURE_H
#define BASE_FUTURE_H

#include <stdbool.h>

#include "base/slice.h"

enum { FUTURE_KIND = 200 }; /* an unknown kind of record, section, frame or chunk */

/* Bytes added at the end of records and frames. The last byte is not zero. */
#define FUTURE_BYTES SLICE("\x2a of a later version")
/* Bytes added to the head of a delta or part, where there is little room. */
#define FUTURE_HEAD_BYTES SLICE("\x2a!")

/* Fields added at the end of crdt/learned.h: present if GRAPEVINE_LAB is set, used if FUTURE. */
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
