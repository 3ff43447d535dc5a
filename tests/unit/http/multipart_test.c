#include "http/multipart.h"

#include "base/check.h"
#include "tests/lib/test.h"

#define FIELD(value) "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n" value "\r\n--B"

/* Makes a body whose first segment ends after `first` bytes, and whose last segment has `tail`. */
static void make(struct segment_pool *pool, struct body *b, size_t first, const char *text,
                 size_t middle, const char *tail)
{
    static char filler[65536];
    memset(filler, '.', sizeof filler);
    struct slice all = slice_of_cstr(text);
    struct segment *s = body_room(pool, b, 65536);
    assert_non_null(s);
    size_t pad = s->cap - first;
    assert_int_equal(body_append(pool, b, slice_of(filler, pad), 65536), 0);
    assert_int_equal(body_append(pool, b, all, 65536), 0);
    for (; middle > 0; middle--)
        assert_int_equal(body_append(pool, b, slice_of(filler, sizeof filler), 65536), 0);
    assert_int_equal(body_append(pool, b, slice_of_cstr(tail), 65536), 0);
    b->complete = true;
}

static void expect(size_t first, const char *text, size_t middle, const char *tail,
                   const char *model)
{
    struct segment_pool pool;
    char seam[HTTP_MULTIPART_SEAM_BYTES];
    segment_pool_init(&pool, 1 << 20);
    struct body *b = body_new();
    assert_non_null(b);
    make(&pool, b, first, text, middle, tail);
    uint64_t at = 0;
    assert_slice_equal(http_multipart_model(b, seam, &at), model);
    const struct segment *s = b->first;
    for (; s != NULL && at >= s->len; s = s->next)
        at -= s->len;
    CHECK(s != NULL);
    if (model[0] != '\0')
        assert_int_equal(s->data[at], model[0]);
    body_unref(&pool, b);
    segment_pool_free(&pool);
}

static void test_the_field_is_found_anywhere(void **state)
{
    (void)state;
    size_t len = sizeof FIELD("m") - 1;
    for (size_t first = 0; first <= len; first++)
        expect(first, FIELD("m"), 0, "", "m"); /* across the first two segments, at every byte */
    expect(0, "", 4, FIELD("behind the file"), "behind the file");
}

static void test_a_missing_field_is_not_found(void **state)
{
    (void)state;
    expect(10, "no field", 2, "here", "");
    expect(200, "name=\"model\"", 0, "", "");                   /* no empty line */
    expect(200, "name=\"model\"\r\n\r\nnever ends", 0, "", ""); /* no end of the value */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_field_is_found_anywhere),
        cmocka_unit_test(test_a_missing_field_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
