/* The attention list: words, order, and this router's view of replicas and clients. */
#include "base/check.h"
#include "node/admin/admin_internal.h"
#include "node/admin/figures.h"
#include "node/admin/live.h"
#include "node/replica/model.h"
#include "node/route/router_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

/* --- the list -------------------------------------------------------------------------------- */

static void add(struct admin_attention_list *list, enum admin_attention_kind kind,
                const char *about)
{
    admin_attention_add(
        list, kind,
        &(struct admin_attention_facts){
            .about = slice_of_cstr(about), .text = "down: it rests", .n = 2, .m = 3});
}

static void the_worst_problem_comes_first(void **state)
{
    (void)state;
    struct admin_attention_list list = {0};
    assert_int_equal(admin_attention_worst(&list), ATTENTION_WELL);
    add(&list, ATTENTION_ROUTER_OLD, "r9");
    add(&list, ATTENTION_REPLICA_OUT, "e1");
    add(&list, ATTENTION_MODEL_OUT, "llama");
    add(&list, ATTENTION_REPLICA_OUT, "e2");
    assert_int_equal(admin_attention_worst(&list), ATTENTION_RED);
    static const char *const about[] = {"llama", "e1", "e2", "r9"};
    for (unsigned i = 0; i < ARRAY_LEN(about); i++)
        assert_string_equal(list.items[i].about, about[i]);
    assert_string_equal(list.items[1].what, "replica e1 is down: it rests");
    assert_string_equal(list.items[1].hurts, "nobody yet: 2 of 3 replicas take requests");
    assert_string_equal(list.items[1].command, "gvctl replicas");
}

static void a_full_list_keeps_the_worst_problems(void **state)
{
    (void)state;
    struct admin_attention_list list = {0};
    for (unsigned i = 0; i < ATTENTION_ITEMS_MAX + 3; i++)
        add(&list, ATTENTION_REPLICA_OUT, "e1");
    add(&list, ATTENTION_CLIENTS_FAIL, "r1");
    assert_int_equal(list.count, ATTENTION_ITEMS_MAX);
    assert_int_equal(list.more, 4);
    assert_int_equal(list.items[0].kind, ATTENTION_CLIENTS_FAIL);
}

static void every_kind_has_a_text(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < ATTENTION_KINDS; kind++) {
        struct admin_attention_list list = {0};
        add(&list, (enum admin_attention_kind)kind, "x");
        const struct admin_attention_item *item = &list.items[0];
        assert_true(item->what[0] != '\0' && item->hurts[0] != '\0' && item->command[0] != '\0');
        assert_null(strpbrk(item->what, "{}[]"));
        assert_null(strpbrk(item->hurts, "{}[]"));
        assert_true(admin_attention_kind_text(item->kind)[0] != '\0');
    }
}

static void a_problem_keeps_its_start_time(void **state)
{
    (void)state;
    struct admin_attention_list before = {0}, now = {0};
    add(&before, ATTENTION_REPLICA_OUT, "e1");
    admin_attention_since(&before, &now, 1000);
    add(&now, ATTENTION_REPLICA_LAST, "e1"); /* e1 is still out, and is now the last replica */
    add(&now, ATTENTION_REPLICA_OUT, "e2");
    add(&now, ATTENTION_REPLICA_AVOIDED, "e1");
    admin_attention_since(&now, &before, 5000);
    assert_int_equal(now.items[0].since_ms, 1000);
    assert_int_equal(now.items[1].since_ms, 5000);
    assert_int_equal(now.items[2].since_ms, 5000);
}

static enum admin_attention_severity clients(struct admin_attention_minute minute)
{
    struct admin_attention_list list = {0};
    admin_attention_clients(&list, SLICE("r1"), &minute);
    return admin_attention_worst(&list);
}

static void failing_or_refused_clients_raise_an_alarm(void **state)
{
    (void)state;
    assert_int_equal(clients((struct admin_attention_minute){.requests = 100}), ATTENTION_WELL);
    assert_int_equal(clients((struct admin_attention_minute){.requests = 1000, .cut = 9}),
                     ATTENTION_WELL);
    assert_int_equal(clients((struct admin_attention_minute){.requests = 1000, .cut = 10}),
                     ATTENTION_RED);
    assert_int_equal(clients((struct admin_attention_minute){.requests = 10, .status_5xx = 1}),
                     ATTENTION_RED);
    assert_int_equal(clients((struct admin_attention_minute){.requests = 10, .queue_full = 5}),
                     ATTENTION_RED);
    assert_int_equal(clients((struct admin_attention_minute){.requests = 100, .unauthorized = 9}),
                     ATTENTION_WELL);
    assert_int_equal(clients((struct admin_attention_minute){.requests = 100, .unauthorized = 10}),
                     ATTENTION_AMBER);
    struct admin_attention_list list = {0};
    admin_attention_clients(&list, slice_of("", 0),
                            &(struct admin_attention_minute){.requests = 4, .cut = 2});
    assert_string_equal(list.items[0].what,
                        "2 of 4 requests failed in the last minute: 0 with a 5xx, 2 cut");
}

