/* Shared by the fuzz targets of the proxy: settings, and the slow and simple reader of the output
 * (heads, bodies, chunks). Functions are static. */
#ifndef TESTS_FUZZ_LIB_PROXY_READ_H
#define TESTS_FUZZ_LIB_PROXY_READ_H

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/slice.h"

/* Time limits short enough for a script to reach, as names and values. */
#define SHORT_LIMITS                                                                               \
    "client-idle-timeout", "500ms", "client-head-timeout", "300ms", "client-body-timeout",         \
        "300ms", "client-write-timeout", "500ms", "upstream-connect-timeout", "200ms",             \
        "upstream-idle-timeout", "300ms"
#define SHORT_ANSWERS                                                                              \
    "upstream-first-token-timeout", "300ms", "upstream-whole-answer-timeout", "400ms"

static struct slice line_of(struct slice head, const char *name)
{
    while (head.len > 0) {
        struct slice line = slice_cut(&head, '\n');
        struct slice key = slice_cut(&line, ':');
        if (slice_equal_nocase(key, slice_of_cstr(name)))
            return slice_trim(slice_of(line.at, slice_find(line, '\r')));
    }
    return slice_of(NULL, 0);
}

/* The head at the front of `rest`; false: not whole. */
static bool cut_head(struct slice *rest, struct slice *head)
{
    const char *end = rest->len == 0 ? NULL : memmem(rest->at, rest->len, "\r\n\r\n", 4);
    if (end == NULL)
        return false;
    *head = slice_of(rest->at, (size_t)(end - rest->at) + 4);
    *rest = slice_skip(*rest, head->len);
    return true;
}

static uint64_t number(struct slice s)
{
    uint64_t n = 0;
    CHECK(s.at == NULL || slice_to_u64(s, &n) == 0);
    return n;
}

/* Cuts a body off. Returns true if the body is whole. */
static bool cut_body(struct slice head, struct slice *rest, bool none, struct buf *body)
{
    struct slice length = line_of(head, "content-length");
    if (none)
        return true;
    if (length.at != NULL) {
        size_t wanted = (size_t)number(length), n = rest->len < wanted ? rest->len : wanted;
        CHECK(buf_append(body, rest->at, n) == 0);
        *rest = slice_skip(*rest, n);
        return n == wanted;
    }
    if (line_of(head, "transfer-encoding").at == NULL) {
        CHECK(buf_append_slice(body, *rest) == 0);
        *rest = slice_of(NULL, 0);
        return true; /* the body is whole if the end is proper */
    }
    for (;;) {
        struct slice line = *rest;
        struct slice data = slice_skip(line, slice_find(line, '\n') + 1);
        size_t n = data.len > 0 ? (size_t)strtoul(line.at, NULL, 16) : SIZE_MAX - 2;
        CHECK(data.len == 0 || buf_append(body, data.at, data.len < n ? data.len : n) == 0);
        *rest = slice_skip(data, n + 2);
        if (data.len < n + 2)
            return false;
        CHECK(memcmp(data.at + n, "\r\n", 2) == 0);
        if (n == 0)
            return true;
    }
}

#endif
