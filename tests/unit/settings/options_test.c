#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/route/router.h"
#include "node/settings/options.h"
#include "tests/lib/files.h"

#define REPLICA "--replica", "http://10.0.0.1:8000"

static struct node_options o;
static struct node_options_error error;

static int setup(void **state)
{
    (void)state;
    error.text[0] = '\0';
    return node_options_init(&o);
}

static int teardown(void **state)
{
    (void)state;
    node_options_free(&o);
    return 0;
}

/* Flags as a NULL-terminated list of strings, after argv[0]. */
static int flags(const char *first, ...)
{
    static char words[16][512];
    char *argv[17] = {words[0]};
    int argc = 1;
    va_list args;
    va_start(args, first);
    for (const char *a = first; a != NULL; a = va_arg(args, const char *)) {
        assert_true(argc < 16 && slice_to_cstr(slice_of_cstr(a), words[argc], sizeof words[0]));
        argv[argc] = words[argc];
        argc++;
    }
    va_end(args);
    return node_options_flags(&o, argc, argv, &error);
}

static int environment(const char *variable)
{
    char path[] = "PATH=/bin";
    char text[512];
    assert_true(slice_to_cstr(slice_of_cstr(variable), text, sizeof text));
    char *all[] = {path, text, NULL};
    return node_options_environment(&o, all, &error);
}

static int file(const char *name, const char *value, unsigned line)
{
    struct node_option_origin origin = {NODE_SOURCE_FILE, "g.yaml", line};
    return node_options_set(&o, slice_of_cstr(name), slice_of_cstr(value), origin, &error);
}

static void test_defaults(void **state)
{
    (void)state;
    assert_string_equal(o.listen.host, "0.0.0.0");
    assert_int_equal(o.listen.port, 8080);
    assert_string_equal(o.admin_listen.host, "127.0.0.1");
    assert_string_equal(node_policy_names[o.policy], "cache_aware");
    assert_int_equal(o.other_paths, NODE_PATHS_REFUSE);
    assert_int_equal(o.engine_control_paths, NODE_PATHS_REFUSE);
    assert_true(o.replica_header);
    assert_int_equal(o.body_bytes_max, 64 << 20);
    assert_int_equal(o.upstream_keepalive_ms, 4000);
    assert_int_equal(o.log_level, LOG_INFO);
    assert_true(o.near_tie == 0.02);
    assert_int_equal(o.replica.count, 0);
    assert_int_equal(o.command, NODE_COMMAND_RUN);
}

static void test_flags(void **state)
{
    (void)state;
    assert_int_equal(flags(REPLICA, "--replica=http://b", "--listen", "[::1]:0", "--ttl=1.5m",
                           "--index-bytes", "32m", "--body-bytes-max=1MB", "--no-replica-header",
                           "--policy", "round_robin", NULL),
                     0);
    assert_int_equal(o.replica.count, 2);
    assert_string_equal(o.replica.at[0], "http://10.0.0.1:8000");
    assert_string_equal(o.replica.at[1], "http://b");
    assert_string_equal(o.listen.host, "::1");
    assert_int_equal(o.listen.port, 0);
    assert_int_equal(o.ttl_ms, 90000);
    assert_int_equal(o.index_bytes, 32 << 20);
    assert_int_equal(o.body_bytes_max, 1000000);
    assert_false(o.replica_header);
    assert_string_equal(node_policy_names[o.policy], "round_robin");
    assert_int_equal(node_options_finish(&o, &error), 0);
}

static void test_bool_flags(void **state)
{
    (void)state;
    assert_int_equal(flags("--replica-header", "off", "--seed", "1", NULL), 0);
    assert_false(o.replica_header);
    assert_int_equal(flags("--replica-header", "--seed", "2", NULL), 0);
    assert_true(o.replica_header);
    assert_int_equal(flags("--replica-header=No", NULL), 0);
    assert_false(o.replica_header);
    assert_int_equal(o.seed, 2); /* the last of two flags counts */
}

