/* A part of a body is replaced, wherever segments end. */
#include "base/body.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

static struct segment_pool pool;

static struct body *make(const char *text, size_t first)
{
    size_t len = strlen(text);
    struct body *b = body_new();
    assert_non_null(b);
    struct segment *s = segment_new(&pool, 1); /* the second segment begins after `first` bytes */
    assert_non_null(s);
    memcpy(s->data, text, first);
    s->len = (uint32_t)first;
    s->cap = s->len;
    b->first = b->last = s;
    b->bytes = first;
    assert_int_equal(body_append(&pool, b, slice_of(text + first, len - first), len), 0);
    return b;
}

static void expect(struct body *b, const char *wanted)
{
    char all[64];
    size_t len = 0;
    for (struct segment *s = b->first; s != NULL; s = s->next) {
        assert_true(s->len > 0);
        memcpy(all + len, s->data, s->len);
        len += s->len;
        if (s->next == NULL)
            assert_ptr_equal(s, b->last);
        s->cap = 4096; /* the original capacity */
    }
    assert_slice_equal(slice_of(all, len), wanted);
    assert_int_equal(b->bytes, len);
    body_unref(&pool, b);
}

static void a_part_is_replaced_at_any_place_and_length(void **state)
{
    (void)state;
    static const char text[] = "0123456789abcdef";
    static const char *const others[] = {"x", "some longer text"};
    for (unsigned i = 0; i < 2; i++) {
        const char *other = others[i];
        for (size_t first = 1; first < sizeof text; first++) {
            for (size_t at = 0; at < 15; at++) {
                if (at == 0 && first < strlen(other))
                    continue; /* segments are longer than this text */
                for (size_t gone = 1; at + gone < 16; gone++) {
                    char wanted[64];
                    (void)snprintf(wanted, sizeof wanted, "%.*s%s%s", (int)at, text, other,
                                   text + at + gone);
                    struct body *b = make(text, first < 16 ? first : 16);
                    assert_int_equal(body_replace(&pool, b, at, gone, slice_of_cstr(other)), 0);
                    expect(b, wanted);
                }
            }
        }
    }
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    struct body *b = make("0123456789", 10);
    uint64_t max = pool.bytes_max;
    pool.bytes_max = pool.bytes;
    assert_int_equal(body_replace(&pool, b, 3, 2, SLICE("longer")), ERR_FULL);
    pool.bytes_max = max;
    expect(b, "0123456789");
}

int main(void)
{
    segment_pool_init(&pool, 1 << 20);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_replaced_at_any_place_and_length),
        cmocka_unit_test(without_memory_nothing_changes),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    segment_pool_free(&pool);
    return failed;
}
