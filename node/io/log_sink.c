#include "node/io/log_sink.h"

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/check.h"

enum {
    LAST_WAIT_MS = 1000,
    REST_MS = 1, /* rest of the thread after each turn, to limit how often it is woken */
    RECORDS_MAX = IO_LOG_HELD_MAX / 8 * 7,
    STACK_BYTES = 256 << 10, /* a few calls and PIPE_BUF, with room for a sanitizer's marks */
};

/* A writable pipe accepts PIPE_BUF bytes whole and without blocking. */
_Static_assert(LOG_LINE_MAX <= PIPE_BUF, "a line fits into one write");
_Static_assert((IO_LOG_HELD_MAX & (IO_LOG_HELD_MAX - 1)) == 0, "positions wrap");

static void wait_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

/* --- writing: by the thread, while it runs ---------------------------------------------------- */

static bool can_write(const struct io_log_sink *s, int limit_ms)
{
    struct pollfd ready = {.fd = s->fd, .events = POLLOUT};
    return poll(&ready, 1, limit_ms) == 1;
}

static uint64_t lines_in(struct slice lines)
{
    uint64_t n = 0;
    for (size_t i = 0; i < lines.len; i++)
        n += lines.at[i] == '\n';
    return n;
}

static ssize_t write_some(const struct io_log_sink *s, struct slice bytes, int limit_ms)
{
    ssize_t n;
    do {
        n = write(s->fd, bytes.at, bytes.len);
    } while (n < 0 && (errno == EINTR || (errno == EAGAIN && can_write(s, limit_ms))));
    return n;
}

/* Writes whole lines, and counts lines not written whole. After half a line, as on a full disk, the
 * next write begins with a line break. */
static void put(struct io_log_sink *s, struct slice lines, int limit_ms)
{
    if (s->cut && write_some(s, SLICE("\n"), limit_ms) == 1)
        s->cut = false;
    ssize_t n = s->cut ? 0 : 1;
    while (n > 0 && lines.len > 0) {
        n = write_some(s, lines, limit_ms);
        size_t taken = n > 0 ? (size_t)n : 0;
        s->cut = taken > 0 ? lines.at[taken - 1] != '\n' : s->cut;
        lines = slice_skip(lines, taken);
    }
    atomic_fetch_add(&s->dropped, lines_in(lines));
}

/* Copies lines out of the ring: as many as fit into a write, at least 1. */
static struct slice next_lines(const struct io_log_sink *s, char out[PIPE_BUF])
{
    uint64_t tail = atomic_load(&s->tail), left = atomic_load(&s->head) - tail;
    size_t at = tail % IO_LOG_HELD_MAX, len = left < PIPE_BUF ? (size_t)left : PIPE_BUF;
    size_t first = IO_LOG_HELD_MAX - at < len ? IO_LOG_HELD_MAX - at : len;
    if (len == 0)
        return slice_of(out, 0);
    memcpy(out, s->ring + at, first);
    memcpy(out + first, s->ring, len - first);
    while (out[len - 1] != '\n')
        len--;
    return slice_of(out, len);
}

/* Writes the ring's lines, and waits for each piece up to the limit; -1: no limit. */
static void drain(struct io_log_sink *s, int limit_ms)
{
    char room[PIPE_BUF];
    struct slice lines = next_lines(s, room);
    while (lines.len > 0 && can_write(s, limit_ms)) {
        put(s, lines, limit_ms);
        atomic_fetch_add(&s->tail, lines.len);
        lines = next_lines(s, room);
    }
}

/* Writes as much as a pipe or a socket accepts without waiting. Returns false if the rest would
 * wait, or might: for files, and with kernels before 6.4, the kernel does not say. */
static bool drain_at_once(struct io_log_sink *s)
{
    char room[PIPE_BUF];
    struct slice lines = next_lines(s, room);
    while (lines.len > 0 && !s->is_file) {
        struct iovec whole = {.iov_base = room, .iov_len = lines.len};
        ssize_t n = pwritev2(s->fd, &whole, 1, -1, RWF_NOWAIT);
        if (n < 0)
            return false;
        atomic_fetch_add(&s->tail, (size_t)n);
        lines = next_lines(s, room);
    }
    return lines.len == 0;
}