/* --- a router -------------------------------------------------------------------------------- */

static const struct admin_attention_list *look(void)
{
    proxy_world_wait(&world, ADMIN_WATCH_MS);
    return &world.node->admin->attention;
}

static bool has(enum admin_attention_kind kind, const char *about)
{
    const struct admin_attention_list *list = look();
    for (unsigned i = 0; i < list->count; i++) {
        if (list->items[i].kind == kind && strcmp(list->items[i].about, about) == 0)
            return true;
    }
    return false;
}

static struct node_replica *replica(unsigned i)
{
    return node_router_replica_at(world.node->router, i);
}

static void out(unsigned i, bool is_out)
{
    replica(i)->health = is_out ? NODE_HEALTH_DOWN : NODE_HEALTH_UP;
    replica(i)->trouble.check.refused = is_out;
}

static void begin(void)
{
    static const struct slice models[] = {SLICE("llama"), SLICE("qwen")};
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 3, .quiet = true, .seed = 1});
    struct node_models *m = node_router_model_table(world.node->router);
    for (unsigned i = 0; i < 3; i++) /* only the last replica has qwen */
        assert_int_equal(node_models_set(m, i, models, i == 2 ? 2 : 1), 0);
    assert_int_equal(look()->count, 0);
}

static void a_down_replica_is_amber_while_others_serve(void **state)
{
    (void)state;
    begin();
    out(0, true);
    assert_true(has(ATTENTION_REPLICA_OUT, "10.0.0.1:8000"));
    assert_int_equal(admin_attention_worst(look()), ATTENTION_AMBER);
    assert_string_equal(look()->items[0].what,
                        "replica 10.0.0.1:8000 is down: its port refuses connections");
    assert_string_equal(look()->items[0].hurts, "nobody yet: 2 of 3 replicas take requests");
    out(0, false);
    assert_int_equal(look()->count, 0);
    proxy_world_close(&world);
}

static void a_model_without_a_usable_replica_is_red(void **state)
{
    (void)state;
    begin();
    out(2, true);
    assert_true(has(ATTENTION_MODEL_OUT, "qwen"));
    assert_false(has(ATTENTION_MODEL_OUT, "llama"));
    assert_int_equal(admin_attention_worst(look()), ATTENTION_RED);
    assert_string_equal(look()->items[1].hurts,
                        "clients of models that no other replica can serve"); /* not "nobody yet" */
    out(0, true);
    assert_true(has(ATTENTION_REPLICA_OUT, "10.0.0.1:8000"));
    out(1, true);
    assert_true(has(ATTENTION_NO_REPLICA, ""));
    assert_true(has(ATTENTION_REPLICA_LAST, "10.0.0.1:8000"));
    assert_false(has(ATTENTION_REPLICA_OUT, "10.0.0.1:8000"));
    assert_false(has(ATTENTION_MODEL_OUT, "qwen"));
    proxy_world_close(&world);
}

/* A queue that empties within a second is no problem. */
static void queued_requests_are_shown(void **state)
{
    (void)state;
    begin();
    proxy_world_wait(&world, 5000);
    struct admin_figures *f = (struct admin_figures *)admin_live_figures(world.node->admin->live);
    struct admin_figures_second *last =
        &f->seconds[(f->at + FIGURES_SECONDS - 1) % FIGURES_SECONDS];
    struct admin_figures_second *before =
        &f->seconds[(f->at + FIGURES_SECONDS - 2) % FIGURES_SECONDS];
    last->queued = 7;
    assert_int_equal(admin_figures_waited(f, 2), 0);
    before->queued = 4;
    assert_int_equal(admin_figures_waited(f, 2), 4);
    assert_true(has(ATTENTION_CLIENTS_WAIT, ""));
    proxy_world_wait(&world, 3000);
    assert_false(has(ATTENTION_CLIENTS_WAIT, ""));
    proxy_world_close(&world);
}

