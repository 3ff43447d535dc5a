/* CHECK(condition): aborts with a message if the condition is false, in release builds too.
 *
 * CHECK is for bugs of this program. If a client, an engine or a peer can cause the condition,
 * return an error instead (err.h).
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (__builtin_expect(!(condition), 0))                                                     \
            check_failed(__FILE__, __LINE__, #condition);                                          \
    } while (0)

/* For expensive checks, such as decoding what was just encoded: checked in tests (under ASan and in
 * the simulator), only compiled elsewhere. */
#if defined(__SANITIZE_ADDRESS__) || defined(GRAPEVINE_LAB) || defined(__clang_analyzer__)
#define CHECK_SLOW(condition) CHECK(condition)
#else
#define CHECK_SLOW(condition)                                                                      \
    do {                                                                                           \
        if (0)                                                                                     \
            CHECK(condition);                                                                      \
    } while (0)
#endif
#if defined(__has_feature) /* clang: the fuzz targets */
#if __has_feature(address_sanitizer)
#undef CHECK_SLOW
#define CHECK_SLOW(condition) CHECK(condition)
#endif
#endif

#define CHECK_UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* The struct whose `member` is at `pointer`. */
#define CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