static bool all_written(const struct io_log_sink *s)
{
    return atomic_load(&s->tail) == atomic_load(&s->head);
}

/* Gives the thread a separate table of open files, with nothing beyond the log's. While two threads
 * share a table, each read and write of the loop counts uses of the file: 2 % of a request of 1 KB.
 * Kernels before 5.9 refuse, and the table stays shared. */
static void leave_files(const struct io_log_sink *s)
{
    (void)close_range((unsigned)s->fd + 1, UINT_MAX, CLOSE_RANGE_UNSHARE);
}

static void on_thread(void *context)
{
    struct io_log_sink *s = context;
    leave_files(s);
    for (;;) {
        drain(s, -1);
        if (atomic_load(&s->ending) && all_written(s))
            break;
        wait_ms(REST_MS);
        atomic_store(&s->asleep, true);
        bool idle = all_written(s) && !atomic_load(&s->ending);
        while (idle && sem_wait(&s->wake) != 0)
            continue;
        atomic_store(&s->asleep, false);
    }
    (void)sem_post(&s->ended);
}

static bool start_thread(struct io_log_sink *s)
{
    uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = STACK_BYTES};
    sigset_t all, before;
    if (sem_init(&s->wake, 0, 0) != 0 || sem_init(&s->ended, 0, 0) != 0)
        return false;
    /* The loop handles signals, so the thread blocks all of them. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    s->threaded = s->started = uv_thread_create_ex(&s->thread, &options, on_thread, s) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s->threaded;
}

/* --- appending: by the loop ------------------------------------------------------------------ */

static void wake(struct io_log_sink *s)
{
    if (atomic_exchange(&s->asleep, false))
        (void)sem_post(&s->wake);
}

/* Has the new lines written, now or soon by the thread. The thread starts when first needed,
 * because blocking calls of the loop cost more with a thread (docs/adr/0056). */
static void pass_on(struct io_log_sink *s)
{
    if (!s->threaded && (s->started || s->ring == NULL || (s->may_thread && drain_at_once(s))))
        return;
    if (s->threaded || (s->may_thread && start_thread(s)))
        wake(s);
    else
        drain(s, 0);
}

static void append(struct io_log_sink *s, struct slice line, size_t limit)
{
    uint64_t head = atomic_load(&s->head), held = head - atomic_load(&s->tail);
    if (s->ring == NULL && can_write(s, 0)) {
        put(s, line, 0);
        return;
    }
    if (s->ring == NULL || held + line.len > limit) {
        if (BUG(LOSS_UNCOUNTED))
            return;
        atomic_fetch_add(&s->dropped, 1);
        s->overflown++;
        return;
    }
    size_t at = head % IO_LOG_HELD_MAX;
    size_t first = IO_LOG_HELD_MAX - at < line.len ? IO_LOG_HELD_MAX - at : line.len;
    memcpy(s->ring + at, line.at, first);
    memcpy(s->ring, line.at + first, line.len - first);
    atomic_store(&s->head, head + line.len);
}

static void sink_record(void *context, struct slice line)
{
    append(context, line, RECORDS_MAX);
}

static void sink_write(void *context, struct slice line)
{
    struct io_log_sink *s = context;
    append(s, line, IO_LOG_HELD_MAX);
    pass_on(s);
}

/* Reports lost lines; while the loss goes on, only /events and the page can show the report. */
static void tell(struct io_log_sink *s)
{
    uint64_t held = atomic_load(&s->head) - atomic_load(&s->tail);
    if (!s->stalled) {
        s->stalled = true;
        log_event(&s->log, LOG_WARN, "log_stalled", LOG_UINT("held_bytes", held),
                  LOG_CSTR("effect", "lines are dropped until standard error accepts them again"));
    }
    if (held > IO_LOG_HELD_MAX / 2)
        return;
    uint64_t lines = s->overflown - s->overflown_told;
    s->overflown_told = s->overflown;
    s->stalled = false;
    log_event(&s->log, LOG_WARN, "log_lines_dropped", LOG_UINT("lines", lines));
}

void io_log_sink_flush(struct log *log)
{
    struct io_log_sink *s = log->context;
    if (s->overflown != s->overflown_told && s->ring != NULL)
        tell(s);
    if (!all_written(s))
        pass_on(s);
}

