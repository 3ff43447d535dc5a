/* The destination of log lines: standard error, text with colour on a terminal, JSON otherwise.
 *
 * Lines go through a ring of IO_LOG_HELD_MAX bytes. The loop writes as much as a pipe or a socket
 * accepts without waiting. If a write would wait, or might (a file, a terminal, a kernel before
 * 6.4), a thread starts and does all writing from then on. So a hanging disk or an idle reader
 * delays nothing but the log. Lines are dropped and counted while the ring is full; the log reports
 * the number when lines fit again. Records, perhaps as many as requests, leave an eighth of the
 * ring to events.
 *
 * Before io_log_sink_start() and after io_log_sink_close() no thread starts, and files are written
 * directly, so that errors at the start stay in order with earlier output.
 *
 *   the loop     appends at `head`; nothing else logs
 *   the thread   if started; has a separate table of open files, because a table shared with the
 *                loop costs the loop time. Writes whole lines from `tail` on, PIPE_BUF bytes at
 *                most, so that lines of two processes on a pipe do not mix. Then the thread rests
 *                for a millisecond, and sleeps until woken: at once by an event, once a turn of
 *                the loop by records.
 *
 * After abort() or a fault the process lets the thread write the rest, for a second at most.
 * SIGKILL loses the lines of the last millisecond. */
#ifndef NODE_IO_LOG_SINK_H
#define NODE_IO_LOG_SINK_H

#include <semaphore.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/log.h"
#include "node/settings/options.h"

enum { IO_LOG_HELD_MAX = 1 << 20 };

struct io_log_sink {
    struct log log; /* the interface for all other code */
    int fd;
    char *ring;               /* NULL: there is no memory, and each line is written directly */
    _Atomic uint64_t head;    /* bytes appended so far */
    _Atomic uint64_t tail;    /* bytes written so far, or lost in a failed write */
    _Atomic uint64_t dropped; /* lines not written */
    bool cut;                 /* the last write ended within a line */
    uint64_t overflown;       /* lines of `dropped` for which the ring had no room */
    uint64_t overflown_told;  /* lines of `overflown` already reported in the log */
    bool stalled;             /* the log has reported that lines are being dropped */
    bool may_thread, is_file; /* a thread may start; a write to `fd` may block at any time */
    bool threaded, started;   /* the thread runs now; it ran at some time */
    _Atomic bool asleep, ending;
    uv_thread_t thread;
    sem_t wake, ended;
};

/* The sink must outlive all modules with a log. Times are of the system's wall clock. */
void io_log_sink_init(struct io_log_sink *s, enum log_level level, enum node_log_format format);

/* Makes writes non-blocking from now on. If there is no memory for a thread, nothing changes.
 * Called once in a process. */
void io_log_sink_start(struct log *log);

/* Makes the log a level more verbose, from debug back to error: for SIGUSR1. Logs the new level. */
void io_log_cycle_level(struct log *log);

/* Writes pending records. Called once in each turn of the loop. */
void io_log_sink_flush(struct log *log);
/* Writes the last lines: waits up to a second for a reader, and ends the thread unless it hangs. */
void io_log_sink_close(struct log *log);

/* Returns the number of lines not written by a sink's log. */
uint64_t io_log_dropped(const struct log *log);

#endif
