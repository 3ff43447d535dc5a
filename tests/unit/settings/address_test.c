#include "base/check.h"
#include "node/settings/address.h"

#include "node/settings/options.h"
#include "tests/lib/test.h"

static void test_loopback(void **state)
{
    (void)state;
    static const char *const yes[] = {
        "127.0.0.1",       "127.0.0.0",        "127.255.255.255", "::1",
        "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1",   "0::1",
        "localhost",       "LocalHost",        "localhost.",      "::FFFF:127.9.8.7"};
    static const char *const no[] = {"128.0.0.1",
                                     "126.255.255.255",
                                     "0.0.0.0",
                                     "::",
                                     "10.0.0.127",
                                     "::2",
                                     "1::1",
                                     "::127.0.0.1", /* IPv4-compatible is not IPv4-mapped */
                                     "::ffff:10.0.0.1",
                                     "::ffff:0:127.0.0.1",
                                     "fe80::1%lo",
                                     "127.0.0.1.evil.test",
                                     "127.0.0",
                                     "127.1",
                                     "127.0.0.256",
                                     "127.0.0.1 ",
                                     "localhost.evil.test",
                                     "evil-localhost",
                                     "",
                                     ":",
                                     ":1",
                                     ":::1",
                                     "::1:",
                                     "::1::",
                                     "1:2:3:4:5:6:7:8:9",
                                     "1:2:3:4:5:6:7",
                                     "::fffff:127.0.0.1",
                                     "::ffff:127.0.0.1.2",
                                     "::ffff:127.0.0.1:1"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (!node_host_is_loopback(yes[i]))
            fail_msg("%s is this machine", yes[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(no); i++) {
        if (node_host_is_loopback(no[i]))
            fail_msg("%s may be another machine", no[i]);
    }
}

static void test_any_addresses(void **state)
{
    (void)state;
    assert_true(node_host_is_any("0.0.0.0"));
    assert_true(node_host_is_any("::"));
    assert_true(node_host_is_any("0:0:0::0"));
    assert_true(node_host_is_any("::ffff:0.0.0.0"));
    assert_false(node_host_is_any("0.0.0.1"));
    assert_false(node_host_is_any("::1"));
    assert_false(node_host_is_any("any"));
    assert_false(node_host_is_any(""));
}

static struct node_address at(const char *text)
{
    struct node_address a;
    assert_int_equal(node_address_parse(slice_of_cstr(text), &a), 0);
    return a;
}

static void test_reaches(void **state)
{
    (void)state;
    static const struct {
        const char *to, *listen;
        bool reaches;
    } rows[] = {
        {"10.0.0.1:80", "10.0.0.1:80", true},
        {"10.0.0.1:80", "10.0.0.1:81", false},
        {"10.0.0.1:80", "10.0.0.2:80", false},
        {"router:80", "Router:80", true},
        {"router:80", "0.0.0.0:80", false}, /* not decidable from the text */
        {"10.0.0.1:80", "0.0.0.0:80", false},
        {"127.0.0.1:80", "0.0.0.0:80", true},
        {"127.0.0.2:80", "0.0.0.0:80", true},
        {"localhost:80", "0.0.0.0:80", true},
        {"0.0.0.0:80", "0.0.0.0:80", true},
        {"0.0.0.0:80", "127.0.0.1:80", true}, /* connecting to 0.0.0.0 reaches loopback */
        {"[::1]:80", "0.0.0.0:80", false},
        {"[::1]:80", "[::]:80", true},
        {"[::]:80", "[::1]:80", true},
        {"127.0.0.1:80", "[::]:80", true},
        {"[::ffff:127.0.0.1]:80", "127.0.0.1:80", true},
        {"[::ffff:127.0.0.1]:80", "0.0.0.0:80", true},
        {"localhost:80", "127.0.0.1:80", true},
        {"localhost:80", "[::1]:80", true},
        {"127.0.0.1:80", "localhost:80", true},
        {"127.0.0.2:80", "127.0.0.1:80", false},
        {"[0:0::1]:80", "[::1]:80", true},
        {"[fd00::1]:80", "[fd00:0::1]:80", true},
        {"10.0.0.1:0", "10.0.0.1:0", false},
        {"127.0.0.1:80", "10.0.0.1:80", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct node_address to = at(rows[i].to), listen = at(rows[i].listen);
        if (node_address_reaches(&to, &listen) != rows[i].reaches)
            fail_msg("%s at %s: want %d", rows[i].to, rows[i].listen, rows[i].reaches);
    }
}

static void test_replica_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool tls;
        const char *host;
        uint16_t port;
    } good[] = {{"10.0.0.1:8000", false, "10.0.0.1", 8000},
                {"https://10.0.0.1:443", true, "10.0.0.1", 443},
                {"https://[::1]:8443", true, "::1", 8443},
                {"https://engines.internal:1", true, "engines.internal", 1}};
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct node_address a = {.tls = !good[i].tls};
        char name[NODE_REPLICA_NAME_BYTES];
        assert_int_equal(node_address_parse_replica(slice_of_cstr(good[i].name), &a), 0);
        assert_int_equal(a.tls, good[i].tls);
        assert_string_equal(a.host, good[i].host);
        assert_int_equal(a.port, good[i].port);
        node_replica_name_of(&a, name);
        assert_string_equal(name, good[i].name);
    }
    static const char *const bad[] = {"https://a",     "https://a:0", "http://a:1", "https://",
                                      "https://a:1/v", "a:0",         "HTTPS://a:1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct node_address a;
        if (node_address_parse_replica(slice_of_cstr(bad[i]), &a) != ERR_SYNTAX)
            fail_msg("%s is no name of a replica", bad[i]);
    }
}

static void test_an_address_without_a_port(void **state)
{
    (void)state;
    static const struct {
        const char *text, *host;
        unsigned port;
    } good[] = {{"10.0.0.7", "10.0.0.7", 9090}, {"10.0.0.7:1", "10.0.0.7", 1},
                {"fd00::7", "fd00::7", 9090},   {"[fd00::7]", "fd00::7", 9090},
                {"[fd00::7]:1", "fd00::7", 1},  {"router.test", "router.test", 9090}};
    static const char *const bad[] = {
        "", ":1", "fd00::7:x", "router.test:", "a b", "[fd00::7", "a:b:c"};
    struct node_address at;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        assert_int_equal(node_address_parse_bare(slice_of_cstr(good[i].text), 9090, &at), 0);
        assert_string_equal(at.host, good[i].host);
        assert_int_equal(at.port, good[i].port);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_int_not_equal(node_address_parse_bare(slice_of_cstr(bad[i]), 9090, &at), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_any_addresses),
        cmocka_unit_test(test_an_address_without_a_port),
        cmocka_unit_test(test_reaches),
        cmocka_unit_test(test_replica_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