static void an_all_full_fleet_is_red(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 3; i++) {
        assert_false(has(ATTENTION_ALL_FULL, ""));
        replica(i)->trouble.busy_until_ms = UINT64_MAX;
    }
    assert_true(has(ATTENTION_ALL_FULL, ""));
    assert_int_equal(admin_attention_worst(look()), ATTENTION_RED);
    proxy_world_close(&world);
}

static void only_a_lasting_queue_counts(void **state)
{
    (void)state;
    static struct admin_figures f;
    for (unsigned i = 0; i < 4; i++) {
        f.seconds[i].queued = i == 1 ? 0 : 5 + i;
        f.at = f.count = i + 1;
        assert_int_equal(admin_figures_waited(&f, 2), i == 3 ? 7 : 0);
    }
}

static void a_rolling_restart_shows_nothing_red(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 2; i++) {
        node_replica_drain(replica(i), false, true, false);
        assert_int_equal(look()->count, 0);
        out(i, true);
        assert_int_equal(look()->count, 0);
        out(i, false);
        node_replica_drain(replica(i), false, false, false);
        assert_int_equal(look()->count, 0);
    }
    for (unsigned i = 0; i < 2; i++) { /* down without a drain */
        out(i, true);
        assert_int_equal(admin_attention_worst(look()), ATTENTION_AMBER);
        out(i, false);
    }
    assert_int_equal(look()->count, 0);
    proxy_world_close(&world);
}

/* Fails and comes back as often as a flapping replica. `at_once`: it fails again before its slow
 * start is over. */
static void flap(bool at_once)
{
    for (unsigned i = 0; i < ADMIN_FLAPS_OUTS; i++) {
        assert_false(has(ATTENTION_REPLICA_FLAPS, "10.0.0.2:8000"));
        out(1, true);
        assert_true(look()->count > 0);
        out(1, false);
        replica(1)->trouble.back_ms = at_once ? world.now_ms : 0;
        enum node_standing_why why =
            node_router_replica_standing(world.node->router, 1, world.now_ms).why;
        assert_int_equal(why, at_once ? NODE_STANDING_SLOW_START : NODE_STANDING_WELL);
        assert_non_null(look());
    }
}

static void a_replica_often_down_is_shown_as_flapping(void **state)
{
    (void)state;
    begin();
    flap(false);
    assert_true(has(ATTENTION_REPLICA_FLAPS, "10.0.0.2:8000"));
    assert_string_equal(look()->items[0].what,
                        "replica 10.0.0.2:8000 flaps: out 3 times in ten minutes");
    proxy_world_wait(&world, ADMIN_FLAPS_MS);
    assert_false(has(ATTENTION_REPLICA_FLAPS, "10.0.0.2:8000"));
    proxy_world_close(&world);
}

static void a_replica_that_stays_down_is_out_once(void **state)
{
    (void)state;
    begin();
    out(1, false);
    replica(1)->trouble.back_ms = world.now_ms;
    assert_non_null(look());
    out(1, true);
    for (unsigned i = 0; i < ADMIN_FLAPS_OUTS; i++)
        assert_false(has(ATTENTION_REPLICA_FLAPS, "10.0.0.2:8000"));
    proxy_world_close(&world);
}

static void a_replica_dying_in_slow_start_flaps(void **state)
{
    (void)state;
    begin();
    flap(true);
    assert_true(has(ATTENTION_REPLICA_FLAPS, "10.0.0.2:8000"));
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_problem_comes_first),
        cmocka_unit_test(a_full_list_keeps_the_worst_problems),
        cmocka_unit_test(every_kind_has_a_text),
        cmocka_unit_test(a_problem_keeps_its_start_time),
        cmocka_unit_test(failing_or_refused_clients_raise_an_alarm),
        cmocka_unit_test(a_down_replica_is_amber_while_others_serve),
        cmocka_unit_test(a_model_without_a_usable_replica_is_red),
        cmocka_unit_test(queued_requests_are_shown),
        cmocka_unit_test(an_all_full_fleet_is_red),
        cmocka_unit_test(only_a_lasting_queue_counts),
        cmocka_unit_test(a_rolling_restart_shows_nothing_red),
        cmocka_unit_test(a_replica_often_down_is_shown_as_flapping),
        cmocka_unit_test(a_replica_dying_in_slow_start_flaps),
        cmocka_unit_test(a_replica_that_stays_down_is_out_once),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
