/* Changed settings for a running router. */
#include "node/settings/change.h"

#include <stdio.h>

#include "tests/lib/test.h"

static struct node_options in_force, fresh;
static struct node_options_error error;
static char told[1024];

static int setup(void **state)
{
    (void)state;
    told[0] = '\0';
    return node_options_init(&in_force) != 0 || node_options_init(&fresh) != 0;
}

static int teardown(void **state)
{
    (void)state;
    node_options_free(&in_force);
    node_options_free(&fresh);
    return 0;
}

static void set(struct node_options *o, const char *name, const char *value,
                enum node_option_source source)
{
    struct node_option_origin origin = {.source = source, .file = o->config, .line = 7};
    if (source != NODE_SOURCE_FILE)
        origin.file = NULL;
    assert_int_equal(node_options_set(o, slice_of_cstr(name), slice_of_cstr(value), origin, &error),
                     0);
}

static void differs(void *context, const struct node_option *row, struct slice before,
                    struct slice now)
{
    (void)context;
    size_t len = strlen(told);
    (void)snprintf(told + len, sizeof told - len, "%s %s: %.*s > %.*s; ",
                   row->live ? "live" : "waits", row->name, SLICE_ARG(before), SLICE_ARG(now));
}

static struct node_options_changes change(void)
{
    struct node_options_told to = {.differs = differs};
    struct node_options_changes changes;
    assert_int_equal(node_options_change(&in_force, &fresh, &to, &changes), 0);
    return changes;
}

static void equal_values_change_nothing(void **state)
{
    (void)state;
    set(&in_force, "queue-max", "7", NODE_SOURCE_FILE);
    set(&fresh, "queue-max", "7", NODE_SOURCE_FLAG);
    struct node_options_changes c = change();
    assert_int_equal(c.changed + c.waiting, 0);
    assert_string_equal(told, "");
    int row = node_option_find(SLICE("queue-max"));
    assert_int_equal(in_force.origins[row].source, NODE_SOURCE_FLAG); /* still a flag */
}

static void live_settings_of_each_type(void **state)
{
    (void)state;
    set(&in_force, "replica", "http://a:1", NODE_SOURCE_FILE);
    set(&fresh, "replica", "http://a:1,http://b:2", NODE_SOURCE_FILE);
    set(&fresh, "policy", "random", NODE_SOURCE_FILE);
    set(&fresh, "session-header", "x-user", NODE_SOURCE_FILE);
    set(&fresh, "near-tie", "0.5", NODE_SOURCE_FILE);
    set(&fresh, "replica-header", "off", NODE_SOURCE_FILE);
    set(&fresh, "forwarded-headers", "replace", NODE_SOURCE_FILE);
    set(&fresh, "body-bytes-max", "1MiB", NODE_SOURCE_FILE);
    set(&fresh, "upstream-first-token-timeout", "9s", NODE_SOURCE_FILE);
    struct node_options_changes c = change();
    assert_int_equal(c.changed, 8);
    assert_int_equal(c.waiting, 0);
    assert_int_equal(in_force.replica.count, 2);
    assert_string_equal(in_force.replica.at[1], "http://b:2");
    assert_string_equal(in_force.session_header, "x-user");
    assert_string_equal(fresh.session_header, "auto"); /* freed with `fresh` */
    assert_true(in_force.near_tie == 0.5);
    assert_false(in_force.replica_header);
    assert_int_equal(in_force.forwarded_headers, NODE_FORWARDED_REPLACE);
    assert_int_equal(in_force.body_bytes_max, 1048576);
    assert_int_equal(in_force.upstream_first_token_timeout_ms, 9000);
    int row = node_option_find(SLICE("near-tie"));
    assert_int_equal(in_force.origins[row].line, 7);
    assert_ptr_equal(in_force.origins[row].file, in_force.config); /* not freed with `fresh` */
}

static void other_changes_wait_for_a_restart_and_are_named(void **state)
{
    (void)state;
    struct buf out = {0};
    set(&fresh, "listen", "127.0.0.1:1", NODE_SOURCE_ENVIRONMENT);
    set(&fresh, "queue-max", "7", NODE_SOURCE_ENVIRONMENT);
    struct node_options_changes c = change();
    assert_int_equal(c.changed, 1);
    assert_int_equal(c.waiting, 1);
    assert_string_equal(told,
                        "waits listen: 0.0.0.0:8080 > 127.0.0.1:1; live queue-max: 1000 > 7; ");
    assert_int_equal(in_force.listen.port, 8080);
    assert_int_equal(node_options_waiting(&in_force, &fresh, &out), 0);
    assert_slice_equal(buf_slice(&out),
                       "# These wait for a restart:\n"
                       "# listen: 127.0.0.1:1                         # GRAPEVINE_LISTEN\n");
    buf_clear(&out);
    assert_int_equal(node_options_waiting(&in_force, &in_force, &out), 0);
    assert_int_equal(out.len, 0);
    buf_free(&out);
}

/* A setting used only at the start cannot be live, in any row added later. */
static void start_time_settings_are_not_live(void **state)
{
    (void)state;
    static const char *const names[] = {"listen",           "admin-listen",
                                        "admin-token-file", "config",
                                        "gossip-listen",    "join",
                                        "cluster-key-file", "node-name",
                                        "index-bytes",      "ttl",
                                        "generation",       "seed",
                                        "connections-max",  "head-bytes-max",
                                        "replica-dns",      "replica-file",
                                        "replicas-max",     "proxy-protocol",
                                        "log-format",       "insecure-gossip",
                                        "prefill-rate"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int row = node_option_find(slice_of_cstr(names[i]));
        assert_true(row >= 0);
        assert_false(node_option_at((unsigned)row)->live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_values_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(live_settings_of_each_type, setup, teardown),
        cmocka_unit_test_setup_teardown(other_changes_wait_for_a_restart_and_are_named, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(start_time_settings_are_not_live, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
