#include "node/kv/source.h"

#include <stdio.h>

#include "tests/lib/test.h"

enum { MAX = 4 };

static char said[512];

static int read_sources(const char *json)
{
    struct kv_source s[MAX];
    unsigned count = 0;
    int err = kv_sources_read(slice_of_cstr(json), s, MAX, &count);
    said[0] = '\0';
    for (unsigned i = 0; err == 0 && i < count; i++) {
        size_t len = strlen(said);
        (void)snprintf(said + len, sizeof said - len, "%u:%u", s[i].rank, s[i].port);
        len = strlen(said);
        if (s[i].replay_port > 0)
            (void)snprintf(said + len, sizeof said - len, "/%u", s[i].replay_port);
        len = strlen(said);
        (void)snprintf(said + len, sizeof said - len, "%s%s ", s[i].topic[0] ? "=" : "",
                       s[i].topic);
    }
    return err;
}

#define assert_read(json, wanted)                                                                  \
    do {                                                                                           \
        assert_int_equal(read_sources(json), 0);                                                   \
        assert_string_equal(said, wanted);                                                         \
    } while (0)

#define VLLM(endpoint, replay)                                                                     \
    "{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\",\"endpoint\":\"" endpoint              \
    "\",\"replay_endpoint\":" replay ",\"buffer_steps\":10000,\"hwm\":100000,"                     \
    "\"max_queue_size\":100000,\"topic\":\"\"}"

static void test_vllm(void **state)
{
    (void)state;
    assert_read("{\"0\":" VLLM("tcp://*:5557", "null") "}", "0:5557 ");
    assert_read("{\"3\":" VLLM("tcp://*:5560", "\"tcp://10.0.0.1:5570\"") ",\"4\":" VLLM(
                    "tcp://[::]:5561", "\"tcp://*:5571\"") "}",
                "3:5560/5570 4:5561/5571 ");
    assert_read("{\"0\":" VLLM("tcp://10.0.0.1:5557", "null") "}", ""); /* the engine connects */
    assert_read("{\"0\":" VLLM("ipc:///tmp/kv*", "null") "}", "");
    assert_read("{\"0\":{\"enable_kv_cache_events\":false,\"publisher\":\"zmq\","
                "\"endpoint\":\"tcp://*:5557\"}}",
                "");
    assert_read("{\"0\":{\"enable_kv_cache_events\":true,\"publisher\":\"null\","
                "\"endpoint\":\"tcp://*:5557\"}}",
                "");
    assert_read("{\"0\":" VLLM("tcp://*:70000", "null") "}", "");
    assert_read("{\"0\":null,\"1\":[1,{\"endpoint\":\"tcp://*:1\"}],\"x\":" VLLM("tcp://*:5557",
                                                                                 "null") "}",
                "");
}

static void test_sglang(void **state)
{
    (void)state;
    assert_read(
        "{\"model_path\":\"m\",\"kv_events\":{\"publisher\":\"zmq\",\"endpoint_host\":\"*\","
        "\"endpoint_port_base\":31811,\"topic\":\"kv-events\",\"block_size\":16,"
        "\"dp_size\":2,\"replay_endpoint_port_base\":31821},\"internal_states\":[{}]}",
        "0:31811/31821=kv-events 1:31812/31822=kv-events ");
    assert_read("{\"kv_events\":{\"publisher\":\"zmq\",\"endpoint_port_base\":1}}", "0:1 ");
    assert_read("{\"kv_events\":null}", "");
    assert_read("{\"kv_events\":{\"publisher\":\"zmq\",\"endpoint_port_base\":65533,"
                "\"dp_size\":1000000000000}}",
                "0:65533 1:65534 2:65535 "); /* an entry without a port is ignored */
}

static void test_no_json(void **state)
{
    (void)state;
    static const char *const none[] = {"", "[]", "7", "{\"0\":{}", "{\"kv_events\":{}}}"};
    for (unsigned i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(read_sources(none[i]), ERR_SYNTAX);
    char text[1200];
    (void)snprintf(text, sizeof text,
                   "{\"0\":{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:1\","
                   "\"topic\":\"%0*d\"}}",
                   900, 0);
    assert_int_equal(read_sources(text), 0); /* a topic that is too long is ignored */
    assert_string_equal(said, "0:1 ");
}

static void test_endpoints_from_a_label(void **state)
{
    (void)state;
    struct kv_named n = {.port = 7};
    assert_null(kv_named_parse(SLICE("tcp://10.0.0.1:5557"), &n));
    assert_slice_equal(n.host, "10.0.0.1");
    assert_true(n.port == 5557 && n.replay_port == 0 && n.topic.len == 0);
    assert_null(
        kv_named_parse(SLICE("tcp://[fe80::1%eth0]:1?topic=kv@a@org/b:c&replay=65535"), &n));
    assert_slice_equal(n.host, "[fe80::1%eth0]");
    assert_slice_equal(n.topic, "kv@a@org/b:c");
    assert_true(n.port == 1 && n.replay_port == 65535);
    assert_true(!n.connects && kv_named_parse(SLICE("listen"), &n) == NULL && n.connects);
    assert_true(n.host.len == 0 && n.port == 0 && n.replay_port == 0 && n.topic.len == 0);
    assert_null(kv_named_parse(SLICE("listen?topic=kv@a&replay=65535"), &n));
    assert_slice_equal(n.topic, "kv@a");
    n.port = 1;
    static const char *const wrong[] = {
        "",
        "listen:5557",
        "listen?port=1",
        "tcp://listen",
        "10.0.0.1:5557",
        "ipc://a:1",
        "tcp://a",
        "tcp://:1",
        "tcp://a:0",
        "tcp://a:65536",
        "tcp://*:5557", /* would bind */
        "tcp://::1:5557",
        "tcp://[]:5557",
        "tcp://b:0;a:5557", /* to libzmq the first part is the address to send from */
        "tcp://a b:5557",
        "tcp://a:1?replay=0",
        "tcp://a:1?replay",
        "tcp://a:1?topics=x",
        "tcp://a:1?&",
    };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(kv_named_parse(slice_of_cstr(wrong[i]), &n));
    assert_true(n.port == 1); /* unchanged */
    char text[KV_NAMED_MAX + 2];
    (void)snprintf(text, sizeof text, "tcp://%0*d:1", KV_NAMED_MAX - 8, 0);
    assert_null(kv_named_parse(slice_of_cstr(text), &n));
    (void)snprintf(text, sizeof text, "tcp://%0*d:1", KV_NAMED_MAX - 7, 0);
    assert_non_null(kv_named_parse(slice_of_cstr(text), &n));
    (void)snprintf(text, sizeof text, "tcp://a:1?topic=%0*d", KV_TOPIC_MAX, 0);
    assert_non_null(kv_named_parse(slice_of_cstr(text), &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vllm),
        cmocka_unit_test(test_sglang),
        cmocka_unit_test(test_no_json),
        cmocka_unit_test(test_endpoints_from_a_label),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