/* --- life ------------------------------------------------------------------------------------ */

static uint64_t sink_clock_ms(void *context)
{
    (void)context;
    struct timespec now;
    CHECK(clock_gettime(CLOCK_REALTIME, &now) == 0);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void io_log_sink_init(struct io_log_sink *s, enum log_level level, enum node_log_format format)
{
    memset(s, 0, sizeof *s);
    s->fd = STDERR_FILENO;
    s->ring = malloc(IO_LOG_HELD_MAX); /* pages are touched by the first lines written to them */
    log_init(&s->log, sink_write, sink_clock_ms, s);
    s->log.record = sink_record;
    bool terminal = isatty(s->fd) == 1;
    s->log.level = level;
    s->log.json = format == NODE_LOG_FORMAT_JSON || (format == NODE_LOG_FORMAT_AUTO && !terminal);
    s->log.color = terminal && !s->log.json;
}

/* The sink for which on_fatal() waits; NULL before the sink's start and after the close. */
static _Atomic(struct io_log_sink *) dying;

/* Handles a fatal signal. Waits for the thread to write the last lines, for a second at most;
 * without a thread, writes them. Then the signal's default effect follows. */
static void on_fatal(int number)
{
    (void)number;
    struct io_log_sink *s = atomic_load(&dying);
    if (s != NULL && !s->threaded)
        drain(s, LAST_WAIT_MS);
    for (int i = 0; s != NULL && s->threaded && !all_written(s) && i < LAST_WAIT_MS; i += REST_MS) {
        wake(s);
        wait_ms(REST_MS);
    }
}

static void watch_faults(void)
{
#if defined(__SANITIZE_ADDRESS__)
    static const int faults[] = {SIGABRT}; /* the sanitizer reports the other faults */
#else
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
#endif
    struct sigaction action = {.sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND};
    for (size_t i = 0; i < ARRAY_LEN(faults); i++)
        (void)sigaction(faults[i], &action, NULL);
}

void io_log_sink_start(struct log *log)
{
    struct io_log_sink *s = log->context;
    struct stat about;
    CHECK(!s->may_thread && !s->started);
    if (BUG(LOG_BY_LOOP))
        return;
    s->is_file = fstat(s->fd, &about) != 0 || S_ISREG(about.st_mode);
    s->may_thread = true;
    atomic_store(&dying, s);
    watch_faults();
}

/* Returns false if the thread hangs in a write. Then the thread keeps the memory, and ends with the
 * process. The semaphore's own time limit would use the wall clock, which may be set meanwhile. */
static bool end_thread(struct io_log_sink *s)
{
    atomic_store(&s->ending, true);
    (void)sem_post(&s->wake);
    int err = sem_trywait(&s->ended);
    for (int i = 0; err != 0 && i < LAST_WAIT_MS / REST_MS; i++) {
        wait_ms(REST_MS);
        err = sem_trywait(&s->ended);
    }
    s->threaded = false;
    if (err != 0)
        return false;
    s->started = false;
    (void)uv_thread_join(&s->thread);
    (void)sem_destroy(&s->wake);
    (void)sem_destroy(&s->ended);
    return true;
}

void io_log_sink_close(struct log *log)
{
    struct io_log_sink *s = log->context;
    char room[PIPE_BUF];
    struct slice lines;
    atomic_store(&dying, NULL);
    s->may_thread = false;
    if ((s->threaded && !end_thread(s)) || s->ring == NULL)
        return;
    drain(s, LAST_WAIT_MS);
    while ((lines = next_lines(s, room)).len > 0) {
        atomic_fetch_add(&s->dropped, lines_in(lines));
        atomic_fetch_add(&s->tail, lines.len);
    }
    free(s->ring);
    s->ring = NULL;
}

void io_log_cycle_level(struct log *log)
{
    log->level = log->level == LOG_DEBUG ? LOG_ERROR : (enum log_level)(log->level + 1);
    log_event(log, LOG_ERROR, "log_level", LOG_CSTR("now", log_level_name(log->level)));
}

uint64_t io_log_dropped(const struct log *log)
{
    const struct io_log_sink *s = log->context;
    return atomic_load(&s->dropped);
}
