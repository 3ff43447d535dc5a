/* Where log lines go: standard error, text with colour on a terminal, JSON otherwise.
 *
 * A line is one write(2). While nobody reads and the pipe is full, lines are dropped and counted;
 * the loop never waits.
 */
#ifndef NODE_IO_LOG_SINK_H
#define NODE_IO_LOG_SINK_H

#include "base/log.h"
#include "node/settings/options.h"

struct io_log_sink {
    struct log log; /* what everybody else gets a pointer to */
    int fd;
    uint64_t dropped; /* lines that could not be written */
};

/* Must outlive every module that logs. Time is the system's wall clock. */
void io_log_sink_init(struct io_log_sink *s, enum log_level level, enum node_log_format format);

/* One level more verbose, from debug back to error: for SIGUSR1. Logs the new level. */
void io_log_cycle_level(struct log *log);

/* Lines of a sink's log that could not be written. */
uint64_t io_log_dropped(const struct log *log);

#endif
