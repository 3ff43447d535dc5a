#include "node/proxy/engine/model_list.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

/* {"object":"list","data":[{"id":"m0"},...]} */
static void make(struct buf *out, unsigned from, unsigned count, size_t padding)
{
    buf_clear(out);
    CHECK(buf_append_cstr(out, "{\"object\":\"list\",\"data\":[") == 0);
    for (unsigned i = 0; i < count; i++)
        CHECK(buf_printf(out, "%s{\"id\":\"m%u\",\"pad\":\"%0*d\"}", i > 0 ? "," : "", from + i,
                         (int)padding, 0) == 0);
    CHECK(buf_append_cstr(out, "]}") == 0);
}

static void test_read(void **state)
{
    (void)state;
    static struct model_list list;
    struct buf json = {0};
    make(&json, 0, MODEL_LIST_MAX, 1);
    assert_int_equal(model_list_read(&list, buf_slice(&json)), 0);
    assert_int_equal(list.count, MODEL_LIST_MAX);
    assert_false(list.cut);
    assert_slice_equal(list.ids[MODEL_LIST_MAX - 1], "m4095");
    make(&json, 0, MODEL_LIST_MAX + 1, 1);
    assert_int_equal(model_list_read(&list, buf_slice(&json)), 0);
    assert_int_equal(list.count, MODEL_LIST_MAX);
    assert_true(list.cut);
    assert_int_equal(list.engine, NODE_ENGINE_AUTO);
    assert_int_equal(
        model_list_read(&list, SLICE("{\"object\":\"list\",\"data\":[{\"id\":\"a\",\"owned_by\":"
                                     "\"sglang\"}]}")),
        0);
    assert_int_equal(list.engine, NODE_ENGINE_SGLANG);
    assert_int_equal(
        model_list_read(&list, SLICE("{\"data\":[{\"id\":\"base\",\"parent\":null},{\"id\":\"a\","
                                     "\"parent\":\"base\"},{\"parent\":\"base\",\"id\":\"b\"}]}")),
        0);
    assert_int_equal(list.parents[0].len, 0);
    assert_slice_equal(list.parents[1], "base");
    assert_slice_equal(list.ids[2], "b");
    assert_ptr_equal(list.parents[2].at, list.parents[1].at);
    assert_int_equal(model_list_read(&list, SLICE("[]")), ERR_SYNTAX);
    buf_free(&json);
}

static struct hash_secret secret; /* any */

static void merge(struct model_merge *m, struct buf *json)
{
    assert_int_equal(node_models_parse(buf_slice(json), model_merge_add, m), 0);
}

static void test_merge(void **state)
{
    (void)state;
    static struct model_merge m;
    struct buf json = {0};
    model_merge_begin(&m, &secret, slice_of(NULL, 0));
    make(&json, 0, 2, 1);
    merge(&m, &json);
    make(&json, 1, 2, 1);
    merge(&m, &json);
    assert_slice_equal(buf_slice(&m.out), "{\"id\":\"m0\",\"pad\":\"0\"}{\"id\":\"m1\",\"pad\":"
                                          "\"0\"}{\"id\":\"m2\",\"pad\":\"0\"}");
    assert_slice_equal(model_merge_find(&m, SLICE("m1")), "{\"id\":\"m1\",\"pad\":\"0\"}");
    assert_null(model_merge_find(&m, SLICE("m3")).at);
    buf_free(&m.out);
    model_merge_begin(&m, &secret, SLICE("m2"));
    merge(&m, &json);
    assert_slice_equal(buf_slice(&m.out), "{\"id\":\"m2\",\"pad\":\"0\"}");
    buf_free(&m.out);
    buf_free(&json);
}

static void test_the_longest_context_is_listed(void **state)
{
    (void)state;
    static struct model_merge m;
    static const char *const lists[] = {
        "{\"data\":[{\"id\":\"m\",\"max_model_len\":4096},{\"id\":\"a\",\"max_model_len\":null}]}",
        "{\"data\":[{\"id\":\"m\",\"by\":2,\"max_model_len\":131072}]}",
        "{\"data\":[{\"id\":\"m\",\"max_model_len\":8192},{\"id\":\"a\",\"max_model_len\":1}]}",
        "{\"data\":[{\"id\":\"m\"}]}",
    };
    for (unsigned first = 0; first < ARRAY_LEN(lists); first++) {
        model_merge_begin(&m, &secret, slice_of(NULL, 0));
        for (unsigned i = 0; i < ARRAY_LEN(lists); i++) {
            struct slice json = slice_of_cstr(lists[(first + i) % ARRAY_LEN(lists)]);
            assert_int_equal(node_models_parse(json, model_merge_add, &m), 0);
        }
        assert_int_equal(m.list.count, 2);
        assert_slice_equal(model_merge_find(&m, SLICE("m")),
                           "{\"id\":\"m\",\"by\":2,\"max_model_len\":131072}");
        assert_slice_equal(model_merge_find(&m, SLICE("a")), "{\"id\":\"a\",\"max_model_len\":1}");
        buf_free(&m.out);
    }
}

static void test_one_context_for_all_models(void **state)
{
    (void)state;
    static struct model_list list;
    static const struct {
        const char *json;
        uint32_t context;
    } cases[] = {
        {"{\"data\":[{\"id\":\"m\",\"max_model_len\":4096},{\"id\":\"a\",\"parent\":\"m\"}]}",
         4096},
        {"{\"data\":[{\"id\":\"m\",\"max_model_len\":4096},{\"id\":\"n\",\"max_model_len\":4096}]}",
         4096},
        {"{\"data\":[{\"id\":\"m\",\"max_model_len\":4096},{\"id\":\"n\",\"max_model_len\":1}]}",
         0},
        {"{\"data\":[{\"id\":\"m\"}]}", 0},
        {"{\"data\":[]}", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(model_list_read(&list, slice_of_cstr(cases[i].json)), 0);
        assert_int_equal(model_list_context(&list), cases[i].context);
    }
}

/* Entries that are too long are left out, but later entries that fit are not. */
static void test_merge_is_bounded(void **state)
{
    (void)state;
    static struct model_merge m;
    struct buf json = {0};
    model_merge_begin(&m, &secret, slice_of(NULL, 0));
    make(&json, 0, 3, 1 << 21);
    merge(&m, &json);
    assert_int_equal(m.list.count, 1);
    make(&json, 10, 1, 1);
    merge(&m, &json);
    assert_int_equal(m.list.count, 2);
    assert_true(m.out.len <= MODEL_LIST_BYTES_MAX);
    make(&json, 100, MODEL_LIST_MAX, 1);
    merge(&m, &json);
    assert_int_equal(m.list.count, MODEL_LIST_MAX);
    buf_free(&m.out);
    buf_free(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_the_longest_context_is_listed),
        cmocka_unit_test(test_one_context_for_all_models),
        cmocka_unit_test(test_merge_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
