#include "node/io/secret_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/test.h"

struct fixture {
    uv_loop_t loop;
    struct io_secret_watch watch;
    char path[64];
    char taken[64]; /* what counted last */
    unsigned count;
    uint64_t now_ms;
};

static void on_taken(void *context)
{
    struct fixture *f = context;
    struct slice text = f->watch.err == 0 ? buf_slice(&f->watch.text) : SLICE("an error");
    (void)snprintf(f->taken, sizeof f->taken, "%.*s", (int)text.len, text.at);
    f->count++;
}

static void put(const struct fixture *f, const char *text)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* One reading. */
static void turn(struct fixture *f)
{
    f->now_ms += IO_SECRET_INTERVAL_MS;
    io_secret_watch_tick(&f->watch, &f->loop, f->now_ms);
    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
}

/* Half of a line of client-keys-file is a key without its limits: it counted for a second. */
static void a_file_that_is_being_written_waits(void **state)
{
    (void)state;
    struct fixture f = {.path = "/tmp/secret_watch_test.XXXXXX"};
    int fd = mkstemp(f.path);
    assert_true(fd >= 0);
    (void)close(fd);
    assert_int_equal(uv_loop_init(&f.loop), 0);
    f.watch.file = (struct io_secret){.setting = "client-keys-file",
                                      .path = f.path,
                                      .bytes_max = 1000,
                                      .long_advice = "is too long"};
    f.watch.taken = on_taken;
    f.watch.context = &f;
    put(&f, "old");
    io_secret_watch_read(&f.watch);
    assert_slice_equal(buf_slice(&f.watch.text), "old");
    io_secret_free(&f.watch.text);
    turn(&f); /* equal to what was read at the start */
    assert_string_equal(f.taken, "old");
    assert_int_equal(f.count, 1);
    put(&f, "half");
    turn(&f);
    put(&f, "half of it, and the rest");
    turn(&f);
    assert_int_equal(f.count, 1);
    turn(&f);
    assert_string_equal(f.taken, "half of it, and the rest");
    assert_int_equal(unlink(f.path), 0);
    turn(&f);
    assert_int_equal(f.count, 2);
    turn(&f);
    assert_string_equal(f.taken, "an error");
    io_secret_watch_free(&f.watch);
    assert_int_equal(uv_loop_close(&f.loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_that_is_being_written_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
