/* Where log lines go: standard error, text with colour on a terminal, JSON otherwise.
 *
 * Lines go through a ring of IO_LOG_HELD_MAX bytes. The loop writes what a pipe or a socket takes
 * without waiting. At the first line that would wait, or might (a file, a terminal, a kernel before
 * 6.4), a thread begins that writes all from then on: a disk that hangs, or a reader that does not
 * read, holds up nothing but the log. What does not fit into the ring is dropped and counted; the
 * log says how many when there is room again. Records, of which there may be one for every request,
 * leave an eighth of the ring to events.
 *
 * Before io_log_sink_start() and after io_log_sink_close() no thread begins, and a file is written
 * as it comes: what goes wrong at the start stands behind what came before it.
 *
 *   the loop     appends at `head`; nobody else logs
 *   the thread   once it is there; has a table of open files of its own, so that the loop shares
 *                its with nobody; writes whole lines from `tail` on, PIPE_BUF bytes at most, so
 *                that those of two processes at one pipe do not mix; then it rests for a
 *                millisecond, and sleeps until it is woken: at once by an event, once a turn of the
 *                loop by records
 *
 * A process that ends by abort() or a fault lets the thread write what is there, for a second at
 * most. SIGKILL loses what was appended in the last millisecond.
 */
#ifndef NODE_IO_LOG_SINK_H
#define NODE_IO_LOG_SINK_H

#include <semaphore.h>
#include <stdatomic.h>
#include <uv.h>

#include "base/log.h"
#include "node/settings/options.h"

enum { IO_LOG_HELD_MAX = 1 << 20 };

struct io_log_sink {
    struct log log; /* what everybody else gets a pointer to */
    int fd;
    char *ring;               /* NULL: there was no memory, and lines are written one by one */
    _Atomic uint64_t head;    /* bytes that were appended, */
    _Atomic uint64_t tail;    /* and of those that were written, or lost in that */
    _Atomic uint64_t dropped; /* lines that could not be written */
    bool cut;                 /* what was written last ends within a line */
    uint64_t overflown;       /* the lines of `dropped` that the ring had no room for, */
    uint64_t overflown_told;  /* those that the log has told, */
    bool stalled;             /* and it has told that there are some */
    bool may_thread, is_file; /* between start and close; a write to it may wait at any time */
    bool threaded, started;   /* the thread is there; or once was */
    _Atomic bool asleep, ending;
    uv_thread_t thread;
    sem_t wake, ended;
};

/* Must outlive every module that logs. Time is the system's wall clock. */
void io_log_sink_init(struct io_log_sink *s, enum log_level level, enum node_log_format format);

/* From now on nothing waits for a write; without memory for a thread all stays as it is. Once a
 * process. */
void io_log_sink_start(struct log *log);

/* One level more verbose, from debug back to error: for SIGUSR1. Logs the new level. */
void io_log_cycle_level(struct log *log);

/* Has the records written that are held: once a turn of the loop. */
void io_log_sink_flush(struct log *log);
/* The last of them: waits up to a second for a reader, and ends the thread unless it hangs. */
void io_log_sink_close(struct log *log);

/* Lines of a sink's log that could not be written. */
uint64_t io_log_dropped(const struct log *log);

#endif
