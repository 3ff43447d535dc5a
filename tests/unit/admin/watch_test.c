/* Changes of a replica that count as news. */
#include "node/admin/admin_internal.h"
#include "node/route/router_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

static bool was_told(const char *text)
{
    struct buf out;
    buf_init(&out, 0);
    struct json_writer w = json_writer_of(&out);
    struct node_decisions_query q = {.count = ADMIN_EVENTS_MAX};
    (void)admin_events_write(world.node->admin->events, &q, &w);
    assert_int_equal(json_writer_finish(&w), 0);
    bool told = memmem(out.at, out.len, text, strlen(text)) != NULL;
    buf_free(&out);
    return told;
}

/* The names of two clusters are merged: between two looks a slot changes from a healthy replica to
 * another healthy replica. */
static void a_new_replica_in_a_reused_slot_is_reported(void **state)
{
    (void)state;
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    proxy_world_wait(&world, ADMIN_WATCH_MS);
    assert_true(was_told("Replica 10.0.0.1:8000 is up."));
    struct node_replica *k = node_router_replica_at(world.node->router, 0);
    char *last = strchr(k->name, ':') - 1;
    k->era++;
    *last = '9';
    proxy_world_wait(&world, ADMIN_WATCH_MS);
    assert_true(was_told("Replica 10.0.0.9:8000 is up."));
    *last = '1'; /* the registry still has this name */
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_replica_in_a_reused_slot_is_reported),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
