/* Replicas with names waiting for room: at the limit of names, or because older names came. */
#include "base/check.h"
#include "crdt/state.h"
#include "node/route/discovered.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"
#include "tests/lib/state_help.h"

enum { TTL_S = 100, HOUR_MS = 3600000, DELTA_BYTES = 1200 };

static struct log quiet;
static struct discover *d;
static uint64_t now_ms;

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

/* Ticks once a second, as the proxy does. */
static void pass(struct node_router *r, uint64_t ms)
{
    for (uint64_t until = now_ms + ms; now_ms < until; now_ms += 1000) {
        node_router_tick(r, now_ms);
        discover_tick(d, now_ms);
    }
    node_router_check(r);
    discover_check(d);
}

/* A router with a single source and room for `names_max` names. */
static struct node_router *make_small(unsigned names_max)
{
    struct node_config config = config_of("random");
    config.state.names_max = names_max;
    config.state.generation_ms = 1000;
    config.state.ttl_ms = TTL_S * 1000;
    config.state.names_ttl_s = TTL_S;
    struct node_router *r = alone_router(&config);
    log_init(&quiet, on_line, on_clock, NULL);
    struct discover_host host = node_router_discover_host(r);
    assert_int_equal(discover_create(&d, &host, &quiet), ERR_OK);
    assert_int_equal(discover_source(d, "file", SLICE("f")), 0);
    node_router_sources(r, d);
    now_ms = START_MS;
    pass(r, 1000);
    return r;
}

static void end(struct node_router *r)
{
    discover_destroy(d);
    alone_destroy(r);
}

/* "a:1 b:1! c:1#weight=3": names, a draining name with '!', labels behind '#'. */
static void list(const char *text)
{
    struct discover_entry entries[4];
    unsigned count = 0;
    struct slice rest = slice_of_cstr(text);
    while (rest.len > 0) {
        struct slice labels = slice_cut(&rest, ' ');
        struct slice name = slice_cut(&labels, '#');
        struct discover_entry *e = &entries[count++];
        *e = (struct discover_entry){.name = name};
        assert_null(node_labels_parse(labels, &e->labels));
        if (slice_ends_with(name, SLICE("!"))) {
            e->state = DISCOVER_DRAINING;
            e->name.len--;
        }
    }
    assert_int_equal(discover_list(d, 0, entries, count, now_ms), ERR_OK);
}

/* The router gets `count` names, added by another router some seconds ago, and no longer added. */
static void older_come(struct node_router *r, unsigned count)
{
    struct crdt_state_config config = {.index = {.bytes_max = 4 << 20,
                                                 .replicas_max = 64,
                                                 .ttl_generations = TTL_S,
                                                 .generation = crdt_index_now(r->index) - TTL_S / 2,
                                                 .replicated = true},
                                       .self = 7,
                                       .names_ttl_s = TTL_S,
                                       .generation_ms = 1000};
    struct crdt_state *other = NULL;
    assert_int_equal(crdt_state_create(&other, &config), ERR_OK);
    for (unsigned i = 0; i < count; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "older-%u:1", i);
        DISCARD(state_replica(other, slice_of(name, (size_t)len))); /* there, too, names may wait */
    }
    uint8_t delta[DELTA_BYTES];
    size_t len;
    for (uint64_t seq = 1; (len = crdt_state_produce(other, seq, delta, sizeof delta)) > 0; seq++) {
        struct crdt_origin origin = {.router = config.self, .epoch = 1, .seq = seq};
        assert_int_equal(crdt_state_apply(r->crdt, &origin, slice_of((const char *)delta, len)),
                         ERR_OK);
    }
    crdt_state_destroy(other);
    node_router_presence_update(r);
    pass(r, 2000);
}

static struct crdt_registry_stats names_of(const struct node_router *r)
{
    struct crdt_registry_stats stats = *crdt_registry_stats(crdt_state_registry(r->crdt));
    return stats;
}

