#include "node/io/log_sink.h"

#include <limits.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

static void sink_write(void *context, struct slice line)
{
    struct io_log_sink *s = context;
    /* A pipe that can be written to takes PIPE_BUF bytes without blocking, and whole. */
    _Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line must not block");
    struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 1 || write(s->fd, line.at, line.len) != (ssize_t)line.len)
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
    log_init(&s->log, sink_write, sink_clock_ms, s);
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

uint64_t io_log_dropped(const struct log *log)
{
    const struct io_log_sink *s = log->context;
    return s->dropped;
}
