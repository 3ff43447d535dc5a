#include "tests/lib/test.h"

#include "node/io/gossip_internal.h"

static struct sockaddr_storage v4(const char *ip, int port)
{
    struct sockaddr_storage at = {0};
    assert_int_equal(uv_ip4_addr(ip, port, (struct sockaddr_in *)&at), 0);
    return at;
}

static struct sockaddr_storage v6(const char *ip, int port)
{
    struct sockaddr_storage at = {0};
    assert_int_equal(uv_ip6_addr(ip, port, (struct sockaddr_in6 *)&at), 0);
    return at;
}

static struct gossip_address read_address(const struct sockaddr_storage *at)
{
    struct gossip_address out;
    assert_true(io_address_from(&out, (const struct sockaddr *)at));
    return out;
}

static void test_each_family_on_its_own_socket(void **state)
{
    (void)state;
    struct sockaddr_storage there = v4("10.1.2.3", 7490);
    struct sockaddr_storage back;
    struct gossip_address a = read_address(&there);
    assert_int_equal(a.family, 4);
    assert_int_equal(a.port, 7490);
    assert_memory_equal(a.ip, "\x0a\x01\x02\x03\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    assert_true(io_address_to(&back, &a, false));
    assert_memory_equal(&there, &back, sizeof(struct sockaddr_in));

    there = v6("fd00::7", 1);
    a = read_address(&there);
    assert_int_equal(a.family, 6);
    assert_true(io_address_to(&back, &a, true));
    assert_memory_equal(&there, &back, sizeof(struct sockaddr_in6));
    assert_false(io_address_to(&back, &a, false));
}

/* A socket on [::] sees IPv4 peers as ::ffff:a.b.c.d: to the gossip they are the same peers. */
static void test_ipv4_behind_an_ipv6_socket(void **state)
{
    (void)state;
    struct sockaddr_storage mapped = v6("::ffff:10.1.2.3", 7490);
    struct sockaddr_storage direct = v4("10.1.2.3", 7490);
    struct sockaddr_storage back;
    struct gossip_address a = read_address(&mapped);
    struct gossip_address b = read_address(&direct);
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(io_address_to(&back, &a, true));
    assert_memory_equal(&mapped, &back, sizeof(struct sockaddr_in6));
}

static void test_other_families(void **state)
{
    (void)state;
    struct sockaddr_storage at = {.ss_family = AF_UNIX};
    struct gossip_address out;
    assert_false(io_address_from(&out, (const struct sockaddr *)&at));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_family_on_its_own_socket),
        cmocka_unit_test(test_ipv4_behind_an_ipv6_socket),
        cmocka_unit_test(test_other_families),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
