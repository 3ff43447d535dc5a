/* The text of a file of replicas: lines, or YAML. */
#include "node/io/replica_list.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/lib/test.h"

static struct replica_list list;
static char message[REPLICA_LIST_MESSAGE];

static int teardown(void **state)
{
    (void)state;
    replica_list_free(&list);
    return 0;
}

static int parse(const char *text)
{
    replica_list_free(&list);
    return replica_list_parse(slice_of_cstr(text), &list, message);
}

/* Expects "name engine weight model" of each entry. */
static void is(const char *want)
{
    char got[1024] = "";
    for (unsigned i = 0; i < list.count; i++) {
        const struct discover_entry *e = &list.entries[i];
        size_t len = strlen(got);
        assert_int_equal(e->state, DISCOVER_SERVING);
        (void)snprintf(got + len, sizeof got - len, "%s%.*s %d %g %.*s", i > 0 ? ", " : "",
                       SLICE_ARG(e->name), (int)e->labels.engine, node_labels_weight(&e->labels),
                       SLICE_ARG(e->labels.model));
    }
    assert_string_equal(got, want);
}

static void lines_with_comments(void **state)
{
    (void)state;
    assert_int_equal(parse("# the first rack\n"
                           "http://10.0.0.1:8000\n"
                           "\n"
                           "  http://[fd00::1]:8000#weight=2#engine=vllm   # new\r\n"
                           "\thttp://e-1.rack/#model=org/m\t#it\n"
                           "http://b:1 #"),
                     ERR_OK);
    is("10.0.0.1:8000 0 1 , [fd00::1]:8000 1 2 , e-1.rack:80 0 1 org/m, b:1 0 1 ");
}

static void a_sequence_of_yaml(void **state)
{
    (void)state;
    assert_int_equal(parse("# as YAML\n"
                           "---\n"
                           "- http://a:1#weight=2   # a comment\n"
                           "- url: http://b:1#weight=2\n"
                           "  engine: sglang\n"
                           "  weight: 0.5\n"
                           "  model: 'org/m'\n"
                           "  role: any\n"
                           "- {url: http://c:1}\n"),
                     ERR_OK);
    is("a:1 0 2 , b:1 2 0.5 org/m, c:1 0 1 ");
    assert_int_equal(parse("[\"http://a:1\", {\"url\": \"http://b:1\", \"weight\": 2}]"), ERR_OK);
    is("a:1 0 1 , b:1 0 2 ");
}

static void every_label_in_both_forms(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "http://a:1#engine=sglang#weight=3#model=org/m#health=/up#cache-tokens=4096#ranks=2"
        "#context=8192#adapters=on-demand\n",
        "- http://a:1#engine=sglang#weight=3#model=org/m#health=/up#cache-tokens=4096#ranks=2"
        "#context=8192#adapters=on-demand\n",
        "- url: http://a:1\n  engine: sglang\n  weight: 3\n  model: org/m\n  health: /up\n"
        "  cache-tokens: 4096\n  context: 8192\n  ranks: 2\n  adapters: on-demand\n",
        "- url: http://a:1#engine=vllm#weight=7#model=x#health=/x#cache-tokens=1#ranks=7\n"
        "  engine: sglang\n  weight: 3\n  model: org/m\n  health: /up\n"
        "  cache-tokens: 4096\n  context: 8192\n  ranks: 2\n  adapters: on-demand\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        assert_int_equal(parse(forms[i]), ERR_OK);
        is("a:1 2 3 org/m");
        const struct node_labels *l = &list.entries[0].labels;
        assert_true(slice_equal(l->health, SLICE("/up")));
        assert_int_equal(l->cache_tokens, 4096);
        assert_int_equal(l->context_tokens, 8192);
        assert_int_equal(l->ranks, 2);
        assert_true(l->adapters_on_demand);
    }
}

static void an_empty_list_is_valid(void **state)
{
    (void)state;
    static const char *const empty[] = {"",   "\n\n",     "# nobody\n", "---\n",
                                        "[]", "--- []\n", " \t "};
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        assert_int_equal(parse(empty[i]), ERR_OK);
        assert_int_equal(list.count, 0);
    }
}

