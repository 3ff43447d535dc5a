/* A replica with a user and a password is refused, and the error line omits both: the service's log
 * once had them, whole. */
#include "base/check.h"
#include "node/settings/options.h"
#include "tests/lib/test.h"

static struct node_options o;
static struct node_options_error error;

static int flags(const char *a, const char *b)
{
    char *argv[] = {(char *)"grapevine", (char *)a, (char *)b, NULL};
    return node_options_flags(&o, b != NULL ? 3 : 2, argv, &error);
}

static void expect(int err, const char *words)
{
    assert_int_equal(err, ERR_SYNTAX);
    assert_null(strstr(error.text, "secret"));
    assert_null(strstr(error.text, "joe"));
    if (strstr(error.text, words) == NULL)
        fail_msg("%s lacks %s", error.text, words);
}

static void a_password_is_in_no_message(void **state)
{
    (void)state;
    static const char *const given[] = {
        "http://joe:secret@10.0.0.1:8000",    "https://joe:secret@10.0.0.1:8000/",
        "http://joe:se@cr@secret@10.0.0.1:1", "joe:secret@10.0.0.1:8000",
        "http://joe:secret#x@10.0.0.1:8000",  "http://joe:secret@10.0.0.1:8000#weight=2",
        "http://joe:secret/x@10.0.0.1:8000",
    };
    static const char *const settings[] = {"replica", "replica-dns", "replica-kubernetes"};
    const struct node_option_origin file = {
        .source = NODE_SOURCE_FILE, .file = "g.yaml", .line = 7};
    assert_int_equal(node_options_init(&o), 0);
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        expect(flags("--replica", given[i]), "bad setting replica = \"...@10.0.0.1:");
        for (size_t k = 0; k < ARRAY_LEN(settings); k++)
            expect(node_options_set(&o, slice_of_cstr(settings[k]), slice_of_cstr(given[i]), file,
                                    &error),
                   "= \"...@10.0.0.1:");
        expect(flags(given[i], NULL), "unexpected argument \"...@10.0.0.1:");
    }
    /* Values without secrets are shown whole. */
    assert_int_equal(flags("--replica", "10.0.0.1:8000"), ERR_SYNTAX);
    assert_non_null(strstr(error.text, "bad setting replica = \"10.0.0.1:8000\" (flag --replica)"));
    node_options_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_is_in_no_message),
    };
    return cmocka_run_group_tests_name("secrets", tests, NULL, NULL);
}
