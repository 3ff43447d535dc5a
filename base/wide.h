/* Loops over vectors, compiled twice where a machine may have wider ones than all of its kind do.
 *
 *     static WIDE_INLINED void add_all(...) { the loop }
 *     WIDE_TARGET static void add_all_wide(...) { add_all(...); }
 *     void f(...) { if (wide_has()) add_all_wide(...); else add_all(...); }
 *
 * Both give the same, to the last bit: no multiplication is fused with an addition. Vectors are not
 * passed, nor returned: how depends on the machine.
 *
 * A test may define WIDE_NONE and include such a file once more, under other names. Then it has the
 * code of a machine without wide vectors, and compares the two (tests/unit/http/content_test.c).
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
