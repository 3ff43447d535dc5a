#include "tests/lib/test.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "node/io/log_sink.h"

static int pipe_fds[2];
static struct io_log_sink sink;

static int setup(void **state)
{
    (void)state;
    io_log_sink_init(&sink, LOG_INFO, NODE_LOG_FORMAT_JSON);
    if (pipe(pipe_fds) != 0)
        return -1;
    sink.fd = pipe_fds[1];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
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

/* Nobody reads: the process goes on, lines are dropped whole and counted. */
static void test_a_full_pipe_does_not_block(void **state)
{
    (void)state;
    enum { LINES = 3000 };
    char value[300];
    memset(value, 'v', sizeof value);
    sink.log.burst = 0;
    for (int i = 0; i < LINES; i++)
        log_event(&sink.log, LOG_INFO, "x", LOG_STR("v", slice_of(value, sizeof value)));
    assert_true(sink.dropped > 0 && sink.dropped < LINES);
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
    assert_int_equal(whole + sink.dropped, LINES);
    pipe_fds[1] = dup(pipe_fds[0]);
}

static const struct log_field number[] = {{.name = "n", .type = LOG_FIELD_INT, .value.i = 1}};

/* Every request has its line, however many there are in a second: they once ended at the fiftieth.
 * They wait for a reader that is slow, and stand before the event that came after them. */
static void test_records_are_all_there(void **state)
{
    (void)state;
    enum { RECORDS = 5000 };
    for (int i = 0; i < RECORDS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    log_event(&sink.log, LOG_INFO, "behind", LOG_INT("n", 2));
    unsigned lines = 0;
    char chunk[4096];
    ssize_t n;
    do { /* a pipe holds fewer bytes than that */
        io_log_sink_flush(&sink.log);
        n = read(pipe_fds[0], chunk, sizeof chunk);
        assert_true(n > 0);
        for (ssize_t i = 0; i < n; i++)
            lines += chunk[i] == '\n';
    } while (lines <= RECORDS);
    assert_int_equal(lines, RECORDS + 1);
    static const char last[] = "\"behind\",\"n\":2}\n";
    assert_memory_equal(chunk + n - strlen(last), last, strlen(last));
    assert_int_equal(sink.dropped, 0);
    io_log_sink_close(&sink.log);
}

/* Nobody reads at all: what is held is bounded, and what is lost is counted. */
static void test_records_that_nobody_reads(void **state)
{
    (void)state;
    enum { RECORDS = 50000 };
    for (int i = 0; i < RECORDS; i++)
        log_record_write(&sink.log, LOG_INFO, "request", number, 1);
    assert_true(sink.held.len <= IO_LOG_HELD_MAX);
    assert_true(sink.dropped > 0 && sink.dropped < RECORDS);
    io_log_sink_close(&sink.log);
    assert_true(sink.dropped < RECORDS);
}

/* A disk that is full takes half of a line. The next one, when there is room again, was once glued
 * to it, and no reader of JSON understood either. */
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
    assert_int_equal(whole + sink.dropped, EVENTS + 2);
    (void)fclose(disk);
}

static void test_levels_go_round(void **state)
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
        TEST(test_records_are_all_there),
        TEST(test_records_that_nobody_reads),
        TEST(test_a_full_disk_cuts_one_line),
        TEST(test_levels_go_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
