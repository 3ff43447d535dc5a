#include "gossip/hellos.h"

#include <string.h>

#include "tests/lib/test.h"

enum { NOW_US = 5000000, BURST = GOSSIP_HELLOS_SOURCE_S / 2 };

static struct gossip_hellos hellos;

/* 2001:db8::LAST. */
static struct gossip_address address(uint8_t last)
{
    struct gossip_address at = {.ip = {0x20, 0x01, 0x0d, 0xb8}, .port = 9, .family = 6};
    at.ip[15] = last;
    return at;
}

static unsigned taken(const struct gossip_address *from)
{
    unsigned count = 0;
    for (unsigned i = 0; i < 2 * BURST; i++)
        count += gossip_hellos_take(&hellos, from, NOW_US);
    return count;
}

/* All addresses of a data centre have the same prefix: a flood from there must not use up the
 * members' budget. */
static void test_each_address_has_its_own_hello_budget(void **state)
{
    (void)state;
    struct gossip_address forger = address(1), member = address(2), newcomer = address(3);
    gossip_hellos_init(&hellos, 1);
    gossip_hellos_know(&hellos, &member);
    assert_in_range(taken(&forger), BURST, BURST + 1);
    assert_in_range(taken(&member), BURST, BURST + 1);
    assert_in_range(taken(&newcomer), BURST, BURST + 1);
    assert_int_equal(taken(&member), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_address_has_its_own_hello_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