/* The replica called `name`; NULL: without a slot, or not in use. */
static const struct node_replica *used(const struct node_router *r, const char *name)
{
    int slot = node_router_replica_find(r, slice_of_cstr(name));
    return slot >= 0 && node_router_replica_present(r, (unsigned)slot) ? &r->replicas[slot] : NULL;
}

/* replicas-max is full; an autoscaler adds another name and takes it back. The name stayed for
 * ever, and came into use when there was room, long after the end. */
static void a_waiting_name_dropped_by_its_source_is_forgotten(void **state)
{
    (void)state;
    struct node_router *r = make_small(2);
    list("a:1 b:1");
    pass(r, 2000);
    list("a:1 b:1 c:1");
    pass(r, 2000);
    assert_int_equal(names_of(r).waiting, 1);
    list("a:1 b:1");
    pass(r, 2 * TTL_S * 1000);
    assert_int_equal(names_of(r).waiting, 0);
    list("a:1");
    pass(r, HOUR_MS);
    assert_null(used(r, "c:1"));
    assert_int_equal(names_of(r).names, 1);
    end(r);
}

/* The same if the source drains the name before any use. */
static void a_waiting_name_that_drains_is_never_used(void **state)
{
    (void)state;
    struct node_router *r = make_small(1);
    list("a:1");
    pass(r, 2000);
    list("a:1 b:1");
    pass(r, 2000);
    list("b:1!");
    pass(r, HOUR_MS);
    assert_int_equal(names_of(r).names, 0);
    end(r);
}

/* The name was in use, has to wait, and vanishes then. */
static void a_displaced_name_dropped_by_its_source_is_forgotten(void **state)
{
    (void)state;
    struct node_router *r = make_small(1);
    list("b:1 ");
    pass(r, 2000);
    assert_non_null(used(r, "b:1"));
    older_come(r, 1);
    assert_non_null(used(r, "b:1")); /* no router names the older replica yet */
    list("b:1 older-0:1");
    pass(r, 2000);
    assert_null(used(r, "b:1"));
    assert_int_equal(names_of(r).waiting, 1);
    list("a:1");
    pass(r, HOUR_MS);
    assert_null(used(r, "b:1"));
    assert_non_null(used(r, "a:1"));
    assert_int_equal(names_of(r).names, 1);
    end(r);
}

/* The replica had weight 3 and got a slot again with weight 1: the sources had sent nothing new. */
static void a_readmitted_name_keeps_its_labels(void **state)
{
    (void)state;
    struct node_router *r = make_small(1);
    list("b:1#weight=3#model=alpha#engine=sglang");
    pass(r, 2000);
    older_come(r, 1);
    list("b:1#weight=3#model=alpha#engine=sglang older-0:1");
    pass(r, 2000);
    assert_null(used(r, "b:1"));
    list("b:1#weight=3#model=alpha#engine=sglang");
    pass(r, 4 * TTL_S * 1000);
    const struct node_replica *k = used(r, "b:1");
    assert_non_null(k);
    assert_true(k->weight == 3 && k->engine == NODE_ENGINE_SGLANG);
    assert_slice_equal(k->said.model, "alpha");
    assert_true(node_router_model_known(r, SLICE("alpha")));
    end(r);
}

/* While the name waits, the source drains the name, or changes the weight. */
static void changes_to_a_waiting_name_count(void **state)
{
    (void)state;
    struct node_router *r = make_small(1);
    list("b:1#weight=3");
    pass(r, 2000);
    older_come(r, 1);
    list("b:1#weight=3 older-0:1");
    pass(r, 2000);
    assert_null(used(r, "b:1"));
    list("b:1!");
    pass(r, 4 * TTL_S * 1000);
    assert_non_null(used(r, "b:1"));
    assert_true(used(r, "b:1")->draining);
    list("b:1#weight=2");
    assert_false(used(r, "b:1")->draining);
    older_come(r, 1);
    list("b:1#weight=2 older-0:1");
    pass(r, 2000);
    list("b:1#weight=4");
    pass(r, 4 * TTL_S * 1000);
    assert_true(!used(r, "b:1")->draining && used(r, "b:1")->weight == 4);
    end(r);
}

