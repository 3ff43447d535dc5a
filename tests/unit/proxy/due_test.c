/* The time of the next necessary tick, without replicas, because each tick looks at all replicas.
 * proxy_check() checks the same in all stories, and the world leaves out the work of
 * proxy_due_ms(). */
#include "node/proxy/proxy_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

static void begin(void)
{
    static const char *const settings[] = {"client-head-timeout",
                                           "300ms",
                                           "client-body-total-timeout",
                                           "2s",
                                           "client-idle-timeout",
                                           "10s",
                                           NULL};
    proxy_world_open(&world, &(struct proxy_world_config){.quiet = true, .settings = settings});
    proxy_world_wait(&world, PROXY_TICK_IDLE_MS);
}

static uint64_t due_in(void)
{
    return proxy_due_ms(world.proxy) - world.now_ms;
}

static void an_idle_router_is_called_twice_a_second(void **state)
{
    (void)state;
    begin();
    uint64_t before_ms = world.proxy->ticked_ms;
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(proxy_due_ms(world.proxy), before_ms + i * PROXY_TICK_IDLE_MS);
        proxy_world_wait(&world, PROXY_TICK_IDLE_MS);
    }
    proxy_world_close(&world);
}

static void a_new_deadline_brings_the_tick_forward(void **state)
{
    (void)state;
    begin();
    struct wire *idle = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    assert_int_equal(due_in(), PROXY_TICK_IDLE_MS); /* the limit of 10 s is later */
    proxy_world_wait(&world, PROXY_TICK_MS);
    proxy_world_send(&world, idle, SLICE("GET /hea"));
    assert_int_equal(due_in(), 300);
    proxy_world_wait(&world, 250);
    assert_false(idle->closing || idle->out.len > 0);
    assert_int_equal(due_in(), 50);
    proxy_world_wait(&world, 50);
    assert_true(slice_starts_with(buf_slice(&idle->out), SLICE("HTTP/1.1 408 ")));
    proxy_world_close(&world);
}

static void an_upload_has_a_deadline(void **state)
{
    (void)state;
    begin();
    struct wire *c = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    proxy_world_send(&world, c,
                     SLICE("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"
                           "{\"prompt\":"));
    assert_int_equal(world.proxy->stats.requests_open, 1);
    assert_int_equal(due_in(), PROXY_TICK_MS);
    assert_int_equal(world.proxy->due_ms, world.now_ms + 2000);
    proxy_world_wait(&world, 2000);
    assert_true(slice_starts_with(buf_slice(&c->out), SLICE("HTTP/1.1 408 ")));
    proxy_world_close(&world);
}

/* The tick needed for the limit is made, and finds the next limit. */
static void a_cancelled_deadline_costs_a_single_tick(void **state)
{
    (void)state;
    begin();
    struct wire *c = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    proxy_world_send(&world, c, SLICE("GET /hea"));
    assert_int_equal(due_in(), 300);
    proxy_world_send(&world, c, SLICE("lth HTTP/1.1\r\nHost: a\r\n\r\n"));
    assert_int_equal(due_in(), 300);
    proxy_world_wait(&world, 300);
    assert_int_equal(world.proxy->ticked_ms, world.now_ms);
    assert_int_equal(due_in(), PROXY_TICK_IDLE_MS);
    proxy_world_close(&world);
}

/* Lowered limits also end sooner for waiting requests. */
static void changed_settings_are_applied_soon(void **state)
{
    (void)state;
    begin();
    (void)proxy_world_connect(&world, PROXY_PORT_CLIENT);
    assert_int_equal(due_in(), PROXY_TICK_IDLE_MS);
    world.options.client_idle_timeout_ms = 100;
    proxy_renew(world.proxy, world.now_ms);
    assert_int_equal(due_in(), PROXY_TICK_MS);
    proxy_check(world.proxy);
    proxy_world_close(&world);
}

/* Half a second without a tick is no pause: no time limit is extended. */
static void an_idle_time_is_no_pause(void **state)
{
    (void)state;
    begin();
    proxy_world_wait(&world, 4 * PROXY_TICK_IDLE_MS);
    assert_int_equal(world.proxy->resumed_ms, 0);
    proxy_world_stand_still(&world, PROXY_PAUSE_MS);
    assert_int_equal(world.proxy->resumed_ms, world.now_ms);
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_router_is_called_twice_a_second),
        cmocka_unit_test(a_new_deadline_brings_the_tick_forward),
        cmocka_unit_test(an_upload_has_a_deadline),
        cmocka_unit_test(a_cancelled_deadline_costs_a_single_tick),
        cmocka_unit_test(changed_settings_are_applied_soon),
        cmocka_unit_test(an_idle_time_is_no_pause),
    };
    return cmocka_run_group_tests_name("due", tests, NULL, NULL);
}