static void test_precedence(void **state)
{
    (void)state;
    assert_int_equal(flags("--ttl", "2m", NULL), 0);
    assert_int_equal(environment("GRAPEVINE_TTL=3m"), 0);
    assert_int_equal(environment("GRAPEVINE_GENERATION=30s"), 0);
    assert_int_equal(file("ttl", "4m", 1), 0);
    assert_int_equal(file("generation", "40s", 2), 0);
    assert_int_equal(file("drain-timeout", "5s", 3), 0);
    assert_int_equal(o.ttl_ms, 120000);
    assert_int_equal(o.generation_ms, 30000);
    assert_int_equal(o.drain_timeout_ms, 5000);
    /* Overridden values are still checked. */
    assert_int_equal(file("ttl", "soon", 4), ERR_SYNTAX);
}

static void test_stronger_list_replaces(void **state)
{
    (void)state;
    assert_int_equal(file("replica", "http://a", 1), 0);
    assert_int_equal(file("replica", "http://b", 2), 0);
    assert_int_equal(o.replica.count, 2);
    assert_int_equal(environment("GRAPEVINE_REPLICA=http://c, http://d,http://e#engine=vllm"), 0);
    assert_int_equal(o.replica.count, 3);
    assert_string_equal(o.replica.at[1], "http://d");
    assert_int_equal(file("replica", "http://f", 3), 0);
    assert_int_equal(o.replica.count, 3);
    assert_int_equal(flags(REPLICA, NULL), 0);
    assert_int_equal(o.replica.count, 1);
}

/* Each bad setting: the flags, and the whole error line. */
static void test_error_lines(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *value;
        const char *line;
    } bad[] = {
        {"--listen", "8080",
         "bad setting listen = \"8080\" (flag --listen): want HOST:PORT, such as 0.0.0.0:8080"},
        {"--listen", "a:65536",
         "bad setting listen = \"a:65536\" (flag --listen): want HOST:PORT, such as 0.0.0.0:8080"},
        {"--listen", NULL,
         "bad setting listen (flag --listen): a value is missing, want --listen HOST:PORT"},
        {"--listen", "--seed",
         "bad setting listen (flag --listen): a value is missing, want --listen HOST:PORT"},
        {"--ttl", "60",
         "bad setting ttl = \"60\" (flag --ttl): want a time with its unit from 1s to 24h, such as "
         "1h"},
        {"--scrape-interval", "99ms",
         "bad setting scrape-interval = \"99ms\" (flag --scrape-interval): want a time with its "
         "unit from 100ms to 1h, such as 1s"},
        {"--index-bytes", "1k",
         "bad setting index-bytes = \"1k\" (flag --index-bytes): want a size from 1MiB to 1TiB, "
         "such as 64MiB"},
        {"--load-bound", "0.9",
         "bad setting load-bound = \"0.9\" (flag --load-bound): want a number from 1 to 1000, such "
         "as 1.25"},
        {"--replica-header=maybe", NULL,
         "bad setting replica-header = \"maybe\" (flag --replica-header): want on or off"},
        {"--other-paths", "Pass",
         "bad setting other-paths = \"Pass\" (flag --other-paths): want refuse or pass; did you "
         "mean pass?"},
        {"--session-header", "a b\n",
         "bad setting session-header = \"a b\\x0a\" (flag --session-header): want names of "
         "headers, such as x-session-id, separated by commas; 16 at most"},
        {"--session-header", "a,,b",
         "bad setting session-header = \"a,,b\" (flag --session-header): "
         "want names of headers, such as x-session-id, separated by "
         "commas; 16 at most"},
        {"--replica", "https://a:0",
         "bad setting replica = \"https://a:0\" (flag --replica): want a URL such as "
         "http://10.0.0.1:8000, its port from 1 to 65535"},
        {"--replica-tls-name", "a:1",
         "bad setting replica-tls-name = \"a:1\" (flag --replica-tls-name): want a name without a "
         "port, such as engines.internal"},
        {"--replica", "http://a:1,http://b:1/v1",
         "bad setting replica = \"http://b:1/v1\" (flag --replica): want no path: http://HOST:PORT "
         "alone"},
        {"--replica", "http://a:1#engine=tgi",
         "bad setting replica = \"http://a:1#engine=tgi\" (flag --replica): after # want "
         "engine=vllm, engine=sglang or engine=other"},
        {"--polcy", "x", "unknown setting \"polcy\" (flag): did you mean --policy?"},
        {"--chek-config", NULL,
         "unknown setting \"chek-config\" (flag): did you mean "
         "--check-config?"},
        {"--zzzzzzzzzz", NULL, "unknown setting \"zzzzzzzzzz\" (flag): see grapevine --help"},
        {"--no-listen", NULL, "unknown setting \"no-listen\" (flag): did you mean --listen?"},
        {"http://a", NULL,
         "unexpected argument \"http://a\": want --name VALUE, see grapevine --help"},
        {"--", NULL, "unexpected argument \"--\": want --name VALUE, see grapevine --help"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_true(flags(bad[i].name, bad[i].value, NULL) < 0);
        assert_string_equal(error.text, bad[i].line);
    }
}