/* A lying router announced so many older names that none of this router's could even wait.
 * Configured names keep their places, and the others go when no router names them. */
static void announced_names_displace_no_configured_name(void **state)
{
    (void)state;
    struct node_router *r = make_small(4);
    list("b:1#weight=3");
    pass(r, 2000);
    older_come(r, CRDT_ROWS_MAX);
    assert_non_null(used(r, "b:1"));
    assert_int_equal(names_of(r).waiting, CRDT_ROWS_MAX - 4);
    pass(r, 2 * TTL_S * 1000);
    assert_non_null(used(r, "b:1"));
    assert_true(used(r, "b:1")->weight == 3);
    assert_int_equal(names_of(r).names + names_of(r).waiting, 1);
    end(r);
}

/* An operator drains the replica, the name has to wait, and the operator adds it anew. */
static void a_waiting_name_added_again_is_not_drained(void **state)
{
    (void)state;
    struct node_router *r = make_small(1);
    struct slice name = SLICE("b:1");
    int slot = node_router_replica_wish(r, name, NODE_REPLICA_ADD, NODE_ENGINE_VLLM);
    assert_true(slot >= 0);
    node_router_replica_drain(r, (unsigned)slot, true);
    assert_int_equal(node_router_replica_wish(r, name, NODE_REPLICA_REMOVE, 0), slot);
    older_come(r, 1);
    list("older-0:1");
    pass(r, 2000);
    assert_int_equal(node_router_replica_wish(r, name, NODE_REPLICA_ADD, 0), ERR_AGAIN);
    list("other:1!");
    pass(r, 4 * TTL_S * 1000);
    assert_non_null(used(r, "b:1"));
    assert_false(used(r, "b:1")->draining);
    end(r);
}

/* Time passes in the state with each datagram, but in the router only at the next tick. An
 * operator's request in between ended the process. */
static void a_query_during_a_names_expiry_is_answered(void **state)
{
    (void)state;
    struct node_router *r = make_small(4);
    struct buf out = {0};
    int slot = node_router_replica_wish(r, SLICE("told:1"), NODE_REPLICA_ADD, NODE_ENGINE_VLLM);
    assert_true(slot >= 0);
    pass(r, 1000);
    assert_true(node_router_replica_present(r, (unsigned)slot));
    assert_int_equal(node_router_replicas_json(r, now_ms, &out), 0);
    assert_non_null(memmem(out.at, out.len, "told:1", 6));
    buf_clear(&out);

    crdt_state_clock(r->crdt, node_state_cluster_ms(r->state, now_ms) + (TTL_S + 2) * 1000);
    assert_false(crdt_registry_has(crdt_state_registry(r->crdt), (unsigned)slot));
    assert_true(node_router_replica_present(r, (unsigned)slot));
    assert_int_equal(node_router_replicas_json(r, now_ms, &out), 0);
    assert_null(memmem(out.at, out.len, "told:1", 6));
    assert_int_equal(
        node_router_replica_wish(r, SLICE("told:1"), NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO),
        ERR_NOT_FOUND);
    buf_free(&out);
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiting_name_dropped_by_its_source_is_forgotten),
        cmocka_unit_test(a_query_during_a_names_expiry_is_answered),
        cmocka_unit_test(a_waiting_name_that_drains_is_never_used),
        cmocka_unit_test(a_displaced_name_dropped_by_its_source_is_forgotten),
        cmocka_unit_test(a_readmitted_name_keeps_its_labels),
        cmocka_unit_test(changes_to_a_waiting_name_count),
        cmocka_unit_test(announced_names_displace_no_configured_name),
        cmocka_unit_test(a_waiting_name_added_again_is_not_drained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
