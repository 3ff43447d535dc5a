#include "base/ip.h"

#include <string.h>

#include "tests/lib/test.h"

static void assert_text(const char *text, const char *expected)
{
    uint8_t ip[IP_BYTES];
    char out[IP_TEXT_BYTES];
    assert_true(ip_parse(text, ip));
    ip_format(ip, out);
    assert_string_equal(out, expected);
}

/* RFC 5952, sections 4 and 5. */
static void addresses_as_text(void **state)
{
    (void)state;
    assert_text("10.0.0.1", "10.0.0.1");
    assert_text("255.255.255.255", "255.255.255.255");
    assert_text("::ffff:10.0.0.1", "10.0.0.1");
    assert_text("2001:0DB8:0:0:0:0:2:1", "2001:db8::2:1");
    assert_text("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1");
    assert_text("2001:0:0:1:0:0:0:1", "2001:0:0:1::1");
    assert_text("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1");
    assert_text("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::");
    assert_text("::", "::");
    assert_text("::1", "::1");
    assert_text("fe80::1%eth0", "fe80::1");
    assert_text("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

static void malformed_addresses_are_refused(void **state)
{
    (void)state;
    static const char *const no[] = {"",          "10.0.0",  "10.0.0.256",    "10.0.0.1.",
                                     "a.b.c.d",   "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
                                     "localhost", "12345::"};
    uint8_t ip[IP_BYTES];
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(ip_parse(no[i], ip));
}

static bool has(const char *net, const char *address)
{
    struct ip_net n;
    uint8_t ip[IP_BYTES];
    assert_true(ip_net_parse(slice_of_cstr(net), &n));
    assert_true(ip_parse(address, ip));
    return ip_net_has(&n, ip);
}

static void networks(void **state)
{
    (void)state;
    assert_true(has("10.0.0.0/8", "10.255.0.1"));
    assert_false(has("10.0.0.0/8", "11.0.0.1"));
    assert_true(has("192.0.2.129/25", "192.0.2.200"));
    assert_false(has("192.0.2.129/25", "192.0.2.127"));
    assert_true(has("192.0.2.7", "::ffff:192.0.2.7"));
    assert_false(has("192.0.2.7", "192.0.2.6"));
    assert_true(has("0.0.0.0/0", "203.0.113.1"));
    assert_false(has("0.0.0.0/0", "2001:db8::1"));
    assert_true(has("2001:db8::/31", "2001:db9::1"));
    assert_false(has("2001:db8::/32", "2001:db9::1"));
    assert_true(has("::/0", "203.0.113.1"));
    static const char *const no[] = {"",       "10.0.0.0/33", "10.0.0.0/",   "10.0.0.0/8/8",
                                     "::/129", "host/8",      "10.0.0.0/-1", "fe80::%eth0/10"};
    struct ip_net n;
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(ip_net_parse(slice_of_cstr(no[i]), &n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_as_text),
        cmocka_unit_test(malformed_addresses_are_refused),
        cmocka_unit_test(networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
