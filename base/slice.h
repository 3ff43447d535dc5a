/* struct slice borrows bytes: it never owns them, need not end in NUL, and is passed by value. */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct slice {
    const char *at;
    size_t len;
};

/* A slice of a string literal. */
#define SLICE(literal) ((struct slice){.at = (literal), .len = sizeof(literal) - 1})

/* For printf: "%.*s", SLICE_ARG(s). */
#define SLICE_ARG(s) (int)(s).len, (s).at

static inline struct slice slice_of(const char *at, size_t len)
{
    return (struct slice){.at = at, .len = len};
}

static inline struct slice slice_of_cstr(const char *text)
{
    return (struct slice){.at = text, .len = strlen(text)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Compares secrets. The time depends on the lengths only. */
bool slice_equal_secret(struct slice a, struct slice b);

/* Compares without regard to ASCII case, as for header names and tokens (RFC 9110, section 5.1). */
bool slice_equal_nocase(struct slice a, struct slice b);
bool slice_starts_with(struct slice s, struct slice prefix);
bool slice_ends_with(struct slice s, struct slice suffix);

/* Offset of the first `byte`, or s.len. */
size_t slice_find(struct slice s, char byte);

/* The part of `s` from `from` (at most s.len) on. */
struct slice slice_skip(struct slice s, size_t from);

/* `s` without leading and trailing spaces and tabs (OWS of RFC 9110, section 5.6.3). */
struct slice slice_trim(struct slice s);

/* Cuts the part before the first `byte` off the front of `s` and returns it; `byte` itself is
 * removed too. If `s` does not have it, returns all of `s`, and `s` becomes empty. */
struct slice slice_cut(struct slice *s, char byte);

/* Reads a number of decimal digits only, without sign or spaces. ERR_SYNTAX if empty or not digits,
 * ERR_RANGE beyond uint64_t. */
MUST_USE int slice_to_u64(struct slice s, uint64_t *out);

/* Copies into a NUL-terminated array, cut to `size` - 1 bytes. Returns whether all of it fitted. */
bool slice_to_cstr(struct slice s, char *out, size_t size);

#endif
