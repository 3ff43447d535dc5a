#include "node/io/read_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/test.h"

static struct io_file file;
static char path[64], message[IO_FILE_MESSAGE];
static struct buf text;

static int setup(void **state)
{
    (void)state;
    (void)strcpy(path, "/tmp/read_file_test.XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    file = (struct io_file){
        .setting = "key-file", .path = path, .bytes_max = 10000, .long_advice = "is too long"};
    buf_init(&text, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    buf_free(&text);
    (void)unlink(path);
    return 0;
}

static void put(size_t len)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < len; i++)
        assert_int_not_equal(fputc('a' + (int)(i % 26), f), EOF);
    assert_int_equal(fclose(f), 0);
}

static void a_file_is_appended_up_to_its_limit(void **state)
{
    (void)state;
    static const size_t lens[] = {0, 1, 4095, 4096, 4097, 9999, 10000};
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        buf_clear(&text);
        assert_int_equal(buf_append_cstr(&text, "before"), 0);
        put(lens[i]);
        assert_int_equal(io_file_read(&file, &text, NULL, message), 0);
        assert_int_equal(text.len, 6 + lens[i]);
        assert_memory_equal(text.at, "before", 6);
        for (size_t j = 0; j < lens[i]; j++)
            assert_int_equal(text.at[6 + j], 'a' + (int)(j % 26));
    }
    put(10001);
    assert_int_equal(io_file_read(&file, &text, NULL, message), ERR_NOT_FOUND);
    assert_non_null(strstr(message, "key-file \"/tmp/"));
    assert_non_null(strstr(message, "is too long"));
}

/* A file without a size: the buffer grows while the file is read. */
static void a_pipe_is_read_if_allowed(void **state)
{
    (void)state;
    static char bytes[10001];
    for (unsigned more = 0; more < 2; more++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], bytes, 10000 + more), 10000 + more);
        assert_int_equal(close(ends[1]), 0);
        buf_clear(&text);
        file.pipes = true;
        int err = io_file_read_fd(&file, ends[0], &text, NULL, message);
        assert_int_equal(err, more == 0 ? 0 : ERR_NOT_FOUND);
        assert_true(more == 1 || text.len == 10000);
    }
    file.pipes = false;
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0); /* no writer: opening would wait */
    assert_int_equal(io_file_read(&file, &text, NULL, message), ERR_NOT_FOUND);
    assert_non_null(strstr(message, "is no regular file"));
}

static void errors_have_a_reason(void **state)
{
    (void)state;
    file.path = "/tmp";
    assert_int_equal(io_file_read(&file, &text, NULL, message), ERR_NOT_FOUND);
    assert_string_equal(message, "key-file \"/tmp\": is no regular file");
    file.pipes = true;
    assert_int_equal(io_file_read(&file, &text, NULL, message), ERR_NOT_FOUND);
    assert_string_equal(message,
                        "key-file \"/tmp\": Is a directory"); /* of read(), not of open() */
    file.path = "/tmp/nowhere/at/all";
    assert_int_equal(io_file_read(&file, &text, NULL, message), ERR_NOT_FOUND);
    assert_non_null(strstr(message, "No such file"));
}

static void world_readable_files_are_reported(void **state)
{
    (void)state;
    bool others = true;
    assert_int_equal(io_file_read(&file, &text, &others, message), 0);
    assert_false(others);
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(io_file_read(&file, &text, &others, message), 0);
    assert_true(others);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_appended_up_to_its_limit),
        TEST(a_pipe_is_read_if_allowed),
        TEST(errors_have_a_reason),
        TEST(world_readable_files_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