static void test_errors_of_other_sources(void **state)
{
    (void)state;
    assert_int_equal(environment("GRAPEVINE_CLIENT_IDLE_TIMEOUT=1"), ERR_SYNTAX);
    assert_string_equal(error.text,
                        "bad setting client-idle-timeout = \"1\" (GRAPEVINE_CLIENT_IDLE_TIMEOUT): "
                        "want a time with its unit from 0 to 24h, such as 75s");
    assert_int_equal(environment("GRAPEVINE_LISTN=a:1"), ERR_SYNTAX);
    assert_string_equal(error.text,
                        "unknown setting \"listn\" (environment): did you mean GRAPEVINE_LISTEN?");
    assert_int_equal(file("listen", "", 12), ERR_SYNTAX);
    assert_string_equal(
        error.text, "bad setting listen = \"\" (g.yaml:12): want HOST:PORT, such as 0.0.0.0:8080");
    assert_int_equal(file("listn", "", 3), ERR_SYNTAX);
    assert_string_equal(error.text, "unknown setting \"listn\" (g.yaml:3): did you mean listen?");
    assert_int_equal(file("config", "b.yaml", 3), ERR_SYNTAX);
    assert_string_equal(error.text, "bad setting config = \"b.yaml\" (g.yaml:3): want it as a flag "
                                    "or as GRAPEVINE_CONFIG only");
}

/* If a service is called "grapevine", Kubernetes puts these variables into every pod. */
static void test_variables_of_kubernetes(void **state)
{
    (void)state;
    static const char *const harmless[] = {
        "GRAPEVINE_PORT=tcp://10.0.0.1:8080",
        "GRAPEVINE_PORT_8080_TCP=tcp://10.0.0.1:8080",
        "GRAPEVINE_PORT_8080_TCP_ADDR=10.0.0.1",
        "GRAPEVINE_SERVICE_HOST=10.0.0.1",
        "GRAPEVINE_SERVICE_PORT_HTTP=8080",
        "GRAPEVINE_ADMIN_SERVICE_HOST=10.0.0.2",
        "GRAPEVINE_ADMIN_PORT_9090_TCP_PROTO=tcp",
        "GRAPEVINE_PROD_SERVICE_PORT_HTTP=80", /* of a service "grapevine-prod" */
        "GRAPEVINE_PROD_PORT_80_TCP=tcp://10.0.0.1:80",
        "GRAPEVINE_ADMIN_CA_FILE=/etc/ca.crt", /* gvctl's */
        "GRAPEVINE_LISTEN=",                   /* empty counts as missing */
        "GRAPEVINES=1",
    };
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        assert_int_equal(environment(harmless[i]), 0);
    assert_int_equal(o.listen.port, 8080);
    assert_int_equal(environment("GRAPEVINE_PORT=8080"), ERR_SYNTAX); /* no tcp://: a mistake */
    assert_int_equal(environment("GRAPEVINE_LISTN_PORT=8080"), ERR_SYNTAX);
}

