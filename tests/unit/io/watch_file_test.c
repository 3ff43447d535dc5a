/* Changing files: the readings that count. Time is given, reading is real. */
#include "node/io/watch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

static uv_loop_t loop;
static struct log logged;
static struct io_watches all;
static struct io_watch w;
static char folder[64], path[2][80];
static char taken[64]; /* the last reading that counted */
static char lines[4096];
static unsigned makes, takes;
static uint64_t now;
static bool refuses, taken_refuses;

static void on_line(void *context, struct slice line)
{
    (void)context;
    (void)snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%.*s", SLICE_ARG(line));
}

static uint64_t on_clock(void *context)
{
    (void)context;
    return now;
}

static int on_make(void *context)
{
    (void)context;
    makes++;
    return refuses ? io_file_fail(&w.files[0], w.message, "makes no sense") : 0;
}

static void on_taken(void *context)
{
    (void)context;
    takes++;
    if (w.made && taken_refuses)
        w.err = io_file_fail(&w.files[0], w.message, "cannot be used");
    (void)snprintf(taken, sizeof taken, "%s%.*s%.*s", w.err != 0 ? "an error " : "",
                   w.err == 0 ? (int)w.texts[0].len : 0, w.texts[0].at,
                   w.err == 0 ? (int)w.texts[1].len : 0, w.texts[1].at);
}

static void put(unsigned i, const char *text)
{
    FILE *file = fopen(path[i], "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Reads once. */
static void turn(void)
{
    now += IO_WATCH_INTERVAL_MS;
    io_watches_tick(&all, &loop, now);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)strcpy(folder, "/tmp/watch_file_test.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(uv_loop_init(&loop), 0);
    log_init(&logged, on_line, on_clock, NULL);
    all = (struct io_watches){.log = &logged};
    w = (struct io_watch){.all = &all,
                          .readable = "key_readable",
                          .refused = "key_refused",
                          .make = on_make,
                          .taken = on_taken,
                          .count = 2};
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(path[i], sizeof path[i], "%s/%u", folder, i);
        w.files[i] = (struct io_file){
            .setting = "key-file", .path = path[i], .bytes_max = 100, .long_advice = "is too long"};
        put(i, i == 0 ? "old" : "");
    }
    makes = takes = 0;
    lines[0] = '\0';
    refuses = taken_refuses = false;
    assert_int_equal(io_watch_read(&w), 0);
    assert_string_equal(taken, "old");
    io_watch_start(&w);
    turn(); /* the file is as at the start */
    assert_true(makes == 1 && takes == 2 && !w.made && !w.mended && lines[0] == '\0');
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    io_watches_stop(&all);
    io_watch_free(&w);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)unlink(path[0]);
    (void)unlink(path[1]);
    (void)rmdir(folder);
    return 0;
}

/* Half of a line of client-keys-file is a key without limits: the half was used for a second. */
static void a_file_being_written_is_not_used(void **state)
{
    (void)state;
    put(0, "half");
    turn();
    put(0, "half of it, and the rest");
    turn();
    assert_int_equal(takes, 2);
    turn();
    assert_string_equal(taken, "half of it, and the rest");
    assert_true(w.made);
}

/* The certificate changes first, and the key later: the pair is used once both are unchanged. */
static void a_pair_of_files_is_used_once_both_are_stable(void **state)
{
    (void)state;
    put(0, "new ");
    turn();
    put(1, "key");
    turn();
    assert_int_equal(makes, 1);
    turn();
    assert_string_equal(taken, "new key");
    put(0, "new");
    put(1, " key");
    turn();
    turn();
    assert_true(w.made); /* As in Kubernetes. */
}

/* As Kubernetes does it. */
static void a_swapped_link_is_a_new_file(void **state)
{
    (void)state;
    put(1, "new");
    assert_int_equal(unlink(path[0]), 0);
    assert_int_equal(symlink(path[1], path[0]), 0);
    turn();
    turn();
    assert_string_equal(taken, "newnew");
}

static void a_missing_file_is_logged_once(void **state)
{
    (void)state;
    assert_int_equal(unlink(path[0]), 0);
    turn();
    assert_int_equal(takes, 2);
    turn();
    assert_string_equal(taken, "an error ");
    assert_non_null(strstr(lines, "key_refused"));
    assert_non_null(strstr(w.told, "No such file"));
    lines[0] = '\0';
    turn();
    assert_string_equal(lines, "");
    put(0, "old");
    turn();
    turn();
    assert_true(w.mended && !w.made && w.told[0] == '\0'); /* the old result is in use */
    assert_int_equal(makes, 1);
}

/* The first try may have failed for lack of memory. */
static void a_refused_file_is_retried(void **state)
{
    (void)state;
    refuses = true;
    put(0, "new");
    turn();
    turn();
    turn();
    assert_int_equal(makes, 3);
    assert_true(w.err != 0 && !w.made && strstr(w.told, "makes no sense") != NULL);
    refuses = false;
    turn();
    assert_true(w.made && w.mended);
    turn();
    assert_int_equal(makes, 4);
    taken_refuses = true;
    put(0, "newer");
    turn();
    turn();
    turn();
    assert_true(makes == 6 && strstr(w.told, "cannot be used") != NULL);
    taken_refuses = false;
    turn();
    assert_true(makes == 7 && w.mended);
}

static void a_requested_reading_is_used_at_once(void **state)
{
    (void)state;
    assert_true(io_watch_ask(&w) && io_watch_is_asked(&w));
    put(0, "new");
    io_watches_tick(&all, &loop, now); /* too early to read */
    assert_true(io_watch_is_asked(&w));
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_string_equal(taken, "new");
    assert_true(w.made && w.answers && !io_watch_is_asked(&w));
    assert_true(io_watch_ask(&w)); /* answered even without a change */
    turn();
    assert_true(w.made && !w.changed);
    io_watches_stop(&all);
    assert_false(io_watch_ask(&w));
}

static void a_world_readable_secret_is_logged_once(void **state)
{
    (void)state;
    assert_int_equal(chmod(path[0], 0644), 0);
    turn();
    assert_string_equal(lines, "");
    w.files[0].secret = true;
    turn();
    assert_non_null(strstr(lines, "key_readable"));
    lines[0] = '\0';
    turn();
    assert_string_equal(lines, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_file_being_written_is_not_used),
        TEST(a_pair_of_files_is_used_once_both_are_stable),
        TEST(a_swapped_link_is_a_new_file),
        TEST(a_missing_file_is_logged_once),
        TEST(a_refused_file_is_retried),
        TEST(a_requested_reading_is_used_at_once),
        TEST(a_world_readable_secret_is_logged_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
