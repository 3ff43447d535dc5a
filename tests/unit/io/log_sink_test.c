#include "tests/lib/test.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "node/io/log_sink.h"

static int pipe_fds[2];
static struct io_log_sink sink;

static int setup(void **state)
{
    (void)state;
    (void)alarm(60); /* otherwise a wait for a frozen disk never ends */
    io_log_sink_init(&sink, LOG_INFO, NODE_LOG_FORMAT_JSON);
    if (pipe(pipe_fds) != 0)
        return -1;
    sink.fd = pipe_fds[1];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    io_log_sink_close(&sink.log);
    (void)close(pipe_fds[0]);
    (void)close(pipe_fds[1]);
    return 0;
}

static void test_format(void **state)
{
    (void)state;
    assert_true(sink.log.json);
    assert_false(sink.log.color);
    struct io_log_sink text;
    io_log_sink_init(&text, LOG_WARN, NODE_LOG_FORMAT_TEXT);
    assert_false(text.log.json);
    assert_int_equal(text.log.level, LOG_WARN);
    assert_int_equal(text.fd, STDERR_FILENO);
    io_log_sink_close(&text.log);
}

static void test_writes_the_wall_clock(void **state)
{
    (void)state;
    log_event(&sink.log, LOG_INFO, "hello", LOG_INT("n", 1));
    char line[LOG_LINE_MAX + 1] = "";
    assert_true(read(pipe_fds[0], line, LOG_LINE_MAX) > 0);
    time_t now = time(NULL);
    struct tm tm;
    char day[32];
    assert_non_null(gmtime_r(&now, &tm));
    assert_true(strftime(day, sizeof day, "{\"time\":\"%Y-%m-", &tm) > 0);
    assert_memory_equal(line, day, strlen(day));
    assert_non_null(strstr(line, "\"event\":\"hello\",\"n\":1}\n"));
}

static void log_long(int lines)
{
    char value[300];
    memset(value, 'v', sizeof value);
    sink.log.burst = 0;
    for (int i = 0; i < lines; i++)
        log_event(&sink.log, LOG_INFO, "x", LOG_STR("v", slice_of(value, sizeof value)));
}

