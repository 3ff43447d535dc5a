#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "node/io/config.h"
#include "node/io/config_yaml.h"

static struct node_options o;
static struct node_options_error error;

static int parse(const char *text)
{
    node_options_free(&o);
    assert_int_equal(node_options_init(&o), 0);
    return io_config_yaml_parse(&o, slice_of_cstr(text), "g.yaml", &error);
}

static int teardown(void **state)
{
    (void)state;
    node_options_free(&o);
    return 0;
}

static void test_settings(void **state)
{
    (void)state;
    assert_int_equal(parse("# a comment\n"
                           "listen: 0.0.0.0:9000\n"
                           "admin-listen: \"[::1]:9001\"\n"
                           "replica:\n"
                           "  - http://a:1\n"
                           "  - http://b:2#engine=vllm   # a comment\n"
                           "ttl: 2h\n"
                           "replica-header: no\n"
                           "near-tie: 0.1\n"
                           "seed: 7\n"),
                     0);
    assert_int_equal(o.listen.port, 9000);
    assert_string_equal(o.admin_listen.host, "::1");
    assert_int_equal(o.replica.count, 2);
    assert_string_equal(o.replica.at[1], "http://b:2#engine=vllm");
    assert_int_equal(o.ttl_ms, 7200000);
    assert_false(o.replica_header);
    assert_int_equal(o.seed, 7);
    assert_int_equal(o.origins[node_option_find(SLICE("ttl"))].line, 7);
    assert_int_equal(parse("replica: [http://a, http://b]\n"), 0);
    assert_int_equal(o.replica.count, 2);
    assert_int_equal(parse("replica: http://a,http://b\n"), 0);
    assert_int_equal(o.replica.count, 2);
    assert_int_equal(parse("model-alias:\n  x: a:9,b:1\n  y: c > d\n"), 0);
    assert_int_equal(o.model_alias.count, 3);
    assert_string_equal(o.model_alias.at[0], "x=a:9");
    assert_string_equal(o.model_alias.at[1], "b:1");
    assert_string_equal(o.model_alias.at[2], "y=c > d");
}

static void test_files_that_set_nothing(void **state)
{
    (void)state;
    assert_int_equal(parse(""), 0);
    assert_int_equal(parse("# nothing\n"), 0);
    assert_int_equal(parse("---\n"), 0);
    assert_int_equal(parse("{}\n"), 0);
}

