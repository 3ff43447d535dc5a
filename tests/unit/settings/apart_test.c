/* Settings that show routers on several machines. */
#include "base/check.h"
#include "base/err.h"
#include "node/settings/options.h"
#include "tests/lib/test.h"

static bool apart(const char *listen, const char *advertise, const char *join)
{
    const struct {
        const char *name, *value;
    } given[] = {{"gossip-listen", listen}, {"gossip-advertise", advertise}, {"join", join}};
    struct node_options o;
    struct node_options_error error;
    assert_int_equal(node_options_init(&o), 0);
    for (size_t i = 0; i < ARRAY_LEN(given); i++)
        if (given[i].value != NULL)
            assert_int_equal(node_options_set(&o, slice_of_cstr(given[i].name),
                                              slice_of_cstr(given[i].value),
                                              (struct node_option_origin){0}, &error),
                             0);
    bool is = node_options_apart(&o);
    node_options_free(&o);
    return is;
}

static void other_addresses_show_several_machines(void **state)
{
    (void)state;
    assert_false(apart(NULL, NULL, NULL));
    assert_false(apart("0.0.0.0:1", NULL, NULL));
    assert_false(apart("[::]:1", NULL, "127.0.0.1:7"));
    assert_false(apart("127.0.0.1:1", "127.0.0.1:1", "localhost:7"));
    assert_false(apart(NULL, NULL, "routers.internal:7")); /* perhaps the loopback */
    assert_true(apart(NULL, NULL, "127.0.0.1:7,10.0.0.1:7"));
    assert_true(apart("10.0.0.1:1", NULL, NULL));
    assert_true(apart("0.0.0.0:1", "10.0.0.1:1", NULL));
    assert_true(apart(NULL, NULL, "[2001:db8::1]:7"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_addresses_show_several_machines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
