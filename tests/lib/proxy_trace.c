#include "tests/lib/proxy_trace.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

static void escape(struct buf *out, struct slice bytes, size_t max)
{
    size_t n = bytes.len < max ? bytes.len : max;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes.at[i];
        int err = c == '\r'                         ? buf_append_cstr(out, "\\r")
                  : c == '\n'                       ? buf_append_cstr(out, "\\n")
                  : c == '"'                        ? buf_append_cstr(out, "\\\"")
                  : c < ' ' || c > '~' || c == '\\' ? buf_printf(out, "\\x%02x", c)
                                                    : buf_append_char(out, (char)c);
        CHECK(err == 0);
    }
    if (n < bytes.len)
        CHECK(buf_printf(out, "... %zu bytes", bytes.len) == 0);
}

/* The router's own ids say nothing, and stand everywhere. */
static bool is_own_id(struct slice field)
{
    struct slice name = slice_cut(&field, ':');
    return slice_equal_nocase(name, SLICE("x-request-id")) && slice_trim(field).len >= 32;
}

void proxy_trace_message(struct buf *out, struct slice bytes)
{
    static const char *const shown[] = {
        "content-length",   "transfer-encoding", "connection",           "retry-after", "allow",
        "authorization",    "x-request-id",      "x-data-parallel-rank", "x-api-key",   "api-key",
        "www-authenticate", "upgrade",           "x-should-retry"};
    struct slice line = slice_of(bytes.at, slice_find(bytes, '\r'));
    const char *end = memmem(bytes.at, bytes.len, "\r\n\r\n", 4);
    bool head = end != NULL && (slice_starts_with(line, SLICE("HTTP/1.1 ")) ||
                                slice_ends_with(line, SLICE(" HTTP/1.1")));
    if (head) {
        struct slice lines = slice_of(bytes.at, (size_t)(end - bytes.at));
        CHECK(buf_printf(out, " %.*s", SLICE_ARG(line)) == 0);
        while (lines.len > 0) {
            struct slice field = slice_trim(slice_cut(&lines, '\n'));
            struct slice name = slice_of(field.at, slice_find(field, ':'));
            for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
                if (slice_equal_nocase(name, slice_of_cstr(shown[i])) && !is_own_id(field))
                    CHECK(buf_printf(out, "; %.*s", (int)slice_find(field, '\r'), field.at) == 0);
            }
        }
        bytes = slice_skip(bytes, (size_t)(end - bytes.at) + 4);
    }
    if (bytes.len == 0)
        return;
    CHECK(buf_printf(out, " \"") == 0);
    escape(out, bytes, bytes.len > 300 ? 24 : 300);
    CHECK(buf_printf(out, "\"") == 0);
}

/* Empty: there is none. */
static struct slice logged(struct slice line, const char *key)
{
    const char *at = memmem(line.at, line.len, key, strlen(key));
    if (at == NULL)
        return slice_of("", 0);
    struct slice value = slice_skip(line, (size_t)(at - line.at) + strlen(key));
    value = slice_cut(&value, '\n');
    return slice_cut(&value, ' ');
}

/* Of a request that ended badly: how, why and by which setting. Else nothing. */
static void write_end(char out[128], struct slice line)
{
    struct slice end = logged(line, " end="), reason = logged(line, " reason="),
                 limit = logged(line, " limit=");
    out[0] = '\0';
    if (slice_equal(end, SLICE("whole")) && !slice_equal(reason, SLICE("error_event")) &&
        !slice_equal(reason, SLICE("aborted")))
        return;
    bool has_reason = !slice_equal(reason, SLICE("\"\""));
    bool has_limit = !slice_equal(limit, SLICE("\"\""));
    (void)snprintf(out, 128, " end=%.*s%s%.*s%s%.*s", SLICE_ARG(end), has_reason ? " reason=" : "",
                   has_reason ? (int)reason.len : 0, reason.at, has_limit ? " limit=" : "",
                   has_limit ? (int)limit.len : 0, limit.at);
}

void proxy_trace_log_end(char out[128], struct slice event, struct slice line)
{
    struct slice replicas = logged(line, " replicas=");
    out[0] = '\0';
    if (slice_equal(event, SLICE("request")))
        write_end(out, line);
    else if (replicas.len > 0)
        (void)snprintf(out, 128, " replicas=%.*s", SLICE_ARG(replicas));
}
