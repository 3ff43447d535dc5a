/* A changing file of replicas: the moment at which it is a new list. Time is given, reading is
 * real. */
#include "node/io/replica_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "node/discover/discover_internal.h"
#include "tests/lib/discover_quiet.h"
#include "tests/lib/test.h"

static uv_loop_t loop;
static struct log quiet;
static struct discover *d;
static struct io_watches all;
static struct replica_file *f;
static uint64_t now;
static char path[64];

static int on_use(void *context, struct slice name, const struct node_labels *labels)
{
    (void)context;
    (void)name;
    (void)labels;
    return 0;
}

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)strcpy(path, "/tmp/replica_file_test.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    const struct discover_host host = {
        .use = on_use, .drain = on_name, .forget = on_name, .busy = on_busy, .has = on_has};
    log_init(&quiet, on_line, on_clock, NULL);
    assert_int_equal(discover_create(&d, &host, &quiet), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    now = 1000;
    all = (struct io_watches){.now_ms = now};
    write_file("http://a:1\n");
    return replica_file_open(&f, path, d, &all);
}

static int teardown(void **state)
{
    (void)state;
    io_watches_stop(&all);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    replica_file_free(f);
    assert_int_equal(uv_loop_close(&loop), 0);
    discover_destroy(d);
    (void)unlink(path);
    return 0;
}

/* Reads the file again. */
static const struct discover_origin *reading(void)
{
    now += IO_WATCH_INTERVAL_MS;
    io_watches_tick(&all, &loop, now);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    return &d->sources[0];
}

/* A program writing in place may be in the middle of writing. */
static void half_a_file_is_no_list(void **state)
{
    (void)state;
    assert_true(discover_lists(d, 0, SLICE("a:1")));
    write_file("http://b:1\n");
    (void)reading();
    assert_true(discover_lists(d, 0, SLICE("a:1")));
    write_file("http://b:1\nhttp://a:1\nhttp://c:1\n");
    const struct discover_origin *origin = reading();
    assert_true(origin->list.count == 1);
    origin = reading();
    assert_true(origin->list.count == 3 && !origin->failing);
    origin = reading(); /* as before */
    assert_true(origin->list.count == 3);
}

static void an_unfinished_line_is_no_failure(void **state)
{
    (void)state;
    write_file("http");
    const struct discover_origin *origin = reading();
    assert_false(origin->failing);
    write_file("http://b:1\n");
    (void)reading();
    origin = reading();
    assert_true(origin->list.count == 1 && origin->failures == 0);
    assert_true(discover_lists(d, 0, SLICE("b:1")));
}

static void a_malformed_file_fails_until_corrected(void **state)
{
    (void)state;
    write_file("http");
    (void)reading();
    const struct discover_origin *origin = reading();
    assert_true(origin->failing && origin->list.count == 1 && origin->failures == 1);
    origin = reading();
    assert_true(origin->failing && origin->failures == 2);
    write_file("http://a:1\n");
    (void)reading();
    origin = reading();
    assert_true(!origin->failing && origin->list.count == 1);
    assert_int_equal(unlink(path), 0);
    (void)reading();
    origin = reading();
    assert_true(origin->failing && origin->list.count == 1);
    write_file("http://a:1\n");
    (void)reading();
    origin = reading();
    assert_false(origin->failing);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(half_a_file_is_no_list),
        TEST(an_unfinished_line_is_no_failure),
        TEST(a_malformed_file_fails_until_corrected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