/* 24h were cut short, silently, at 3,840 slices. */
static void follows(const char *ttl, uint64_t generation_ms)
{
    node_options_free(&o);
    assert_int_equal(node_options_init(&o), 0);
    assert_int_equal(flags(REPLICA, "--ttl", ttl, NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(o.generation_ms, generation_ms);
}

static void test_the_default_generation_follows_a_long_ttl(void **state)
{
    (void)state;
    follows("1h", 8000);
    follows("4h", 15000);
    follows("270m", 20000);
    follows("16h", 60000);
    follows("24h", 90000);
}

static void test_a_generation_too_short_for_the_ttl_is_refused(void **state)
{
    (void)state;
    assert_int_equal(flags(REPLICA, "--ttl", "16h", "--generation", "15s", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--ttl", "24h", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_non_null(strstr(error.text, "\"15s\" (flag --generation): ttl would be 5760 gen"));
    assert_non_null(strstr(error.text, "3840 are possible: want a generation of at least 23s, or"));
    assert_int_equal(flags("--generation", "23s", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(o.generation_ms, 23000);
}

static void test_contradictions(void **state)
{
    (void)state;
    assert_int_equal(node_options_finish(&o, &error), ERR_SYNTAX);
    assert_string_equal(error.text, "setting replica is missing: want at least one engine, such as "
                                    "--replica http://10.0.0.1:8000");
    assert_int_equal(flags(REPLICA, "--ttl", "5s", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_string_equal(error.text, "bad setting ttl = \"5s\" (flag --ttl): want at least "
                                    "generation, which is 8s (default)");
    assert_int_equal(flags("--ttl", "1h", "--body-bytes-max", "2GiB", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_int_equal(flags("--body-bytes-max", "2MiB", "--admin-listen", "[::]:8080", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_int_equal(flags("--admin-listen", "127.0.0.1:0", "--listen", "127.0.0.1:0", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--replica", "http://10.0.0.1:8000/#engine=vllm", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_EXISTS);
    assert_string_equal(error.text,
                        "bad setting replica = \"http://10.0.0.1:8000/#engine=vllm\" (flag "
                        "--replica): want each replica only once: this one is repeated");
}

/* Requests would come back to the router, and be sent again. */
static void test_a_router_cannot_be_its_own_replica(void **state)
{
    (void)state;
    assert_int_equal(flags("--replica", "http://10.0.0.1:8000,http://localhost:8080", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_string_equal(error.text,
                        "bad setting replica = \"http://localhost:8080\" (flag --replica): this "
                        "router itself listens there (listen), want the address of an engine");
    assert_int_equal(flags("--listen", "127.0.0.1:81", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--replica", "http://127.0.0.1:9090", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_non_null(strstr(error.text, "(admin-listen)"));
    assert_int_equal(flags("--admin-listen", "127.0.0.2:9090", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--replica", "http://127.0.0.1:7490", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--join", "10.0.0.7", "--insecure-gossip", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_non_null(strstr(error.text, "(gossip-listen)"));
}

static void test_a_cluster_needs_a_key(void **state)
{
    (void)state;
    struct node_address listen;
    assert_int_equal(flags(REPLICA, NULL), 0);
    assert_false(node_options_gossip(&o, &listen));
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--join", "routers.internal", NULL), 0);
    assert_true(node_options_gossip(&o, &listen));
    assert_string_equal(listen.host, "0.0.0.0");
    assert_int_equal(listen.port, NODE_GOSSIP_PORT);
    assert_int_equal(node_options_finish(&o, &error), ERR_SYNTAX);
    assert_non_null(strstr(error.text, "gvctl keygen --out FILE"));
    assert_int_equal(flags("--insecure-gossip", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
    assert_int_equal(flags("--cluster-key-file", "k", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_string_equal(
        error.text, "bad setting insecure-gossip = \"on\" (flag --insecure-gossip): want it off "
                    "with cluster-key-file, which is k (flag --cluster-key-file)");
    assert_int_equal(flags("--no-insecure-gossip", "--gossip-listen", "[::]:8080", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE); /* clients connect there */
    assert_int_equal(flags("--gossip-listen", "[::1]:0", NULL), 0);
    assert_true(node_options_gossip(&o, &listen));
    assert_string_equal(listen.host, "::1");
    assert_int_equal(listen.port, 0);
    assert_int_equal(node_options_finish(&o, &error), 0);
}

/* A part of a cluster's settings, but not the setting that makes a cluster. */
static void test_a_key_file_alone_makes_no_cluster(void **state)
{
    (void)state;
    assert_int_equal(flags(REPLICA, "--cluster-key-file", "k", NULL), 0);
    assert_int_equal(node_options_finish(&o, &error), ERR_RANGE);
    assert_string_equal(error.text,
                        "bad setting cluster-key-file = \"k\" (flag --cluster-key-file): this "
                        "router runs alone, want gossip-listen or join too");
}

static void test_a_cluster_router_needs_no_replica(void **state)
{
    (void)state;
    assert_int_equal(flags("--join", "10.0.0.7:1,[fd00::7],a", "--cluster-key-file", "k", NULL), 0);
    assert_int_equal(o.join.count, 3);
    assert_int_equal(node_options_finish(&o, &error), 0);
    struct node_address at;
    assert_int_equal(node_address_parse_default(slice_of_cstr(o.join.at[1]), 7, &at), 0);
    assert_string_equal(at.host, "fd00::7");
    assert_int_equal(at.port, 7);
}

static void test_replica_urls(void **state)
{
    (void)state;
    static const struct {
        const char *url;
        const char *name;
        enum node_engine engine;
    } good[] = {
        {"http://10.0.0.1:8000", "10.0.0.1:8000", NODE_ENGINE_AUTO},
        {"http://engine-0.pods/", "engine-0.pods:80", NODE_ENGINE_AUTO},
        {"http://[fd00::1]:8000#engine=sglang", "[fd00::1]:8000", NODE_ENGINE_SGLANG},
        {"http://a:1/#engine=other", "a:1", NODE_ENGINE_OTHER},
        {"https://engine-0.pods/", "https://engine-0.pods:443", NODE_ENGINE_AUTO},
        {"https://[fd00::1]:8443#engine=sglang", "https://[fd00::1]:8443", NODE_ENGINE_SGLANG},
        {"http://a:1#weight=2#engine=vllm", "a:1", NODE_ENGINE_VLLM},
    };
    struct node_replica_option r;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(node_replica_parse(slice_of_cstr(good[i].url), &r), 0);
        assert_string_equal(r.name, good[i].name);
        assert_int_equal(r.labels.engine, good[i].engine);
    }
    static const char *const bad[] = {
        /* clang-format off */
        "", "http://", "http://:80", "http://a:0", "http://a:", "http://a:b", "http://u:p@a:1",
        "http://a:1?x", "http://a b", "http://[::1", "a:1", "http://[a]:1", "HTTPS://a:1",
        "http://a:99999", "http://fd00::1", "http://a:1#", "http://a//", "http://[::1]x:1",
        "http://a:1#vllm", "http://a\r\nHost:x", "ftp://a:1",
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(node_replica_parse(slice_of_cstr(bad[i]), &r), ERR_SYNTAX);
}

static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ms; /* UINT64_MAX: an error */
    } times[] = {
        {"0", 0},
        {"500ms", 500},
        {"1.001s", 1001}, /* as doubles 1.001 * 1000 < 1001 */
        {"2 m", 120000},
        {"1h", 3600000},
        {"1H", 3600000},
        {"0.0001s", UINT64_MAX},
        {"-1s", UINT64_MAX},
        {"1e3s", UINT64_MAX},
        {"s", UINT64_MAX},
        {".s", UINT64_MAX},
        {"1..5s", UINT64_MAX},
        {"25h", UINT64_MAX},
        {"inf", UINT64_MAX},
        {"0x10s", UINT64_MAX},
        {"99999999999999999999999999h", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int err = file("client-idle-timeout", times[i].text, 1);
        if (times[i].ms == UINT64_MAX)
            assert_true(err < 0);
        else
            assert_true(err == 0 && o.client_idle_timeout_ms == times[i].ms);
    }
    char *long_value = calloc(1, NODE_VALUE_BYTES + 1);
    assert_non_null(long_value);
    memset(long_value, 'x', NODE_VALUE_BYTES);
    assert_int_equal(file("admin-token-file", long_value, 1), ERR_SYNTAX);
    assert_int_equal(file("replica", long_value, 1), ERR_SYNTAX);
    assert_true(strlen(error.text) < 300);
    free(long_value);
}

static void test_list_limit(void **state)
{
    (void)state;
    char url[64];
    for (int i = 0; i < NODE_STRINGS_MAX; i++) {
        (void)snprintf(url, sizeof url, "http://a:%d", i + 1);
        assert_int_equal(file("replica", url, 1), 0);
    }
    assert_int_equal(file("replica", "http://b", 1), ERR_FULL);
    assert_non_null(strstr(error.text, "want at most 1024 entries"));
    assert_int_equal(o.replica.count, NODE_STRINGS_MAX);
}

/* Every row, written as text and read again, gives the same value; defaults are in range. */
static void test_round_trip(void **state)
{
    (void)state;
    const struct node_option *row;
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++) {
        struct buf before = {0};
        struct buf after = {0};
        assert_int_equal(node_option_format(&o, row, &before), 0);
        assert_int_equal(buf_append_char(&before, '\0'), 0);
        if (row->type == NODE_TYPE_LIST || strcmp(row->name, "config") == 0) {
            buf_free(&before);
            continue;
        }
        assert_int_equal(file(row->name, before.at, 1), 0);
        assert_int_equal(node_option_format(&o, row, &after), 0);
        assert_int_equal(buf_append_char(&after, '\0'), 0);
        assert_string_equal(before.at, after.at);
        buf_free(&before);
        buf_free(&after);
    }
}

/* Names are unique, each group begins once, and no name starts with "no-". */
static void test_table(void **state)
{
    (void)state;
    const struct node_option *row;
    assert_non_null(node_option_at(0)->group);
    for (unsigned i = 0; (row = node_option_at(i)) != NULL; i++) {
        assert_int_equal(node_option_find(slice_of_cstr(row->name)), i);
        assert_false(slice_starts_with(slice_of_cstr(row->name), SLICE("no-")));
        for (unsigned j = 0; j < i && row->group != NULL; j++)
            assert_true(node_option_at(j)->group == NULL ||
                        strcmp(node_option_at(j)->group, row->group) != 0);
    }
}

static void test_help_fits_a_terminal(void **state)
{
    (void)state;
    struct buf help = {0};
    assert_int_equal(node_options_help(&help), 0);
    struct slice rest = buf_slice(&help);
    unsigned lines = 0;
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        assert_in_range(line.len, 0, 80);
        lines++;
    }
    assert_in_range(lines, 40, 170);
    buf_free(&help);
}

static void test_commands(void **state)
{
    (void)state;
    assert_int_equal(flags("--check-config", REPLICA, NULL), 0);
    assert_int_equal(o.command, NODE_COMMAND_CHECK_CONFIG);
    assert_int_equal(flags("-h", "--nonsense", NULL), 0);
    assert_int_equal(o.command, NODE_COMMAND_HELP);
    assert_int_equal(flags("--version", NULL), 0);
    assert_int_equal(o.command, NODE_COMMAND_VERSION);
}

static void test_effective(void **state)
{
    (void)state;
    assert_int_equal(flags(REPLICA, "--admin-token-file", "a b", NULL), 0);
    assert_int_equal(environment("GRAPEVINE_TTL=2h"), 0);
    struct buf text = {0};
    assert_int_equal(node_options_effective(&o, &text), 0);
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    assert_non_null(strstr(text.at, "replica: [http://10.0.0.1:8000]               # flag"));
    assert_non_null(strstr(text.at, "ttl: 2h                                       # GRAPEVINE_T"));
    assert_non_null(strstr(text.at, "admin-token-file: \"a b\" "));
    buf_free(&text);
}

static void test_reference_page_is_fresh(void **state)
{
    (void)state;
    struct buf made = {0};
    struct buf kept = {0};
    assert_int_equal(node_options_markdown(&made), 0);
    assert_int_equal(file_read("docs/options.md", &kept), 0);
    if (!slice_equal(buf_slice(&made), buf_slice(&kept)))
        fail_msg("docs/options.md is stale: make docs");
    buf_free(&made);
    buf_free(&kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_defaults),
        TEST(test_flags),
        TEST(test_bool_flags),
        TEST(test_precedence),
        TEST(test_stronger_list_replaces),
        TEST(test_error_lines),
        TEST(test_errors_of_other_sources),
        TEST(test_variables_of_kubernetes),
        TEST(test_the_default_generation_follows_a_long_ttl),
        TEST(test_a_generation_too_short_for_the_ttl_is_refused),
        TEST(test_contradictions),
        TEST(test_a_router_cannot_be_its_own_replica),
        TEST(test_a_cluster_needs_a_key),
        TEST(test_a_key_file_alone_makes_no_cluster),
        TEST(test_a_cluster_router_needs_no_replica),
        TEST(test_replica_urls),
        TEST(test_values),
        TEST(test_list_limit),
        TEST(test_round_trip),
        TEST(test_table),
        TEST(test_help_fits_a_terminal),
        TEST(test_commands),
        TEST(test_effective),
        TEST(test_reference_page_is_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
