/* Errors with outside causes: negative numbers. (Bugs of this program abort, see check.h.)
 *
 * A function that returns an error has changed nothing, except for counters where the function's
 * comment says so. Callers use every result (MUST_USE).
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_MAP(X)                                                                                 \
    X(AGAIN, -1, "more input is needed")                                                           \
    X(SYNTAX, -2, "the input is malformed")                                                        \
    X(LIMIT, -3, "the input is larger than its limit")                                             \
    X(FULL, -4, "no room is left, try later")                                                      \
    X(NOMEM, -5, "out of memory")                                                                  \
    X(NOT_FOUND, -6, "not found")                                                                  \
    X(UNSUPPORTED, -7, "not supported")                                                            \
    X(EXISTS, -8, "already there")                                                                 \
    X(RANGE, -9, "the value is out of range")                                                      \
    X(UNREACHABLE, -10, "the peer cannot be reached")                                              \
    X(TIMEOUT, -11, "the time limit has passed")                                                   \
    X(CLOSED, -12, "the peer has closed")                                                          \
    X(STALE, -13, "the input is too old")                                                          \
    X(DENIED, -14, "the peer did not prove who it is")                                             \
    X(VERSION, -15, "the peer speaks another version of the protocol")

enum err {
    ERR_OK = 0,
#define ERR_ENUM(name, value, text) ERR_##name = (value),
    ERR_MAP(ERR_ENUM)
#undef ERR_ENUM
};

/* Marks a function that may return an error: the compiler then refuses to drop the result. If an
 * error changes nothing for the caller, the call says DISCARD(f(x)), and a comment says why. */
#define MUST_USE __attribute__((warn_unused_result))
#define DISCARD(result)                                                                            \
    do {                                                                                           \
        if (result) {                                                                              \
        }                                                                                          \
    } while (0)

/* The text of an error; "ok" for 0, "unknown error" for any other number. */
const char *err_text(int err);

#endif
