#include "node/io/log_sink.h"

#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

/* A pipe that can be written to takes PIPE_BUF bytes without blocking, and whole. */
_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line must not block");

static bool can_write(const struct io_log_sink *s, int wait_ms)
{
    struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
    return poll(&ready, 1, wait_ms) == 1;
}

/* The lines that fit into one write; at least one. */
static size_t whole_lines(struct slice held)
{
    size_t len = held.len < PIPE_BUF ? held.len : PIPE_BUF;
    while (held.at[len - 1] != '\n')
        len--;
    return len;
}

static uint64_t lines_in(struct slice lines)
{
    uint64_t n = 0;
    for (size_t i = 0; i < lines.len; i++)
        n += lines.at[i] == '\n';
    return n;
}

/* Whole lines. Those that are not taken whole are counted. A disk that is full may take half of a
 * line; that line is ended before another one follows. */
static void put(struct io_log_sink *s, struct slice lines)
{
    if (s->cut && write(s->fd, "\n", 1) == 1)
        s->cut = false;
    ssize_t n = s->cut ? 0 : write(s->fd, lines.at, lines.len);
    size_t taken = n > 0 ? (size_t)n : 0;
    s->cut |= taken > 0 && lines.at[taken - 1] != '\n';
    s->dropped += lines_in(slice_skip(lines, taken));
}

static void write_held(struct io_log_sink *s, int wait_ms)
{
    struct slice left = buf_slice(&s->held);
    while (left.len > 0 && can_write(s, wait_ms)) {
        size_t len = whole_lines(left);
        put(s, slice_of(left.at, len));
        left = slice_skip(left, len);
    }
    if (left.len > 0)
        memmove(s->held.at, left.at, left.len);
    s->held.len = left.len;
}

static void sink_record(void *context, struct slice line)
{
    struct io_log_sink *s = context;
    if (buf_append_slice(&s->held, line) != 0)
        s->dropped++;
}

/* Behind what happened before it. */
static void sink_write(void *context, struct slice line)
{
    struct io_log_sink *s = context;
    if (s->held.len > 0)
        write_held(s, 0);
    if (s->held.len > 0)
        sink_record(s, line);
    else if (can_write(s, 0))
        put(s, line);
    else
        s->dropped++;
}

static uint64_t sink_clock_ms(void *context)
{
    (void)context;
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void io_log_sink_init(struct io_log_sink *s, enum log_level level, enum node_log_format format)
{
    *s = (struct io_log_sink){.fd = STDERR_FILENO};
    buf_init(&s->held, IO_LOG_HELD_MAX);
    log_init(&s->log, sink_write, sink_clock_ms, s);
    s->log.record = sink_record;
    bool terminal = isatty(s->fd) == 1;
    s->log.level = level;
    s->log.json = format == NODE_LOG_FORMAT_JSON || (format == NODE_LOG_FORMAT_AUTO && !terminal);
    s->log.color = terminal && !s->log.json;
}

void io_log_cycle_level(struct log *log)
{
    log->level = log->level == LOG_DEBUG ? LOG_ERROR : (enum log_level)(log->level + 1);
    log_event(log, LOG_ERROR, "log_level", LOG_CSTR("now", log_level_name(log->level)));
}

void io_log_sink_flush(struct log *log)
{
    struct io_log_sink *s = log->context;
    if (s->held.len > 0)
        write_held(s, 0);
}

void io_log_sink_close(struct log *log)
{
    enum { LAST_WAIT_MS = 1000 };
    struct io_log_sink *s = log->context;
    write_held(s, LAST_WAIT_MS);
    s->dropped += lines_in(buf_slice(&s->held));
    buf_free(&s->held);
}

uint64_t io_log_dropped(const struct log *log)
{
    const struct io_log_sink *s = log->context;
    return s->dropped;
}