static void test_errors_name_the_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *line;
    } bad[] = {
        {"listen: 0.0.0.0:1\n\nttl: soon\n",
         "bad setting ttl = \"soon\" (g.yaml:3): want a time with its unit from 1s to 24h, such as "
         "1h"},
        {"replica:\n- http://a\n- b\n",
         "bad setting replica = \"b\" (g.yaml:3): want a URL such as http://10.0.0.1:8000"},
        {"replica: {url: http://a}\n",
         "bad file g.yaml:1: want a sequence of replicas: - url: http://HOST:PORT"},
        {"replica:\n- url: http://a\n  engine: vlm\n",
         "bad file g.yaml:3: want engine=vllm, engine=sglang or engine=other (here: engine)"},
        {"replica:\n- url: http://a\n  name: b\n",
         "bad file g.yaml:3: want url, engine, weight, model, health, cache-tokens, context, "
         "ranks, adapters, host-header, kv-events or role (here: name)"},
        {"replica:\n- url: http://a\n  url: http://b\n",
         "bad file g.yaml:3: want each key of a replica once (here: url)"},
        {"replica:\n- weight: 2\n", "bad file g.yaml:2: want a url: http://HOST:PORT"},
        {"replica:\n- weight: 2\n  url: ftp://a\n", "bad setting replica = \"ftp://a#weight=2\" "
                                                    "(g.yaml:3): want a URL such as "
                                                    "http://10.0.0.1:8000"},
        {"replica:\n- url: http://a\n  weight: [2]\n",
         "bad file g.yaml:3: want one plain value (here: weight)"},
        {"replica:\n- url: &x http://a\n", "bad file g.yaml:2: want one plain value (here: url)"},
        {"replica:\n- url: \"http://a\\0\"\n",
         "bad file g.yaml:2: want one plain value (here: url)"},
        {"replica:\n- url: http://a\n  model: x#y\n",
         "bad file g.yaml:2: want no # and no comma in a replica's values, or the replica in a "
         "replica-file"},
        {"replica-dns:\n- url: a:1\n", "bad file g.yaml:2: want plain values in a sequence"},
        {"kv-events: on\n",
         "bad setting kv-events = \"on\" (g.yaml:1): want auto or off; did you mean auto?"},
        {"kv-events-listen: 5557\n", "bad setting kv-events-listen = \"5557\" (g.yaml:1): want "
                                     "HOST:PORT, such as 10.0.0.5:5557"},
        {"lisen: a:1\n", "unknown setting \"lisen\" (g.yaml:1): did you mean listen?"},
        {"lisen: [a:1]\n", "unknown setting \"lisen\" (g.yaml:1): did you mean listen?"},
        {"ttl: 1h\nttl: 2h\n", "bad file g.yaml:2: want ttl only once"},
        {"routing:\n  ttl: 1h\n", "bad file g.yaml:2: want name: value, not nested"},
        {"ttl: [1h]\n", "bad file g.yaml:1: want one value, not a sequence"},
        {"replica: []\n", "bad file g.yaml:1: want at least one value in a sequence"},
        {"replica: [[http://a]]\n", "bad file g.yaml:1: want plain values in a sequence"},
        {"ttl: &x 1h\n", "bad file g.yaml:1: want no anchors"},
        {"ttl: *x\n", "bad file g.yaml:1: want name: value, not nested"},
        {"model-alias: {a: [b]}\n",
         "bad file g.yaml:1: want NAME: MODEL, such as gpt-4o: llama-70b:90,llama-70b-v2:10"},
        {"model-alias: {}\n",
         "bad file g.yaml:1: want NAME: MODEL, such as gpt-4o: llama-70b:90,llama-70b-v2:10"},
        {"model-alias:\n  a: b\n  c: d:0\n", "bad setting model-alias = \"c=d:0\" (g.yaml:3): want "
                                             "a weight from 1 to 1000000 behind the "
                                             "last colon; to send a model nothing, leave it out"},
        {"- ttl\n", "bad file g.yaml:1: want lines of name: value"},
        {"ttl\n", "bad file g.yaml:1: want lines of name: value"},
        {"? [a]\n: b\n", "bad file g.yaml:1: want the name of a setting"},
        {"ttl: 1h\n---\nseed: 1\n", "bad file g.yaml:2: want one document only"},
        {"ttl:\n", "bad setting ttl = \"\" (g.yaml:1): want a time with its unit from 1s to 24h, "
                   "such as 1h"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(parse(bad[i].text) < 0);
        assert_string_equal(error.text, bad[i].line);
    }
    assert_int_equal(parse("ttl: 1h\n\tseed: 1\n"), ERR_SYNTAX);
    assert_non_null(strstr(error.text, "bad file g.yaml:2: not YAML, "));
    assert_int_equal(parse("seed: 1\nttl 1h\nretries-max: 1\n"), ERR_SYNTAX); /* the start */
    assert_non_null(strstr(error.text, "bad file g.yaml:2: not YAML, "));
    assert_int_equal(parse("ttl: \"1h\n"), ERR_SYNTAX);
    assert_int_equal(parse("\xff\xfe\x41"), ERR_SYNTAX);
}

/* The output of --check-config is a file with the same settings. */
static void test_effective_is_a_file(void **state)
{
    (void)state;
    assert_int_equal(parse("replica: [http://a, 'http://[::1]:2#engine=sglang']\n"
                           "admin-token-file: \"a: \\\"b\\\" # c\"\nttl: 90m\n"),
                     0);
    struct buf first = {0};
    struct buf second = {0};
    assert_int_equal(node_options_effective(&o, &first), 0);
    assert_int_equal(buf_append_char(&first, '\0'), 0);
    int err = parse(first.at);
    if (err != 0)
        fail_msg("%s", error.text);
    assert_string_equal(o.admin_token_file, "a: \"b\" # c");
    assert_int_equal(o.ttl_ms, 5400000);
    assert_int_equal(o.replica.count, 2);
    assert_int_equal(node_options_effective(&o, &second), 0);
    buf_free(&first);
    buf_free(&second);

    static const char *const odd[] = {"#x", "-", ":", "x:", "~", "?", "[x", "a\\", "'a'", "%", "@"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct node_option_origin origin = {.source = NODE_SOURCE_FLAG};
        struct buf text = {0};
        assert_int_equal(parse("replica: http://a\n"), 0);
        assert_int_equal(
            node_options_set(&o, SLICE("admin-token-file"), slice_of_cstr(odd[i]), origin, &error),
            0);
        assert_int_equal(node_options_effective(&o, &text), 0);
        assert_int_equal(buf_append_char(&text, '\0'), 0);
        if (parse(text.at) != 0)
            fail_msg("%s", error.text);
        assert_string_equal(o.admin_token_file, odd[i]);
        buf_free(&text);
    }
}

