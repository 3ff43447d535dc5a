/* Where log lines go: standard error, text with colour on a terminal, JSON otherwise.
 *
 * An event is one write(2). While nobody reads and the pipe is full, it is dropped and counted; the
 * loop never waits. Records, of which there may be one for every request, are gathered for one
 * write a turn of the loop, and up to IO_LOG_HELD_MAX bytes of them wait for a slow reader.
 */
#ifndef NODE_IO_LOG_SINK_H
#define NODE_IO_LOG_SINK_H

#include "base/buf.h"
#include "base/log.h"
#include "node/settings/options.h"

enum { IO_LOG_HELD_MAX = 1 << 20 };

struct io_log_sink {
    struct log log; /* what everybody else gets a pointer to */
    int fd;
    struct buf held;  /* whole lines */
    bool cut;         /* what was written last ends within a line */
    uint64_t dropped; /* lines that could not be written */
};

/* Must outlive every module that logs. Time is the system's wall clock. */
void io_log_sink_init(struct io_log_sink *s, enum log_level level, enum node_log_format format);

/* One level more verbose, from debug back to error: for SIGUSR1. Logs the new level. */
void io_log_cycle_level(struct log *log);

/* Writes the records that are held, as far as they are taken now: once a turn of the loop. */
void io_log_sink_flush(struct log *log);
/* The last of them: waits up to a second for a reader. */
void io_log_sink_close(struct log *log);

/* Lines of a sink's log that could not be written. */
uint64_t io_log_dropped(const struct log *log);

#endif
