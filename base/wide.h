/* Loops over vectors, compiled twice on architectures where only some machines have wide vectors.
 *
 *     static WIDE_INLINED void add_all(...) { the loop }
 *     WIDE_TARGET static void add_all_wide(...) { add_all(...); }
 *     void f(...) { if (wide_has()) add_all_wide(...); else add_all(...); }
 *
 * Both versions give the same result, to the last bit: no multiplication is fused with an addition.
 * Vectors are neither passed nor returned, because the convention depends on the machine.
 *
 * A test may define WIDE_NONE and include such a file a second time, under other names. This gives
 * the code of a machine without wide vectors, to compare both (tests/unit/http/content_test.c).
 */
#ifndef BASE_WIDE_H
#define BASE_WIDE_H

#include <stdbool.h>

#define WIDE_INLINED inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(WIDE_NONE)
#define WIDE_TARGET __attribute__((target("avx2")))
static inline bool wide_has(void)
{
    return __builtin_cpu_supports("avx2");
}
#else
#define WIDE_TARGET
static inline bool wide_has(void)
{
    return false;
}
#endif

#endif
