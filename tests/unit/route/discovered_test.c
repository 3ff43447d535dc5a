/* Replicas named and dropped by sources, with labels, as seen by the router. */
#include "node/route/discovered.h"

#include "base/check.h"
#include "tests/lib/router_help.h"

static uint64_t on_clock(void *context)
{
    (void)context;
    return 0;
}

static void on_line(void *context, struct slice line)
{
    (void)context;
    (void)line;
}

static struct log quiet;
static struct discover *d;

static struct node_router *router_of(const char *policy)
{
    struct node_router *r = make(policy, 0);
    log_init(&quiet, on_line, on_clock, NULL);
    struct discover_host host = node_router_discover_host(r);
    assert_int_equal(discover_create(&d, &host, &quiet), ERR_OK);
    assert_int_equal(discover_source(d, "file", SLICE("f")), 0);
    node_router_sources(r, d);
    return r;
}

static void end(struct node_router *r)
{
    discover_destroy(d);
    alone_destroy(r);
}

/* Replicas "r0:1"... with labels each; an empty text leaves a replica out. All are up. */
static void list(struct node_router *r, const char *const *labels, unsigned count, uint64_t now_ms)
{
    static const char *const names[] = {"r0:1", "r1:1", "r2:1", "r3:1"};
    struct discover_entry entries[4];
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        if (labels[i] == NULL)
            continue;
        entries[n] = (struct discover_entry){.name = slice_of_cstr(names[i])};
        assert_null(node_labels_parse(slice_of_cstr(labels[i]), &entries[n].labels));
        n++;
    }
    assert_int_equal(discover_list(d, 0, entries, n, now_ms), ERR_OK);
    for (unsigned k = 0; k < node_router_replica_count(r); k++)
        node_router_probed(r, k, (struct node_check){.ok = true}, now_ms);
    node_router_check(r);
    discover_check(d);
}

static void a_dropped_replica_drains_and_is_forgotten(void **state)
{
    (void)state;
    struct node_router *r = router_of("random");
    list(r, (const char *[]){"", "", ""}, 3, START_MS);
    assert_int_equal(node_router_replica_count(r), 3);
    struct node_decision held[30];
    for (unsigned i = 0; i < ARRAY_LEN(held); i++)
        held[i] = choose(r, NULL, START_MS);
    list(r, (const char *[]){"", NULL, ""}, 3, START_MS);
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_DRAINING);
    for (unsigned i = 0; i < 100; i++) {
        struct node_decision next = choose(r, NULL, START_MS);
        assert_int_not_equal(next.replica, 1);
        done(r, next, START_MS);
    }
    uint64_t later = START_MS + DISCOVER_KEEP_MS + 1000;
    discover_tick(d, later);
    assert_true(node_router_replica_present(r, 1)); /* busy */
    for (unsigned i = 0; i < ARRAY_LEN(held); i++)
        done(r, held[i], later);
    discover_tick(d, later);
    assert_false(node_router_replica_present(r, 1));
    list(r, (const char *[]){"", "", ""}, 3, later);
    assert_true(node_router_replica_present(r, 1));
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_UP);
    end(r);
}

static void operators_replicas_survive_their_source(void **state)
{
    (void)state;
    struct node_router *r = router_of("random");
    list(r, (const char *[]){"", "", ""}, 3, START_MS);
    struct slice added = SLICE("r1:1"), late = SLICE("r2:1");
    assert_int_equal(node_router_replica_wish(r, added, NODE_REPLICA_ADD, NODE_ENGINE_AUTO), 1);
    list(r, (const char *[]){"", NULL, NULL}, 3, START_MS);
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_UP);
    assert_int_equal(node_router_replica_health(r, 2), NODE_HEALTH_DRAINING);
    /* A replica added while leaving is used again. */
    assert_int_equal(node_router_replica_wish(r, late, NODE_REPLICA_ADD, NODE_ENGINE_AUTO), 2);
    assert_int_equal(node_router_replica_health(r, 2), NODE_HEALTH_UP);
    /* Operators may still drain such a replica, and take the drain back. */
    node_router_replica_drain(r, 1, true);
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_DRAINING);
    node_router_replica_drain(r, 1, false);
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_UP);
    discover_tick(d, START_MS + DISCOVER_KEEP_MS + 1000);
    assert_true(node_router_replica_present(r, 1) && node_router_replica_present(r, 2));
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_UP);
    end(r);
}

static unsigned share_of(struct node_router *r, unsigned replica, unsigned rounds)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct node_decision next = choose(r, NULL, START_MS);
        seen += next.replica == replica;
        done(r, next, START_MS);
    }
    return seen;
}