/* As in a replica-file: mappings and texts may be mixed, and every mistake is noted. */
static void test_replicas_are_mappings_too(void **state)
{
    (void)state;
    assert_int_equal(parse("replica:\n- http://a\n- {url: 'http://b:81', engine: vllm, weight: 2, "
                           "model: Qwen/Qwen3-8B}\n- url: http://c\n  context: 8192\n"),
                     0);
    assert_int_equal(o.replica.count, 3);
    assert_string_equal(o.replica.at[0], "http://a");
    assert_string_equal(o.replica.at[1], "http://b:81#engine=vllm#weight=2#model=Qwen/Qwen3-8B");
    assert_string_equal(o.replica.at[2], "http://c#context=8192");
    struct node_options_notes notes = {0};
    node_options_free(&o);
    assert_int_equal(node_options_init(&o), 0);
    o.notes = &notes;
    int err =
        io_config_yaml_parse(&o,
                             slice_of_cstr("replica:\n- url: http://a\n  engine: x\n  weight: y\n"
                                           "- url: http://b\n  ranks: z\nttl: soon\n"),
                             "g.yaml", &error);
    o.notes = NULL;
    assert_int_equal(err, 0);
    assert_int_equal(notes.count, 3);
    assert_int_equal(buf_append_char(&notes.text, '\0'), 0);
    assert_non_null(strstr(notes.text.at, "g.yaml:3: "));
    assert_non_null(strstr(notes.text.at, "g.yaml:6: "));
    assert_non_null(strstr(notes.text.at, "(g.yaml:7)"));
    buf_free(&notes.text);
}

/* A split stays one item of the list. */
static void effective_aliases_are_whole(void **state)
{
    (void)state;
    struct buf text = {0};
    assert_int_equal(parse("replica: http://a:1\nmodel-alias: [x=y, \"a=b:90,c:10>d\", e=f]\n"), 0);
    assert_int_equal(node_options_effective(&o, &text), 0);
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    assert_non_null(strstr(text.at, "\nmodel-alias: [\"x=y\", \"a=b:90,c:10>d\", \"e=f\"] "));
    buf_free(&text);
}

/* The configured value, the effective value, and the reason. */
static void test_a_lowered_value_is_marked(void **state)
{
    (void)state;
    struct buf text = {0};
    assert_int_equal(parse("replica: http://a\nconnections-max: 500\n"), 0);
    o.connections_max = 23;
    o.lowered = (struct node_option_lowered){"connections-max", 500, "at most 100 files"};
    assert_int_equal(node_options_effective(&o, &text), 0);
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    const char *row = strstr(text.at, "\nconnections-max: 23 ");
    assert_non_null(row);
    assert_non_null(strstr(row, ":2; lowered from 500: at most 100 files\n"));
    assert_null(strstr(strstr(row, "lowered") + 1, "lowered"));
    buf_free(&text);
}

static const char *ignored(const char *more)
{
    char text[200];
    int row = node_option_find(SLICE("control-share"));
    (void)snprintf(text, sizeof text, "replica: http://a\ncontrol-share: %s\n", more);
    assert_int_equal(parse(text), 0);
    return node_option_ignored(&o, node_option_at((unsigned)row));
}

/* It was taken without a word, and measured nothing. */
static void test_a_control_share_without_effect_is_marked(void **state)
{
    (void)state;
    struct buf text = {0};
    assert_null(ignored("0.05"));
    assert_null(ignored("0\nshadow: on"));
    assert_null(ignored("0\npolicy: least_request"));
    assert_null(ignored("0.05\npolicy: session"));
    assert_string_equal(ignored("0.05\npolicy: session\nplain-policy: session"),
                        "policy and plain-policy are the same");
    assert_string_equal(ignored("0.05\npolicy: least_request"),
                        "policy and plain-policy are the same");
    assert_string_equal(ignored("0.05\nshadow: on"), "shadow is on");
    assert_int_equal(node_options_effective(&o, &text), 0);
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    assert_non_null(
        strstr(strstr(text.at, "\ncontrol-share: 0.05 "), ":2; ignored: shadow is on\n"));
    buf_free(&text);
}

static int load(int argc, const char *const *argv, const char *variable)
{
    static char words[8][256];
    char text[256];
    char *copies[8];
    char *all[] = {text, NULL};
    node_options_free(&o);
    assert_true(slice_to_cstr(slice_of_cstr(variable), text, sizeof text));
    for (int i = 0; i < argc; i++) {
        assert_true(slice_to_cstr(slice_of_cstr(argv[i]), words[i], sizeof words[0]));
        copies[i] = words[i];
    }
    return io_config_load(&o, argc, copies, all, &error);
}

