/* Out of memory while a file of keys is read and replaced, and while routers publish to each
 * other. */
#include "tests/lib/failmalloc.h"

#include "node/access/access.h"
#include "tests/lib/test.h"

#define HASH(digit)                                                                                \
    "blake2b:" digit digit digit digit digit digit digit digit "0123456789abcdef0123456789abcdef"  \
    "0123456789abcdef01234567"

static const char first[] = "alice " HASH("0") " models=a,b requests-per-minute=5\n"
                                               "bob " HASH("1") " in-flight=1\n";
static const char second[] = "alice " HASH("2") "\nalice " HASH("3") "\ncarol " HASH("4") "\n";

/* A new table, if there is memory for it. */
static bool take(struct access *a, const char *text, bool may_fail)
{
    struct access_table *t;
    char message[ACCESS_MESSAGE_BYTES];
    int err = access_table_create(&t, slice_of_cstr(text), message);
    assert_true(err == 0 || (err == ERR_NOMEM && may_fail));
    if (err == 0)
        access_take(a, t);
    return err == 0;
}

static void keys(bool may_fail)
{
    static const uint8_t row[] = {14, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6};
    struct access *a;
    int err = access_create(&a);
    assert_true(err == 0 || may_fail);
    if (err != 0)
        return;
    if (take(a, first, may_fail)) {
        struct buf news = {0};
        uint8_t bytes[sizeof row];
        uint64_t id = access_use_id(SLICE("alice"));
        memcpy(bytes, row, sizeof row);
        for (unsigned i = 0; i < 8; i++)
            bytes[1 + i] = (uint8_t)(id >> (8 * i));
        assert_int_equal(access_news_read(a, 7, slice_of((const char *)bytes, sizeof bytes), 1), 0);
        assert_true(access_news_write(a, 1, &news) == 0 || may_fail);
        buf_free(&news);
    }
    (void)take(a, second, may_fail);
    access_check(a);
    access_destroy(a);
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(failmalloc_each(keys) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
