/* Finds the time since which the routers agree, from the digests in their answers. Observations
 * still on the way to some routers make no difference, though new observations come each second. */
#include "node/admin/live.c" // NOLINT(bugprone-suspicious-include)
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

#define R1                                                                                         \
    "{\"r1\":{\"registry\":\"1\",\"log\":\"2\",\"reports\":\"3\",\"floor\":1,\"now\":2,\"index\":" \
    "[]}"
#define OTHER(registry)                                                                            \
    ",\"r2\":{\"registry\":\"" registry                                                            \
    "\",\"log\":\"2\",\"reports\":\"3\",\"floor\":1,\"now\":2,\"index\":[]}}"

static struct proxy_world world;

static void answered(struct slice nodes, enum agree expected)
{
    struct admin_live *live = world.node->admin->live;
    on_digests(live, nodes);
    assert_int_equal(live->agreement.state, expected);
    proxy_world_wait(&world, 1000);
}

static void observations_in_flight_do_not_end_agreement(void **state)
{
    (void)state;
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    const struct agreement *a = &world.node->admin->live->agreement;
    uint64_t began_ms = admin_unix_ms(world.node->admin);
    for (unsigned i = 0; i < 3; i++) {
        answered(SLICE(R1 OTHER("1")), AGREE_EQUAL);
        answered(SLICE(R1 OTHER("7")), AGREE_MOVING);
    }
    answered(SLICE(R1 OTHER("1")), AGREE_EQUAL);
    assert_int_equal(a->since_ms, began_ms);
    answered(SLICE("{\"r1\":{\"error\":\"timeout\"}}"), AGREE_SILENT);
    assert_true(a->since_ms > began_ms);
    proxy_world_close(&world);
}

/* A page that was just opened shows no trouble for updates on the way. */
static void the_first_difference_says_nothing(void **state)
{
    (void)state;
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    answered(SLICE(R1 OTHER("7")), AGREE_UNKNOWN);
    answered(SLICE(R1 OTHER("7")), AGREE_DIFFER);
    answered(SLICE(R1 OTHER("1")), AGREE_EQUAL);
    answered(SLICE(R1 OTHER("7")), AGREE_MOVING);
    proxy_world_wait(&world, LIVE_MOVING_MS);
    answered(SLICE(R1 OTHER("7")), AGREE_DIFFER);
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(observations_in_flight_do_not_end_agreement),
        cmocka_unit_test(the_first_difference_says_nothing),
    };
    return cmocka_run_group_tests_name("agreement", tests, NULL, NULL);
}