static void weights_share_the_work(void **state)
{
    (void)state;
    for (const char *const *policy = node_policy_names; *policy != NULL; policy++) {
        struct node_router *r = router_of(*policy);
        list(r, (const char *[]){"weight=3", ""}, 2, START_MS);
        unsigned seen = share_of(r, 0, 2000);
        bool even = strcmp(*policy, "power_of_two") == 0; /* of two replicas it sees both */
        if (!even && (seen < 1400 || seen > 1600))
            fail_msg("%s: %u of 2000 for a weight of 3 of 4", *policy, seen);
        list(r, (const char *[]){"", ""}, 2, START_MS); /* taken back */
        seen = share_of(r, 0, 2000);
        assert_true(seen > 900 && seen < 1100);
        end(r);
    }
}

/* Under load, by the rule in seconds: the queue of the heavier replica counts less. */
static void a_queue_counts_by_weight(void **state)
{
    (void)state;
    struct node_router *r = router_of("cache_aware");
    list(r, (const char *[]){"weight=4", ""}, 2, START_MS);
    unsigned seen[2] = {0};
    for (unsigned i = 0; i < 50; i++) /* no request ends: the queues grow */
        seen[choose(r, prompt(1000 + i, 2000), START_MS).replica]++;
    if (seen[0] < 37 || seen[0] > 43)
        fail_msg("%u and %u", seen[0], seen[1]);
    json_t *root = replicas_json(r, START_MS);
    assert_true(json_number_value(json_object_get(json_array_get(root, 0), "weight")) == 4);
    assert_true(json_number_value(json_object_get(json_array_get(root, 1), "weight")) == 1);
    const json_t *sources = json_object_get(json_array_get(root, 0), "sources");
    assert_string_equal(json_string_value(json_array_get(sources, 0)), "file f");
    json_decref(root);
    end(r);
}

static int where(struct node_router *r, const char *model)
{
    struct node_request request = request_of(NULL);
    request.model = slice_of_cstr(model);
    struct node_decision next;
    int err = node_router_place(r, &request, NULL, START_MS, &next);
    if (err != ERR_OK)
        return err;
    done(r, next, START_MS);
    return (int)next.replica;
}

static void a_label_names_an_unlisted_model(void **state)
{
    (void)state;
    struct node_router *r = router_of("random");
    list(r, (const char *[]){"model=alpha", "model=beta"}, 2, START_MS);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(where(r, "alpha"), 0);
        assert_int_equal(where(r, "beta"), 1);
    }
    assert_int_equal(where(r, "gamma"), ERR_NOT_FOUND);
    /* The list confirms it. */
    struct slice listed = SLICE("gamma");
    assert_int_equal(node_router_models(r, 0, &listed, 1), ERR_OK);
    assert_int_equal(where(r, "gamma"), 0);
    assert_int_equal(where(r, "alpha"), 0);
    /* The engine refuses to list models from now on: only the label is known. */
    node_router_probe_answered(r, 0, NODE_PROBE_MODELS, 401);
    assert_int_equal(where(r, "alpha"), 0);
    /* The label changes, then goes: the replica may serve anything. */
    list(r, (const char *[]){"model=delta", "model=beta"}, 2, START_MS);
    assert_int_equal(where(r, "delta"), 0);
    list(r, (const char *[]){"", "model=beta"}, 2, START_MS);
    assert_int_equal(where(r, "anything"), 0);
    end(r);
}

static void an_engine_label_outranks_detection(void **state)
{
    (void)state;
    struct node_router *r = router_of("random");
    list(r, (const char *[]){"engine=sglang", ""}, 2, START_MS);
    assert_int_equal(node_router_replica_engine(r, 0), NODE_ENGINE_SGLANG);
    assert_int_equal(node_router_replica_engine(r, 1), NODE_ENGINE_AUTO);
    list(r, (const char *[]){"engine=vllm", ""}, 2, START_MS);
    assert_int_equal(node_router_replica_engine(r, 0), NODE_ENGINE_VLLM);
    /* The metrics are another engine's: settings have priority. */
    assert_false(node_router_engine_found(r, 0, NODE_ENGINE_SGLANG));
    assert_int_equal(node_router_replica_engine(r, 0), NODE_ENGINE_VLLM);
    assert_true(node_router_engine_found(r, 1, NODE_ENGINE_SGLANG));
    assert_int_equal(node_router_replica_engine(r, 1), NODE_ENGINE_SGLANG);
    assert_false(node_router_engine_found(r, 1, NODE_ENGINE_SGLANG)); /* no news */
    list(r, (const char *[]){"", ""}, 2, START_MS); /* the last label stays known */
    assert_int_equal(node_router_replica_engine(r, 0), NODE_ENGINE_VLLM);
    assert_true(node_router_engine_found(r, 0, NODE_ENGINE_SGLANG)); /* and is a guess now */
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dropped_replica_drains_and_is_forgotten),
        cmocka_unit_test(operators_replicas_survive_their_source),
        cmocka_unit_test(weights_share_the_work),
        cmocka_unit_test(a_queue_counts_by_weight),
        cmocka_unit_test(a_label_names_an_unlisted_model),
        cmocka_unit_test(an_engine_label_outranks_detection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
