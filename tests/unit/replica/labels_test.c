/* The labels allowed behind a replica, and the errors for other labels. */
#include "node/replica/labels.h"

#include "base/err.h"
#include "tests/lib/test.h"

static void labels_are_read(void **state)
{
    (void)state;
    struct node_labels l = {0};
    assert_null(node_labels_parse(SLICE(""), &l));
    assert_true(l.engine == NODE_ENGINE_AUTO && l.model.len == 0 && node_labels_weight(&l) == 1);
    assert_null(
        node_labels_parse(SLICE("weight=2.5#role=any#adapters=on-demand#cache-tokens="
                                "2000000#context=8192#model=org/a-model:8b@x&y=z#engine=sglang"),
                          &l));
    assert_int_equal(l.engine, NODE_ENGINE_SGLANG);
    assert_true(node_labels_weight(&l) == 2.5 && l.cache_tokens == 2000000);
    assert_int_equal(l.context_tokens, 8192);
    assert_true(l.adapters_on_demand);
    assert_slice_equal(l.model, "org/a-model:8b@x&y=z");
    assert_int_equal(l.host_header, NODE_HOST_NOT_SAID);
    assert_null(node_labels_parse(SLICE("host-header=replica"), &l));
    assert_int_equal(l.host_header, NODE_HOST_REPLICA);
    assert_null(node_labels_parse(SLICE("host-header=client"), &l));
    assert_int_equal(l.host_header, NODE_HOST_CLIENT);
    assert_null(node_labels_parse(SLICE("kv-events=tcp://a:5557?replay=5558#weight=2"), &l));
    assert_slice_equal(l.kv_events, "tcp://a:5557?replay=5558");
    assert_string_equal(node_labels_parse(SLICE("kv-events=a:5557"), &l),
                        "after # want kv-events=tcp://HOST:PORT or kv-events=listen, and maybe "
                        "?replay=PORT and &topic=TEXT behind it, or kv-events=off");
    assert_null(node_labels_parse(SLICE("kv-events=off"), &l));
    assert_slice_equal(l.kv_events, "off");
    static const char *const switches[] = {"kv-events=on", "kv-events=auto"};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        assert_string_equal(node_labels_parse(slice_of_cstr(switches[i]), &l),
                            "after # kv-events= names an endpoint, tcp://HOST:PORT or listen, or "
                            "is off: events are read by default");
    static const struct {
        const char *text;
        double weight;
    } weights[] = {{"weight=0.1", 0.1}, {"weight=100", 100}, {"weight=.5", 0.5}, {"weight=1.", 1}};
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        assert_null(node_labels_parse(slice_of_cstr(weights[i].text), &l));
        assert_true(l.weight == weights[i].weight && l.engine == NODE_ENGINE_AUTO);
    }
}

static void wrong_labels_get_a_correcting_error(void **state)
{
    (void)state;
    static const char engine[] = "after # want engine=vllm, engine=sglang or engine=other";
    static const char tokens[] =
        "after # want cache-tokens= and a number of tokens, such as cache-tokens=2000000";
    static const char weight[] =
        "after # want weight= and a number from 0.1 to 100, such as weight=2";
    static const char unknown[] =
        "after # want engine=, weight=, model=, health=, cache-tokens=, "
        "context=, ranks=, adapters=, host-header=, kv-events= or role=, each behind its own #";
    static const char context[] =
        "after # want context= and a number of tokens, such as context=131072";
    static const char ranks[] = "after # want ranks= and a number of data-parallel ranks from 1 to "
                                "64, such as ranks=8";
    static const char model[] =
        "after # want model= and the name of a model, at most 255 bytes without spaces";
    static const char soon[] = "after # want role=any: prefill and decode are not told apart yet";
    static const struct {
        const char *text, *wrong;
    } bad[] = {
        {"engine=tgi", engine},
        {"host-header=", "after # want host-header=replica or host-header=client"},
        {"host-header=a.example", "after # want host-header=replica or host-header=client"},
        {"engine=", engine},
        {"engine=vllm&weight=2", engine},
        {"adapters=", "after # want adapters=on-demand"},
        {"adapters=all", "after # want adapters=on-demand"},
        {"cache-tokens=", tokens},
        {"cache-tokens=0", tokens},
        {"cache-tokens=2e6", tokens},
        {"cache-tokens=1000000000001", tokens},
        {"context=", context},
        {"context=0", context},
        {"context=128k", context},
        {"context=1000000001", context},
        {"ranks=0", ranks},
        {"ranks=65", ranks},
        {"ranks=auto", ranks},
        {"weight=0", weight},
        {"weight=0.09", weight},
        {"weight=101", weight},
        {"weight=-1", weight},
        {"weight=1e1", weight},
        {"weight=1.1.1", weight},
        {"weight=.", weight},
        {"weight=nan", weight},
        {"weight=00000000000000001", weight},
        {"model=", model},
        {"model=a b", model},
        {"role=prefill", soon},
        {"role=decode", soon},
        {"role=both", "after # want role=any"},
        {"zone=a", unknown},
        {"weight", weight},
        {"Engine=vllm", unknown},
        {"engine=vllm#", unknown},
        {"#engine=vllm", unknown},
        {"weight=1#engine=vllm#weight=2", "after # want each label once"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct node_labels l = {.weight = 7};
        const char *wrong = node_labels_parse(slice_of_cstr(bad[i].text), &l);
        assert_non_null(wrong);
        assert_string_equal(wrong, bad[i].wrong);
        assert_true(l.weight == 7); /* unchanged */
    }
    char text[NODE_MODEL_ID_MAX + 8] = "model=";
    memset(text + 6, 'm', NODE_MODEL_ID_MAX + 1);
    struct node_labels l;
    assert_null(node_labels_parse(slice_of(text, 6 + NODE_MODEL_ID_MAX), &l));
    assert_non_null(node_labels_parse(slice_of(text, 7 + NODE_MODEL_ID_MAX), &l));
}

static void labels_set_singly_add_up(void **state)
{
    (void)state;
    struct node_labels l = {0};
    assert_null(node_labels_set(&l, SLICE("engine"), SLICE("vllm")));
    assert_null(node_labels_set(&l, SLICE("weight"), SLICE("3")));
    assert_null(node_labels_set(&l, SLICE("ranks"), SLICE("64")));
    assert_null(node_labels_set(&l, SLICE("health"), SLICE("/up?full=1")));
    assert_slice_equal(l.health, "/up?full=1");
    assert_non_null(node_labels_set(&l, SLICE("health"), SLICE("up")));
    assert_non_null(node_labels_set(&l, SLICE("health"), SLICE("/a b")));
    assert_non_null(node_labels_set(&l, SLICE("zone"), SLICE("a")));
    assert_true(l.engine == NODE_ENGINE_VLLM && l.weight == 3 && l.ranks == 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_read),
        cmocka_unit_test(wrong_labels_get_a_correcting_error),
        cmocka_unit_test(labels_set_singly_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
