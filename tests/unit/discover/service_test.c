#include "node/discover/kubernetes.h"
#include "tests/lib/test.h"

static void a_service_is_parsed_with_port_and_labels(void **state)
{
    (void)state;
    struct discover_service s;
    assert_null(discover_service_parse(SLICE("inference/vllm:8000"), &s));
    assert_string_equal(s.namespace, "inference");
    assert_string_equal(s.name, "vllm");
    assert_string_equal(s.port, "8000");
    assert_int_equal(s.labels.engine, NODE_ENGINE_AUTO);
    assert_null(discover_service_parse(SLICE("vllm"), &s));
    assert_string_equal(s.namespace, "");
    assert_string_equal(s.name, "vllm");
    assert_string_equal(s.port, "");
    assert_null(discover_service_parse(SLICE("/vllm:http#engine=sglang"), &s));
    assert_string_equal(s.namespace, "");
    assert_string_equal(s.name, "vllm");
    assert_string_equal(s.port, "http");
    assert_int_equal(s.labels.engine, NODE_ENGINE_SGLANG);
    /* A model's name may have a slash and a colon. */
    assert_null(discover_service_parse(SLICE("a/b#model=Qwen/Qwen3:8b"), &s));
    assert_string_equal(s.namespace, "a");
    assert_string_equal(s.name, "b");
    assert_string_equal(s.port, "");
    assert_slice_equal(s.labels.model, "Qwen/Qwen3:8b");
    assert_false(s.tls);
    assert_null(discover_service_parse(SLICE("https://a/b:8443#weight=2"), &s));
    assert_true(s.tls);
    assert_string_equal(s.namespace, "a");
    assert_string_equal(s.port, "8443");
}

static void invalid_service_names_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        "/",
        "ns/",
        "ns/svc:",
        "ns/svc:0",
        "ns/svc:65536",
        "ns/svc:-1",
        "a/b/c",
        "NS/svc",
        "ns/svc_1",
        "ns/-svc",
        "ns/svc-",
        "ns/s v",
        "ns/svc?",
        "ns/svc:a:b",
        "../svc",
        "ns/sv%2f",
        "http://ns/svc",
        "ns/svc#x",
        "ns/svc:HTTP",
        "ns/svc#zone=1",
        "ns/a23456789012345678901234567890123456789012345678901234567890123z",
    };
    struct discover_service s = {.name = "as it was"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        if (discover_service_parse(slice_of_cstr(wrong[i]), &s) == NULL)
            fail_msg("taken: %s", wrong[i]);
    }
    assert_string_equal(s.name, "as it was");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_is_parsed_with_port_and_labels),
        cmocka_unit_test(invalid_service_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
