#include "http/events.h"

#include "http/usage.h"

/* Length of the line end at `i`: LF, CR or CRLF; 0: none. */
static size_t line_end(struct slice s, size_t i)
{
    if (i >= s.len)
        return 0;
    if (s.at[i] == '\r')
        return i + 1 < s.len && s.at[i + 1] == '\n' ? 2 : 1;
    return s.at[i] == '\n' ? 1 : 0;
}

size_t http_event_length(struct slice stream)
{
    for (size_t i = 0; i < stream.len;) {
        size_t end = line_end(stream, i);
        if (end == 0) {
            i++;
            continue;
        }
        i += end;
        size_t blank = line_end(stream, i);
        if (blank > 0)
            return i + blank;
    }
    return 0;
}

size_t http_events_whole(struct slice stream)
{
    size_t whole = 0, n;
    while ((n = http_event_length(slice_skip(stream, whole))) > 0)
        whole += n;
    return whole;
}

size_t http_events_preamble(struct slice stream)
{
    struct http_usage usage;
    http_usage_init(&usage, HTTP_USAGE_SSE);
    size_t before = 0, n;
    while ((n = http_event_length(slice_skip(stream, before))) > 0) {
        http_usage_feed(&usage, stream.at + before, n);
        if (usage.first_token || usage.error || usage.done)
            break;
        before += n;
    }
    return before;
}

struct slice http_events_data(struct slice *rest)
{
    while (rest->len > 0) {
        struct slice line = slice_cut(rest, '\n');
        line = slice_of(line.at, slice_find(line, '\r'));
        if (slice_starts_with(line, SLICE("data:")))
            return slice_trim(slice_skip(line, 5));
    }
    return slice_of(NULL, 0);
}
