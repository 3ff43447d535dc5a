/* Out of memory: flags, environment and a YAML file are read, shown and freed. */
#include "tests/lib/failmalloc.h"

#include "base/err.h"
#include "node/io/config_yaml.h"
#include "node/settings/options.h"
#include "tests/lib/test.h"

/* `count` words, as main() gets them. */
static int flags(struct node_options *o, struct node_options_error *error, unsigned count,
                 const char *const *words)
{
    static char copy[8][64];
    char *argv[9] = {NULL};
    for (unsigned i = 0; i < count; i++) {
        assert_true(slice_to_cstr(slice_of_cstr(words[i]), copy[i], sizeof copy[i]));
        argv[i] = copy[i];
    }
    return node_options_flags(o, (int)count, argv, error);
}

static int load(struct node_options *o, struct node_options_error *error)
{
    static const char *const words[] = {
        "grapevine",     "--replica", "http://10.0.0.1:8000", "--client-idle-timeout", "3s",
        "--drain-delay", "1s"};
    static char path[] = "PATH=/bin";
    static char listen[] = "GRAPEVINE_LISTEN=127.0.0.1:1234";
    static char *const environment[] = {path, listen, NULL};
    int err = flags(o, error, 7, words);
    if (err == 0)
        err = node_options_environment(o, environment, error);
    if (err == 0)
        err = io_config_yaml_parse(o,
                                   SLICE("policy: session\nreplica: [http://10.0.0.2:80, "
                                         "http://10.0.0.3:80]\nadmin-token-file: /x\n"),
                                   "grapevine.yaml", error);
    return err == 0 ? node_options_finish(o, error) : err;
}

static void settings(bool may_fail)
{
    struct node_options o;
    struct node_options_error error = {.text = ""};
    int err = node_options_init(&o);
    if (err == 0)
        err = load(&o, &error);
    assert_true(err == 0 || may_fail);
    if (err == 0) {
        assert_int_equal(o.replica.count, 1); /* the flag has priority */
        struct buf text = {0};
        int (*const prints[])(struct buf *) = {node_options_help, node_options_markdown};
        for (unsigned i = 0; i < 2; i++) {
            err = prints[i](&text);
            assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
        }
        err = node_options_effective(&o, &text);
        assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
        buf_free(&text);
    }
    node_options_free(&o);
}

static void wrong_settings(bool may_fail)
{
    struct node_options o;
    struct node_options_error error = {.text = ""};
    static const char *const wrong[] = {"grapevine", "--client-idle-timeout", "long"};
    static const char *const unknown[] = {"grapevine", "--replic", "http://10.0.0.1:8000"};
    (void)may_fail;
    int err = node_options_init(&o);
    if (err == 0) {
        assert_true(flags(&o, &error, 3, wrong) < 0);
        assert_true(flags(&o, &error, 3, unknown) < 0);
    }
    node_options_free(&o);
}

static void test_settings(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(settings));
}

static void test_wrong_settings(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(wrong_settings));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_wrong_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
