/* A removed replica is forgotten, with the pool, as soon as no work for it is under way. */
#include "node/proxy/engine/fetch.h"
#include "node/proxy/engine/pool.h"
#include "node/proxy/proxy_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

/* The replica's health check is given up too: nothing waits for a missing answer. */
static void a_health_check_in_flight_delays_nothing(void **state)
{
    (void)state;
    proxy_world_open(&world,
                     &(struct proxy_world_config){.replicas = 2, .probes = true, .quiet = true});
    struct wire *check = proxy_world_find(&world, SLICE("1a"));
    assert_non_null(check);
    proxy_world_accept(&world, check, 0);
    assert_true(check->out.len > 0 && !check->closing); /* asked, and silent */
    proxy_world_wish(&world, 0, false);
    assert_true(check->closing);
    proxy_world_wait(&world, PROXY_TICK_MS);
    assert_true(proxy_replica_forgotten(world.proxy, 0));
    proxy_world_close(&world);
}

static void on_fetched(void *context, int err, bool refused, unsigned status, struct slice body)
{
    (void)context;
    (void)err;
    (void)refused;
    (void)status;
    (void)body;
}

/* A client's request for models uses a connection of neither a check nor a generation: the pool was
 * closed while the connection was in use. */
static void a_model_query_in_flight_is_waited_for(void **state)
{
    (void)state;
    struct fetch fetch;
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 2, .quiet = true});
    fetch_init(&fetch, &world.proxy->engines.pools[0], on_fetched, NULL);
    fetch_get(&fetch, SLICE("/v1/models"), SLICE(""), 0);
    assert_false(proxy_replica_forgotten(world.proxy, 0));
    fetch_cancel(&fetch);
    assert_true(proxy_replica_forgotten(world.proxy, 0));
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_health_check_in_flight_delays_nothing),
        cmocka_unit_test(a_model_query_in_flight_is_waited_for),
    };
    return cmocka_run_group_tests_name("forgotten", tests, NULL, NULL);
}