static void a_byte_order_mark_is_skipped(void **state)
{
    (void)state;
    assert_int_equal(parse("\xef\xbb\xbfhttp://a:1\n"), ERR_OK);
    assert_int_equal(list.count, 1);
    replica_list_free(&list);
    assert_int_equal(parse("\xef\xbb\xbf- http://a:1\n- http://b:1\n"), ERR_OK);
    assert_int_equal(list.count, 2);
    replica_list_free(&list);
}

static void errors_name_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wrong;
    } bad[] = {
        {"http://a:1\n10.0.0.1:8000\n",
         "2: want a URL such as http://10.0.0.1:8000 (here: 10.0.0.1:8000)"},
        {"HTTP\x01://a:1\n", "1: want a URL such as http://10.0.0.1:8000 (here: HTTP?://a:1)"},
        {"http://me:secret@a:1\n",
         "1: want no user and password: http://HOST:PORT alone (here: ...@a:1)"},
        {"http://me:sec@ret@a:1\n",
         "1: want no user and password: http://HOST:PORT alone (here: ...@a:1)"},
        {"http://a:1@64\n",
         "1: want no rank in a URL: http://HOST:PORT has all its data-parallel ranks, as its "
         "metrics or #ranks=N say (here: ...@64)"},
        {"- url: http://a:1\n  zone: b\n",
         "2: want url, engine, weight, model, health, cache-tokens, context, ranks, adapters, "
         "host-header, kv-events or role (here: zone)"},
        {"http://a:1 http://b:1\n", "1: want one replica a line"},
        {"\n\nhttp://a:1#zone=x", "3: after # want engine=, weight=, model=, health=, "
                                  "cache-tokens=, context=, ranks=, adapters=, host-header=, "
                                  "kv-events= or role=, each behind "
                                  "its own #"},
        {"http://a:1#", "1: after # want a label, such as engine=vllm or weight=2"},
        {"- https://a:1\n- https://b:0\n",
         "2: want a URL such as http://10.0.0.1:8000, its port from 1 to 65535 (here: "
         "https://b:0)"},
        {"- http://a:1\n- [http://b:1]\n", "2: want http://HOST:PORT, or a map with a url"},
        {"- url: http://a:1\n  zone: {x: y}\n", "2: want one plain value (here: zone)"},
        {"- url: http://a:1\n  url: http://b:1\n", "2: want each key of a replica once"},
        {"- engine: vllm\n", "1: want a url: http://HOST:PORT"},
        {"- url: [a]\n", "1: want one plain value"},
        {"- &x http://a:1\n", "1: want http://HOST:PORT, or a map with a url"},
        {"- http://a:1\n---\n- http://b:1\n", "2: want one document only"},
        {"--- a\n", "1: want a sequence of replicas"},
        {"--- {a: b}\n", "1: want a sequence of replicas"},
        {"- 'http://a:1\n", "1: not YAML, found unexpected end of stream"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i].text), ERR_SYNTAX);
        assert_int_equal(list.count, 0);
        if (strncmp(message, bad[i].wrong, strlen(bad[i].wrong)) != 0)
            fail_msg("%s: %s, not %s", bad[i].text, message, bad[i].wrong);
    }
}

static void a_list_has_a_limit(void **state)
{
    (void)state;
    struct buf text = {0};
    for (unsigned i = 0; i < DISCOVER_ENTRIES_MAX; i++)
        assert_int_equal(buf_printf(&text, "http://h%u:1\n", i), ERR_OK);
    assert_int_equal(replica_list_parse(buf_slice(&text), &list, message), ERR_OK);
    assert_int_equal(list.count, DISCOVER_ENTRIES_MAX);
    replica_list_free(&list);
    assert_int_equal(buf_append_cstr(&text, "http://more:1\n"), ERR_OK);
    assert_int_equal(replica_list_parse(buf_slice(&text), &list, message), ERR_LIMIT);
    assert_string_equal(message, "4097: want at most 4096 replicas");
    buf_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lines_with_comments, teardown),
        cmocka_unit_test_teardown(a_sequence_of_yaml, teardown),
        cmocka_unit_test_teardown(every_label_in_both_forms, teardown),
        cmocka_unit_test_teardown(an_empty_list_is_valid, teardown),
        cmocka_unit_test_teardown(a_byte_order_mark_is_skipped, teardown),
        cmocka_unit_test_teardown(errors_name_their_line, teardown),
        cmocka_unit_test_teardown(a_list_has_a_limit, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
