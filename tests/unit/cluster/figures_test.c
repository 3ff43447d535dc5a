/* A router's figures about the cluster: /metrics, and the digests for comparison by other
 * routers. */
#include "node/cluster/replication.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/prometheus.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

/* The value of `series` in /metrics. */
static double metric(struct world *c, unsigned node, const char *series)
{
    struct world_node *n = &c->nodes[node];
    struct buf text = {0};
    struct prometheus p = prometheus_of(&text, "grapevine_");
    node_replication_metrics(n->node->replication, world_mono_us(n), &p);
    assert_int_equal(prometheus_finish(&p), ERR_OK);
    assert_int_equal(buf_append(&text, "", 1), ERR_OK);
    char line[128];
    (void)snprintf(line, sizeof line, "\ngrapevine_%s ", series);
    const char *at = strstr(text.at, line);
    if (at == NULL)
        fail_msg("no %s in:\n%s", series, text.at);
    double value = at != NULL ? strtod(at + strlen(line), NULL) : 0;
    buf_free(&text);
    return value;
}

static void members_are_counted_by_their_state(void **state)
{
    (void)state;
    struct world c;
    start(&c, 4, 1);
    assert_true(metric(&c, 0, "cluster_members{state=\"alive\"}") == 4);
    assert_true(metric(&c, 0, "cluster_members{state=\"dead\"}") == 0);
    world_kill(&c, 3);
    world_run(&c, 5 * S);
    assert_true(metric(&c, 0, "cluster_members{state=\"alive\"}") == 3);
    assert_true(metric(&c, 0, "cluster_members{state=\"dead\"}") == 1);
    assert_true(metric(&c, 0, "cluster_members_not_understood") == 0);
    world_close(&c);
}

static bool drops_large(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    return from == 1 && to == 0 && len > 150;
}

/* Keep-alives announce deltas missing here. */
static void missing_deltas_are_counted(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    assert_true(metric(&c, 0, "cluster_lag_deltas") == 0);
    c.net.block = drops_large;
    say(&c, 1, 1);
    world_run(&c, 1 * S);
    assert_true(metric(&c, 0, "cluster_lag_deltas") >= 1);
    assert_true(metric(&c, 0, "cluster_lag_seconds") > 0.5);
    assert_true(metric(&c, 1, "cluster_lag_deltas") == 0);
    c.net.block = NULL;
    world_run(&c, 5 * S);
    assert_true(metric(&c, 0, "cluster_lag_deltas") == 0);
    world_close(&c);
}

static void index_sizes_are_reported(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    say(&c, 0, 1);
    world_run(&c, 1 * S);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(stat_of(&c, i, "state", "index_entries") > 0);
        assert_true(stat_of(&c, i, "state", "index_bytes_used") > 0);
        assert_true(stat_of(&c, i, "state", "index_bytes") >=
                    stat_of(&c, i, "state", "index_bytes_used"));
        assert_true(stat_of(&c, i, "state", "index_bytes_max") >=
                    stat_of(&c, i, "state", "index_bytes"));
    }
    world_close(&c);
}

/* Half the round trip, averaged over live members; a dead member's round trip does not count. */
static void travel_time_is_half_the_mean_round_trip(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    assert_true(node_replication_travel_ms(c.nodes[0].node->replication) < 1000);
    c.net.delay_min_us = c.net.delay_max_us = 150000;
    world_run(&c, 60 * S);
    for (unsigned i = 0; i < 3; i++) {
        double ms = node_replication_travel_ms(c.nodes[i].node->replication);
        assert_true(ms > 130 && ms < 220); /* 150 ms, and the time to answer */
    }
    world_kill(&c, 2);
    world_kill(&c, 1);
    world_run(&c, 30 * S);
    assert_true(node_replication_travel_ms(c.nodes[0].node->replication) == 0);
    world_close(&c);
}

/* The digests' `hears` field: milliseconds since the last packet of router `of`. -1: null. */
static double hears(struct world *c, unsigned node, unsigned of)
{
    struct world_node *n = &c->nodes[node];
    struct buf text = {0};
    assert_int_equal(node_replication_digests_json(n->node->replication, world_mono_us(n), &text),
                     ERR_OK);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    const json_t *value = json_object_get(json_object_get(root, "hears"), c->nodes[of].name);
    assert_non_null(value);
    double ms = json_is_null(value) ? -1 : json_number_value(value);
    json_decref(root);
    buf_free(&text);
    return ms;
}

/* A router from before ADR 0067 compares the former class, and takes a missing digest for a
 * different digest. */
static void older_routers_get_the_former_log_digest(void **state)
{
    (void)state;
    struct world c;
    start(&c, 1, 1);
    struct buf text = {0};
    assert_int_equal(node_replication_digests_json(c.nodes[0].node->replication, c.now_us, &text),
                     ERR_OK);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "log")), "0000000000000000");
    json_decref(root);
    buf_free(&text);
    world_close(&c);
}

static void time_since_last_heard_is_in_milliseconds(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    double before = hears(&c, 0, 1);
    assert_true(before >= 0 && before < 500);
    uint64_t since_us = c.now_us;
    world_cut(&c, 0, 1);
    world_run(&c, 1 * S);
    double ms = hears(&c, 0, 1);
    /* A packet may have been on the way. */
    assert_true(ms <= before + (double)(c.now_us - since_us) / 1000 + 1 && ms > 990);
    world_run(&c, 10 * S);
    assert_true(hears(&c, 0, 1) == -1); /* router 1 is dead to router 0 */
    world_close(&c);
}

/* Two clusters with the same key file: the called router shows the other cluster for as long as the
 * calls go on. */
static void calls_from_another_cluster_are_shown(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 1);
    for (unsigned i = 0; i < 3; i++)
        gossip_keyring_cluster(&c.nodes[i].keyring, i == 1 ? SLICE("green") : SLICE("blue"));
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    for (unsigned minute = 0; minute < 3; minute++) {
        world_run(&c, 60 * S);
        assert_true(metric(&c, 0, "cluster_other_asks") == 1);
        assert_true(metric(&c, 2, "cluster_other_asks") == 0);
    }
    world_kill(&c, 1);
    world_run(&c, 70 * S);
    assert_true(metric(&c, 0, "cluster_other_asks") == 0);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_counted_by_their_state),
        cmocka_unit_test(missing_deltas_are_counted),
        cmocka_unit_test(index_sizes_are_reported),
        cmocka_unit_test(travel_time_is_half_the_mean_round_trip),
        cmocka_unit_test(older_routers_get_the_former_log_digest),
        cmocka_unit_test(time_since_last_heard_is_in_milliseconds),
        cmocka_unit_test(calls_from_another_cluster_are_shown),
    };
    return cmocka_run_group_tests_name("figures", tests, NULL, NULL);
}
