#include "tests/lib/test.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "node/settings/options.h"

enum { VALUES = 4 };

/* An engine and any kind of cluster, plus these settings. */
static int finish(struct node_options_error *error, const char *const pairs[VALUES][2])
{
    static const char *const always[][2] = {
        {"replica", "http://10.0.0.1:8000"}, {"insecure-gossip", "true"}, {"join", "10.0.0.7"}};
    const struct node_option_origin origin = {NODE_SOURCE_FILE, "g.yaml", 1};
    struct node_options o;
    assert_int_equal(node_options_init(&o), 0);
    for (size_t i = 0; i < ARRAY_LEN(always); i++)
        assert_int_equal(node_options_set(&o, slice_of_cstr(always[i][0]),
                                          slice_of_cstr(always[i][1]), origin, error),
                         0);
    for (size_t i = 0; i < VALUES && pairs[i][0] != NULL; i++)
        assert_int_equal(node_options_set(&o, slice_of_cstr(pairs[i][0]),
                                          slice_of_cstr(pairs[i][1]), origin, error),
                         0);
    int err = node_options_finish(&o, error);
    node_options_free(&o);
    return err;
}

/* --check-config accepted two settings with the same port, and the start then failed at the
 * second. */
static void test_listening_ports_must_differ(void **state)
{
    (void)state;
    static const struct {
        const char *setting, *value, *other;
    } rows[] = {
        {"admin-listen", "127.0.0.1:8080", "listen"},
        {"probe-listen", "127.0.0.1:9090", "admin-listen"},
        {"probe-listen", "localhost:9090", "admin-listen"},
        {"probe-listen", "0.0.0.0:9090", "admin-listen"},
        {"probe-listen", "[::]:8080", "listen"},
        {"probe-listen", "10.0.0.1:7490", "gossip-listen"},
        {"kv-events-listen", "127.0.0.1:9090", "admin-listen"},
        {"kv-events-listen", "10.0.0.1:5557", NULL},
        {"gossip-listen", "10.0.0.1:8080", "listen"},
        {"gossip-listen", "[::]:9090", "admin-listen"},
        {"probe-listen", "127.0.0.1:9091", NULL},
        {"probe-listen", "10.0.0.1:9090", NULL},
        {"admin-listen", "127.0.0.1:0", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_options_error error;
        const char *const pairs[VALUES][2] = {{rows[i].setting, rows[i].value}};
        assert_int_equal(finish(&error, pairs), rows[i].other != NULL ? ERR_RANGE : 0);
        if (rows[i].other == NULL)
            continue;
        char want[128];
        (void)snprintf(want, sizeof want, "want another port than that of %s, which is ",
                       rows[i].other);
        assert_non_null(strstr(error.text, want));
        (void)snprintf(want, sizeof want, "bad setting %s = \"%s\" (", rows[i].setting,
                       rows[i].value);
        assert_non_null(strstr(error.text, want));
    }
}

static void test_a_replica_at_an_own_port_is_refused(void **state)
{
    (void)state;
    struct node_options_error error;
    const char *const pairs[VALUES][2] = {{"replica", "http://localhost:91"},
                                          {"probe-listen", "[::]:91"}};
    assert_int_equal(finish(&error, pairs), ERR_RANGE);
    assert_non_null(strstr(error.text, "itself listens there (probe-listen)"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listening_ports_must_differ),
        cmocka_unit_test(test_a_replica_at_an_own_port_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
