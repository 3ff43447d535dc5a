#include "tests/lib/test.h"

#include <stdio.h>

#include "node/admission/budget.h"
#include "node/proxy/proxy.h"
#include "tests/lib/proxy_world.h"

enum { LOADED = 30, FEW = 10 };

static struct proxy_world world;

static void open_world(void)
{
    static const char *const settings[] = {"policy", "round_robin", NULL};
    const struct proxy_world_config config = {.replicas = 2, .quiet = true, .settings = settings};
    proxy_world_open(&world, &config);
}

/* Clients ask both replicas in turn, each for something else; the replicas accept the requests. */
static void ask(unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        static unsigned asked;
        char body[64], head[160];
        int n = snprintf(body, sizeof body, "{\"model\":\"m\",\"prompt\":\"%u\"}", asked++);
        (void)snprintf(head, sizeof head,
                       "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: %d\r\n\r\n%s",
                       n, body);
        struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
        assert_non_null(client);
        proxy_world_send(&world, client, slice_of_cstr(head));
        for (unsigned k = 0; k < world.wire_count; k++) {
            if (world.wires[k].connecting)
                proxy_world_accept(&world, &world.wires[k], 0);
        }
    }
}

static void each_at(int replica, void (*what)(struct wire *))
{
    for (unsigned i = 0, n = world.wire_count; i < n; i++) {
        struct wire *w = &world.wires[i];
        if (w->used && w->replica == replica && !w->closing && !w->closed && !w->peer_broke)
            what(w);
    }
}

static void breaks(struct wire *w)
{
    proxy_world_end(&world, w, true);
}

static void answers(struct wire *w)
{
    proxy_world_send(&world, w, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"));
}

static void is_full(struct wire *w)
{
    proxy_world_send(&world, w,
                     SLICE("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\n{}"));
}

static uint64_t moved(void)
{
    return proxy_stats(world.proxy)->retries[RETRY_BROKEN];
}

/* A replica dies with more requests under way than the budget can save up: all of them move. */
static void requests_of_a_dead_loaded_replica_are_retried(void **state)
{
    (void)state;
    open_world();
    assert_true(LOADED > BUDGET_BURST + 2 * LOADED * 0.1);
    ask(2 * LOADED);
    proxy_world_wait(&world, 200);
    each_at(0, breaks);
    assert_int_equal(moved(), LOADED);
    assert_int_equal(proxy_stats(world.proxy)->retry_budget_exhausted, 0);
    proxy_world_close(&world);
}

/* The same replica soon breaks new requests: their retries depend on the budget. */
static void a_second_death_costs_retry_budget(void **state)
{
    (void)state;
    open_world();
    ask(2 * LOADED);
    proxy_world_wait(&world, 200);
    each_at(0, breaks);
    each_at(1, answers);
    proxy_world_wait(&world, 5000);
    ask(2);
    each_at(0, answers);
    each_at(1, answers);
    uint64_t before = moved();
    ask(2 * FEW);
    proxy_world_wait(&world, 200);
    each_at(0, breaks);
    assert_in_range(moved() - before, 1, FEW / 2);
    assert_int_equal(moved() - before + proxy_stats(world.proxy)->retry_budget_exhausted, FEW);
    proxy_world_close(&world);
}

/* Many requests come to a replica before the first sign of being full: the other replica serves
 * them. If the other is full too, the budget limits the retries. */
static void requests_refused_by_a_full_replica_are_retried(void **state)
{
    (void)state;
    open_world();
    ask(2 * LOADED);
    each_at(0, is_full);
    const struct proxy_stats *stats = proxy_stats(world.proxy);
    assert_int_equal(stats->retries[RETRY_BUSY], LOADED);
    each_at(1, is_full);
    assert_in_range(stats->retries[RETRY_BUSY], LOADED, LOADED + BUDGET_BURST);
    proxy_world_close(&world);
}

/* The number of saved retries made when all replicas fail. */
static unsigned saved(unsigned routers)
{
    unsigned all = 0;
    for (unsigned i = 0; i < routers; i++) {
        struct budget b;
        budget_init(&b, 0.1);
        budget_part(&b, routers);
        for (int n = 0; n < 1000; n++)
            budget_fill(&b);
        for (; budget_has(&b); all++)
            budget_take(&b);
    }
    return all;
}

/* More routers do not repeat more failed requests; but each router must detect the failure. */
static void routers_share_the_saved_retry_budget(void **state)
{
    (void)state;
    assert_int_equal(saved(1), BUDGET_BURST);
    assert_int_equal(saved(2), BUDGET_BURST);
    assert_in_range(saved(3), BUDGET_BURST, 21);
    assert_int_equal(saved(8), 8 * BUDGET_BURST_LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_a_dead_loaded_replica_are_retried),
        cmocka_unit_test(a_second_death_costs_retry_budget),
        cmocka_unit_test(requests_refused_by_a_full_replica_are_retried),
        cmocka_unit_test(routers_share_the_saved_retry_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