/* Nobody reads the pipe: the process goes on; whole lines are dropped and counted. */
static void test_a_full_pipe_does_not_block(void **state)
{
    (void)state;
    enum { LINES = 4000 };
    log_long(LINES);
    assert_true(io_log_dropped(&sink.log) > 0 && io_log_dropped(&sink.log) < LINES);
    io_log_sink_close(&sink.log);
    (void)close(pipe_fds[1]);
    unsigned whole = 0;
    char chunk[4096];
    ssize_t n;
    char last = 0;
    while ((n = read(pipe_fds[0], chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            whole += chunk[i] == '\n';
        last = chunk[n - 1];
    }
    assert_int_equal(last, '\n');
    assert_int_equal(whole + io_log_dropped(&sink.log), LINES);
    pipe_fds[1] = dup(pipe_fds[0]);
}

static const struct log_field number[] = {{.name = "n", .type = LOG_FIELD_INT, .value.i = 1}};

/* Every request has a line, however many come in a second: lines once ended at the fiftieth. The
 * lines wait for a slow reader, and come before the event logged after them. */
static void test_no_record_is_lost(void **state)
{
    (void)state;
    enum { RECORDS = 5000 };
    for (int i = 0; i < RECORDS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    log_event(&sink.log, LOG_INFO, "behind", LOG_INT("n", 2));
    unsigned lines = 0;
    char chunk[4096];
    ssize_t n;
    do { /* a pipe holds fewer bytes than the records */
        io_log_sink_flush(&sink.log);
        n = read(pipe_fds[0], chunk, sizeof chunk);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            lines += chunk[i] == '\n';
    } while (lines <= RECORDS);
    assert_int_equal(lines, RECORDS + 1);
    static const char last[] = "\"behind\",\"n\":2}\n";
    assert_memory_equal(chunk + n - strlen(last), last, strlen(last));
    assert_int_equal(io_log_dropped(&sink.log), 0);
    io_log_sink_close(&sink.log);
}

/* Nobody reads at all: the buffer is bounded, and losses are counted. */
static void test_unread_records_are_bounded_and_counted(void **state)
{
    (void)state;
    enum { RECORDS = 50000 };
    for (int i = 0; i < RECORDS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    uint64_t dropped = io_log_dropped(&sink.log);
    assert_true(dropped > 0 && dropped < RECORDS);
    log_event(&sink.log, LOG_INFO, "an event", LOG_INT("n", 1)); /* an event still has room */
    assert_int_equal(io_log_dropped(&sink.log), dropped);
    io_log_sink_close(&sink.log);
    assert_true(io_log_dropped(&sink.log) < RECORDS);
}

/* A full disk takes half of a line. The next line, once room was free, was glued to the half, and
 * no reader of JSON understood either. */
static void test_a_full_disk_cuts_one_line(void **state)
{
    (void)state;
    enum { EVENTS = 30, FULL = 1000 };
    FILE *disk = tmpfile();
    struct rlimit all;
    assert_non_null(disk);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
    struct rlimit full = {.rlim_cur = FULL, .rlim_max = all.rlim_max};
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    sink.fd = fileno(disk);
    sink.log.burst = 0;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    for (int i = 0; i < EVENTS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    io_log_sink_flush(&sink.log);
    log_event(&sink.log, LOG_INFO, "lost", LOG_INT("n", 1));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
    log_event(&sink.log, LOG_INFO, "there is room", LOG_INT("n", 2));
    io_log_sink_close(&sink.log);
    (void)signal(SIGXFSZ, before);
    rewind(disk);
    char line[LOG_LINE_MAX + 1];
    unsigned whole = 0;
    unsigned cut = 0;
    while (fgets(line, sizeof line, disk) != NULL) {
        bool ends = strstr(line, "}\n") != NULL;
        whole += ends && strstr(line + 1, "{\"time\"") == NULL;
        cut += !ends;
    }
    assert_non_null(strstr(line, "there is room"));
    assert_int_equal(cut, 1);
    assert_int_equal(whole + io_log_dropped(&sink.log), EVENTS + 2);
    (void)fclose(disk);
}

/* --- with its thread ------------------------------------------------------------------------ */

/* Replaces libc's write(): a hanging disk reports readiness, and then write() does not return. */
static atomic_bool frozen;

ssize_t write(int fd, const void *bytes, size_t len)
{
    while (fd == sink.fd && atomic_load(&frozen))
        (void)poll(NULL, 0, 1);
    return (ssize_t)syscall(SYS_write, fd, bytes, len);
}

/* Nor does a disk, or a kernel before 6.4, report beforehand that a write would wait. */
ssize_t pwritev2(int fd, const struct iovec *from, int n, off_t at, int flags)
{
    if (fd != sink.fd || !atomic_load(&frozen))
        return syscall(SYS_pwritev2, fd, from, n, at, at >> 63, flags);
    errno = EOPNOTSUPP;
    return -1;
}

static unsigned lines_until(int fd, const char *end)
{
    static char all[4 << 20];
    size_t len = 0;
    unsigned lines = 0;
    while (len + PIPE_BUF < sizeof all && (len == 0 || strstr(all, end) == NULL)) {
        ssize_t n = read(fd, all + len, PIPE_BUF);
        if (n <= 0)
            break;
        len += (size_t)n;
        all[len] = '\0';
    }
    for (size_t i = 0; i < len; i++)
        lines += all[i] == '\n';
    assert_true(len > 0 && all[len - 1] == '\n');
    return lines;
}

/* A hanging disk once stopped the event loop. Now lines beyond the buffer are dropped, and the log
 * counts them. */
static void test_a_hung_disk_drops_lines(void **state)
{
    (void)state;
    enum { LINES = 5000 };
    int reader = pipe_fds[0];
    io_log_sink_start(&sink.log);
    atomic_store(&frozen, true);
    log_long(LINES);
    io_log_sink_flush(&sink.log);
    atomic_store(&frozen, false);
    uint64_t dropped = io_log_dropped(&sink.log);
    assert_true(dropped > 0 && dropped < LINES);
    static char chunk[PIPE_BUF];
    unsigned lines = 0;
    while (atomic_load(&sink.head) - atomic_load(&sink.tail) > IO_LOG_HELD_MAX / 2) {
        ssize_t n = read(reader, chunk, sizeof chunk);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            lines += chunk[i] == '\n';
    }
    io_log_sink_flush(&sink.log); /* room is free again */
    log_event(&sink.log, LOG_INFO, "the last", LOG_INT("n", 1));
    lines += lines_until(reader, "the last");
    assert_int_equal(lines + io_log_dropped(&sink.log),
                     LINES + 3); /* log_stalled, _lines_dropped */
    io_log_sink_close(&sink.log);
}

/* With a thread each waiting call of the loop costs more, so no thread runs while a pipe takes
 * every line. The first refused line starts a thread; nothing is lost or out of order. */
static void test_a_pipe_needs_no_thread_until_it_is_full(void **state)
{
    (void)state;
    enum { RECORDS = 2000 };
    io_log_sink_start(&sink.log);
    for (int i = 0; i < 10; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    io_log_sink_flush(&sink.log);
    assert_int_equal(atomic_load(&sink.tail), atomic_load(&sink.head));
    assert_false(sink.threaded);
    for (int i = 10; i < RECORDS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    io_log_sink_flush(&sink.log);
    assert_true(sink.threaded);
    log_event(&sink.log, LOG_INFO, "behind", LOG_INT("n", 1));
    assert_int_equal(lines_until(pipe_fds[0], "behind"), RECORDS + 1);
    assert_int_equal(io_log_dropped(&sink.log), 0);
}

/* After the end all logged lines have been written, in order, and so have lines logged later. */
static void test_nothing_is_lost_at_the_end(void **state)
{
    (void)state;
    enum { RECORDS = 100 };
    io_log_sink_start(&sink.log);
    for (int i = 0; i < RECORDS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    log_event(&sink.log, LOG_INFO, "exit", LOG_INT("status", 0));
    io_log_sink_close(&sink.log);
    log_event(&sink.log, LOG_INFO, "behind", LOG_INT("n", 1));
    assert_int_equal(lines_until(pipe_fds[0], "behind"), RECORDS + 2);
    assert_int_equal(io_log_dropped(&sink.log), 0);
}

static time_t ahead_s; /* the wall clock's lead, for all calls of this program */

int clock_gettime(clockid_t id, struct timespec *out)
{
    int err = (int)syscall(SYS_clock_gettime, id, out);
    out->tv_sec += id == CLOCK_REALTIME ? ahead_s : 0;
    return err;
}

/* The sink ends within a second though the disk hangs, and though the wall clock is set meanwhile:
 * the clock was an hour ahead when the second began. */
static void test_the_end_waits_for_no_disk(void **state)
{
    (void)state;
    io_log_sink_start(&sink.log);
    ahead_s = 3600;
    atomic_store(&frozen, true);
    log_long(10);
    io_log_sink_close(&sink.log);
    ahead_s = 0;
    log_event(&sink.log, LOG_INFO, "behind", LOG_INT("n", 1));
    assert_true(atomic_load(&sink.head) > atomic_load(&sink.tail));
    atomic_store(&frozen, false);
    assert_int_equal(lines_until(pipe_fds[0], "behind"), 11);
    assert_int_equal(uv_thread_join(&sink.thread), 0);
}

/* A bug ends the process: the lines logged before have been written. */
static void test_an_aborting_process_has_written_its_lines(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        io_log_sink_start(&sink.log);
        log_event(&sink.log, LOG_INFO, "before", LOG_INT("n", 1));
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
        abort();
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_int_equal(lines_until(pipe_fds[0], "\"request\""), 2);
}

static void test_log_levels_cycle(void **state)
{
    (void)state;
    static const enum log_level after[] = {LOG_DEBUG, LOG_ERROR, LOG_WARN, LOG_INFO};
    for (unsigned i = 0; i < 4; i++) {
        io_log_cycle_level(&sink.log);
        assert_int_equal(sink.log.level, after[i]);
    }
    char text[2000] = "";
    assert_true(read(pipe_fds[0], text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "\"log_level\",\"now\":\"error\""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_format),
        TEST(test_writes_the_wall_clock),
        TEST(test_a_full_pipe_does_not_block),
        TEST(test_no_record_is_lost),
        TEST(test_unread_records_are_bounded_and_counted),
        TEST(test_a_full_disk_cuts_one_line),
        TEST(test_a_hung_disk_drops_lines),
        TEST(test_a_pipe_needs_no_thread_until_it_is_full),
        TEST(test_nothing_is_lost_at_the_end),
        TEST(test_an_aborting_process_has_written_its_lines),
        TEST(test_log_levels_cycle),
        TEST(test_the_end_waits_for_no_disk), /* the thread uses the sink to the end */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