static void test_load(void **state)
{
    (void)state;
    char path[] = "/tmp/grapevine-config-test-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char text[] = "replica: http://a\nttl: 2h\nseed: 1\nretries-max: 1\n";
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    (void)close(fd);

    const char *argv[] = {"grapevine", "--config", path, "--seed", "3"};
    assert_int_equal(load(5, argv, "GRAPEVINE_RETRIES_MAX=2"), 0);
    assert_int_equal(o.seed, 3);
    assert_int_equal(o.retries_max, 2);
    assert_int_equal(o.ttl_ms, 7200000);
    char variable[64];
    (void)snprintf(variable, sizeof variable, "GRAPEVINE_CONFIG=%s", path);
    assert_int_equal(load(1, argv, variable), 0);
    assert_int_equal(o.seed, 1);
    (void)unlink(path);

    assert_int_equal(load(3, argv, "A=b"), ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "No such file or directory"));
    const char *folder[] = {"grapevine", "--config=/"};
    assert_int_equal(load(2, folder, "A=b"), ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "Is a directory"));
    const char *help[] = {"grapevine", "--help"};
    assert_int_equal(load(2, help, "GRAPEVINE_TTL=nonsense"), 0);
    assert_int_equal(o.command, NODE_COMMAND_HELP);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

static void test_every_mistake_is_noted(void **state)
{
    (void)state;
    static const char text[] = "listen: nowhere\nlisen: a:1\nreplica: [b, http://a]\n"
                               "model-alias: {x: y z}\nttl: [1h]\nseed: never read\n";
    char path[] = "/tmp/grapevine-notes-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof text - 1), sizeof text - 1);
    assert_int_equal(close(fd), 0);
    char config[64];
    (void)snprintf(config, sizeof config, "--config=%s", path);
    char *argv[] = {(char *)"grapevine", (char *)"--ttl=soon", config, (char *)"--nothing=1", NULL};
    char *environ_of[] = {(char *)"GRAPEVINE_SEED=x", (char *)"GRAPEVINE_SED=1", NULL};
    struct node_options_notes notes = {0};
    node_options_free(&o);
    assert_int_equal(io_config_load_all(&o, 4, argv, environ_of, &notes), ERR_SYNTAX);
    assert_int_equal(notes.count, 9);
    static const char *const said[] = {
        "setting ttl = \"soon\" (flag",    "unknown setting \"nothing\" (flag)",
        "setting seed = \"x\" (GRAPE",     "did you mean GRAPEVINE_SEED?",
        "setting listen = \"nowhere\"",    "did you mean listen?",
        "setting replica = \"b\"",         "setting model-alias = \"x=y z\"",
        ":5: want one value, not a seque",
    };
    struct slice rest = buf_slice(&notes.text);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        struct slice line = slice_cut(&rest, '\n');
        if (memmem(line.at, line.len, said[i], strlen(said[i])) == NULL)
            fail_msg("%s in: %.*s", said[i], SLICE_ARG(line));
    }
    buf_free(&notes.text);
    assert_int_equal(unlink(path), 0);
}

/* Contradictions may be consequences of wrong values. */
static void test_contradictions_are_checked_after_values(void **state)
{
    (void)state;
    char *argv[] = {(char *)"grapevine",
                    (char *)"--replica=http://a:1",
                    (char *)"--ttl=1s",
                    (char *)"--insecure-gossip",
                    (char *)"--tls-cert=a",
                    (char *)"--tls-key=a,b",
                    NULL};
    char *none[] = {NULL};
    struct node_options_notes notes = {0};
    node_options_free(&o);
    assert_int_equal(io_config_load_all(&o, 6, argv, none, &notes), ERR_RANGE);
    assert_int_equal(notes.count, 3);
    assert_true(o.notes == NULL);
    buf_free(&notes.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_settings),
        TEST(test_files_that_set_nothing),
        TEST(test_errors_name_the_line),
        TEST(test_effective_is_a_file),
        TEST(effective_aliases_are_whole),
        TEST(test_a_lowered_value_is_marked),
        TEST(test_a_control_share_without_effect_is_marked),
        TEST(test_replicas_are_mappings_too),
        TEST(test_load),
        cmocka_unit_test(test_every_mistake_is_noted),
        cmocka_unit_test(test_contradictions_are_checked_after_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
