/* The engines whose KV events a router reads, and how the router finds the endpoints. */
#include "node/proxy/engine/feeds.h"

#include <stdio.h>

#include "node/kv/readers.h"
#include "node/proxy/engine/pool.h"
#include "node/route/router_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static struct proxy_world world;
static char feeds[4][128];  /* open feeds: "endpoint replay topic" */
static unsigned asked;      /* requests for the engine's endpoints */
static unsigned status;     /* status of the engine's answer */
static const char *sources; /* body of the answer */
static unsigned started_s;  /* start time of the engine in the metrics; 0: none */
static size_t answered[WORLD_WIRES_MAX];

/* --- the shell of feeds ---------------------------------------------------------------------- */

static int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)context;
    (void)snprintf(feeds[feed], sizeof feeds[feed], "%.*s %.*s %.*s", SLICE_ARG(endpoint),
                   SLICE_ARG(replay), SLICE_ARG(topic));
    return ERR_OK;
}

static void on_close(void *context, unsigned feed)
{
    (void)context;
    feeds[feed][0] = '\0';
}

static int on_replay(void *context, unsigned feed, uint64_t from)
{
    (void)context, (void)feed, (void)from;
    return ERR_OK;
}

static uint64_t on_malformed(void *context, unsigned feed)
{
    (void)context, (void)feed;
    return 0;
}

static const struct kv_readers_shell shell = {on_open, on_close, on_replay, on_malformed, NULL};

static void shape(void *context, struct node_config *node)
{
    (void)context;
    node->kv = &shell;
}

/* --- the engine ------------------------------------------------------------------------------ */

static void reply(struct wire *wire, unsigned code, const char *body)
{
    char text[1024];
    int len = snprintf(text, sizeof text, "HTTP/1.1 %u x\r\nContent-Length: %zu\r\n\r\n%s", code,
                       strlen(body), body);
    proxy_world_send(&world, wire, slice_of(text, (size_t)len));
}

static void answer(struct wire *wire, struct slice head)
{
    char metrics[256];
    (void)snprintf(metrics, sizeof metrics,
                   "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"5000\"} 1\n"
                   "vllm:num_requests_running 0\n%sprocess_start_time_seconds %u\n",
                   started_s > 0 ? "" : "# ", started_s);
    if (slice_starts_with(head, SLICE("GET /health ")))
        reply(wire, 200, "");
    else if (slice_starts_with(head, SLICE("GET /v1/models ")))
        reply(wire, 200,
              "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\","
              "\"owned_by\":\"vllm\"}]}");
    else if (slice_starts_with(head, SLICE("GET /metrics ")))
        reply(wire, 200, metrics);
    else if (slice_starts_with(head, SLICE("GET /kv_event_sources "))) {
        asked++;
        reply(wire, status, sources);
    } else
        reply(wire, 404, "{}");
}

static void passes(uint64_t ms)
{
    for (uint64_t until = world.now_ms + ms; world.now_ms < until;) {
        proxy_world_wait(&world, PROXY_TICK_MS);
        if (world.now_ms % SECOND == 0)
            node_tick(world.node, world.now_ms);
        for (unsigned i = 0; i < world.wire_count; i++) {
            struct wire *w = &world.wires[i];
            if (!w->used || w->replica < 0 || w->closing)
                continue;
            if (w->connecting) {
                answered[i] = 0;
                proxy_world_accept(&world, w, 0);
            }
            if (w->out.len > answered[i]) {
                struct slice head = slice_skip(buf_slice(&w->out), answered[i]);
                answered[i] = w->out.len;
                answer(w, head);
            }
        }
    }
    node_check(world.node); /* all tables, but only once per call */
}

/* --- tests ----------------------------------------------------------------------------------- */

static const char two_ranks[] =
    "{\"1\":{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5558\",\"replay_endpoint\":null,"
    "\"topic\":\"t\"},"
    "\"0\":{\"publisher\":\"zmq\",\"endpoint\":\"tcp://*:5557\",\"replay_endpoint\":null,"
    "\"topic\":\"t\"}}";
static const char one[] = "{\"3\":{\"enable_kv_cache_events\":true,\"publisher\":\"zmq\","
                          "\"endpoint\":\"tcp://*:5557\",\"replay_endpoint\":\"tcp://*:5657\","
                          "\"topic\":\"t\"}}";

/* A message without events. */
static const struct slice nothing = {"\x93\xcb\x41\xda\x22\xfa\xa0\x20\0\0\x90\0", 12};

static struct node_replica *replica(unsigned slot)
{
    return &world.node->router->replicas[slot];
}

/* True if GET /replicas contains `text`. */
static bool replicas_have(const char *text)
{
    struct buf json = {.at = NULL};
    assert_int_equal(node_router_replicas_json(world.node->router, world.now_ms, &json), ERR_OK);
    assert_int_equal(buf_append_char(&json, '\0'), ERR_OK);
    bool found = strstr(json.at, text) != NULL;
    buf_free(&json);
    return found;
}

static int setup(void **state)
{
    (void)state;
    memset(feeds, 0, sizeof feeds);
    memset(answered, 0, sizeof answered);
    asked = 0;
    status = 200;
    sources = one;
    started_s = 1000;
    proxy_world_open(&world, &(struct proxy_world_config){
                                 .quiet = true, .probes = true, .replicas = 1, .shape = shape});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    proxy_world_close(&world);
    assert_string_equal(feeds[0], "");
    return 0;
}

static void the_engine_reports_the_endpoint(void **state)
{
    (void)state;
    passes(5 * SECOND);
    char at[128];
    struct slice host = slice_of_cstr(world.proxy->engines.pools[0].address.host);
    (void)snprintf(at, sizeof at, "tcp://%.*s:5557 tcp://%.*s:5657 t", SLICE_ARG(host),
                   SLICE_ARG(host));
    assert_string_equal(feeds[0], at);
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    struct kv_reading_row row;
    assert_true(kv_readers_row(world.node->kv_readers, 0, &row));
    assert_true(row.may_speak);
    assert_int_equal(row.blocks_max, 9998); /* from the metrics; vLLM keeps a block */
    assert_int_equal(asked, 1);
    passes(4 * MINUTE);
    assert_int_equal(asked, 1);
    status = 404; /* asked again now and then */
    passes(2 * MINUTE);
    assert_int_equal(asked, 2);
    assert_string_equal(feeds[0], "");
    world.options.kv_events = NODE_KV_EVENTS_OFF;
    status = 200;
    passes(10 * MINUTE);
    assert_int_equal(asked, 2);
}

static void an_engine_without_the_path_is_rarely_asked(void **state)
{
    (void)state;
    status = 404;
    passes(4 * MINUTE);
    assert_true(asked == 1 && feeds[0][0] == '\0');
    status = 403; /* does not count as a refused probe */
    passes(4 * MINUTE);
    assert_int_equal(asked, 2);
    assert_int_equal(replica(0)->server.probes_refused, 0);
    status = 500;
    passes(5 * MINUTE + SECOND);
    assert_true(asked >= 3);
    unsigned before = asked;
    passes(3 * MINUTE); /* a failing engine is asked again sooner, but not often */
    assert_in_range(asked, before + 2, before + 3);
}

static void a_restarted_engine_is_asked_again(void **state)
{
    (void)state;
    passes(30 * SECOND);
    assert_int_equal(asked, 1);
    started_s += 100;
    sources = "{}";
    passes(5 * SECOND);
    assert_true(asked == 2 && feeds[0][0] == '\0');
}

static unsigned said_live, lost, unreachable, silent, restarted;
static char said_from[128], said_want[256]; /* from the last two events */

static void on_event(void *context, enum log_level level, const char *event,
                     const struct log_field *fields, unsigned count, uint64_t now_ms)
{
    (void)context, (void)level, (void)now_ms;
    said_live += strcmp(event, "kv_events_live") == 0;
    lost += strcmp(event, "kv_events_lost") == 0;
    unreachable += strcmp(event, "kv_events_unreachable") == 0;
    silent += strcmp(event, "kv_events_silent") == 0;
    restarted += strcmp(event, "replica_restarted") == 0;
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(fields[i].name, "from") == 0)
            (void)slice_to_cstr(fields[i].value.str, said_from, sizeof said_from);
        else if (strcmp(fields[i].name, "want") == 0)
            (void)slice_to_cstr(fields[i].value.str, said_want, sizeof said_want);
    }
}

static void listen_to_the_log(void)
{
    world.log.tap = on_event;
    said_live = lost = unreachable = silent = restarted = 0;
}

/* A feed still read by another router is not lost; a feed closed to all routers is lost. */
static void a_feed_handed_over_is_not_lost(void **state)
{
    (void)state;
    listen_to_the_log();
    for (unsigned i = 0; i < 2; i++) {
        replica(0)->turn_events = (struct node_turn){0};
        passes(5 * SECOND);
        kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
        kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
        passes(SECOND);
        assert_int_equal(kv_readers_reading(world.node->kv_readers, 0), KV_READING_LIVE);
        if (i == 0)
            replica(0)->turn_events = (struct node_turn){.others = 2, .ahead = 2};
        else
            world.options.kv_events = NODE_KV_EVENTS_OFF;
        passes(2 * SECOND);
        assert_string_equal(feeds[0], "");
        assert_int_equal(lost, i);
    }
}

/* The machine's uptime is the clock: the first look once seemed to come long after the last
 * success. */
static void a_configured_endpoint_has_time_to_connect(void **state)
{
    (void)state;
    struct node_labels labels = {0};
    assert_null(node_labels_parse(SLICE("kv-events=tcp://nowhere.example:9000"), &labels));
    node_router_labels(world.node->router, 0, &labels);
    world.now_ms += 3600 * SECOND;
    listen_to_the_log();
    passes(8 * SECOND);
    assert_int_equal(unreachable, 0);
    passes(6 * SECOND);
    assert_int_equal(unreachable, 1);
}

/* Logged once, with the remedy, and once on recovery. */
static void an_unreachable_endpoint_is_logged(void **state)
{
    (void)state;
    struct node_labels labels = {0};
    assert_null(node_labels_parse(SLICE("kv-events=tcp://nowhere.example:9000"), &labels));
    node_router_labels(world.node->router, 0, &labels);
    listen_to_the_log();
    passes(8 * SECOND);
    assert_int_equal(unreachable, 0);
    passes(6 * SECOND);
    assert_int_equal(unreachable, 1);
    assert_string_equal(said_from, "tcp://nowhere.example:9000");
    assert_non_null(strstr(said_want, "the label kv-events"));
    kv_readers_lost(world.node->kv_readers, 0, world.now_ms);
    passes(30 * SECOND);
    assert_int_equal(unreachable, 1);
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    kv_readers_live(world.node->kv_readers, 0, 0, nothing, world.now_ms);
    passes(2 * SECOND);
    assert_true(unreachable == 1 && said_live == 1 && silent == 0);
    replica(0)->health = NODE_HEALTH_DOWN; /* now the engine itself is down */
    kv_readers_lost(world.node->kv_readers, 0, world.now_ms);
    proxy_world_wait(&world, 20 * SECOND);
    assert_int_equal(unreachable, 1);
}

/* The engine does not have the topic, but the subscription is open. After a replay the reader may
 * count as live meanwhile. */
static void a_silent_feed_is_logged(void **state)
{
    (void)state;
    uint64_t *stored = &world.node->router->slots[0].events.stored;
    listen_to_the_log();
    *stored = 1000;
    passes(5 * SECOND);
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
    passes(2 * SECOND);
    assert_int_equal(kv_readers_reading(world.node->kv_readers, 0), KV_READING_LIVE);
    *stored += 60;
    passes(2 * SECOND);
    assert_true(silent == 0 && said_live == 1);
    *stored += 10;
    passes(30 * SECOND);
    assert_true(silent == 1 && said_live == 1);
    assert_non_null(strstr(said_want, "events at the engine"));
    kv_readers_live(world.node->kv_readers, 0, 0, nothing, world.now_ms);
    passes(2 * SECOND);
    assert_true(silent == 1 && said_live == 2 && lost == 0 && unreachable == 0);
}

/* If nothing else shows the restart, the log reports it from the feed. If metrics show the restart,
 * they report it. */
static void a_restart_seen_only_in_the_feed_is_logged(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        if (i > 0) {
            teardown(state);
            setup(state);
        } else {
            started_s = 0;
        }
        listen_to_the_log();
        passes(5 * SECOND);
        kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
        kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
        for (unsigned number = 0; number < 3; number++)
            kv_readers_live(world.node->kv_readers, 0, number, nothing, world.now_ms);
        assert_int_equal(restarted, 0);
        kv_readers_live(world.node->kv_readers, 0, 0, nothing, world.now_ms);
        assert_int_equal(restarted, i == 0);
        kv_readers_live(world.node->kv_readers, 0, 1, nothing, world.now_ms);
        passes(5 * SECOND);
        assert_int_equal(restarted, i == 0);
    }
}

static void other_routers_read_in_their_turn(void **state)
{
    (void)state;
    replica(0)->turn_events = (struct node_turn){.others = 3, .ahead = 2};
    passes(2 * MINUTE);
    assert_true(asked == 0 && feeds[0][0] == '\0');
    replica(0)->turn_events.ahead = 1;
    passes(5 * SECOND);
    assert_int_equal(asked, 1);
    struct kv_reading_row row;
    assert_true(kv_readers_row(world.node->kv_readers, 0, &row));
    assert_int_equal(row.role, KV_ROLE_STANDS_BY);
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    replica(0)->turn_events.ahead = 0;
    passes(2 * SECOND);
    assert_true(kv_readers_row(world.node->kv_readers, 0, &row));
    assert_true(row.role == KV_ROLE_SPEAKS && row.may_speak);
    assert_false(node_router_events_are_live(world.node->router, 0));
    kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
    passes(SECOND);
    assert_true(node_router_events_are_live(world.node->router, 0));
    assert_true(replicas_have("\"state\":\"live\",") && replicas_have("\"speaks\":true"));
    replica(0)->scrape.tier_hits = 16; /* without an event */
    passes(2 * SECOND);
    assert_true(replicas_have("\"state\":\"silent_tier\",") && replicas_have("\"speaks\":false"));
    assert_false(node_router_events_are_live(world.node->router, 0));
    replica(0)->scrape.tier_hits = 0;
    passes(2 * SECOND);
    assert_true(node_router_events_are_live(world.node->router, 0));
    replica(0)->health = NODE_HEALTH_DOWN; /* perhaps only for this router */
    proxy_world_wait(&world, SECOND);
    assert_int_equal(replica(0)->health, NODE_HEALTH_DOWN);
    assert_true(kv_readers_row(world.node->kv_readers, 0, &row));
    assert_int_equal(row.role, KV_ROLE_STANDS_BY);
    proxy_world_wait(&world, PROXY_TICK_MS);
    assert_false(node_router_events_are_live(world.node->router, 0));
    passes(5 * SECOND);
    replica(0)->turn_events.ahead = 2;
    passes(2 * SECOND);
    assert_string_equal(feeds[0], "");
}

/* The other routers rely on a reading router, but not on a router without a subscription, or one
 * that does not read. */
static void other_routers_rely_on_a_reading_router(void **state)
{
    (void)state;
    const enum node_reads *reads = &world.node->router->slots[0].events.reads;
    assert_false(*reads);
    passes(5 * SECOND);
    assert_true(*reads);
    passes(15 * SECOND); /* opened, and no reply comes */
    assert_false(*reads);
    assert_string_not_equal(feeds[0], "");
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    passes(2 * SECOND);
    assert_true(*reads);
    kv_readers_lost(world.node->kv_readers, 0, world.now_ms);
    passes(5 * SECOND);
    assert_true(*reads);
    world.options.kv_events = NODE_KV_EVENTS_OFF;
    passes(2 * SECOND);
    assert_false(*reads);
}

/* [0, [["AllBlocksCleared"]], 0]: the number counts. */
static void message(uint64_t number)
{
    kv_readers_live(world.node->kv_readers, 0, number,
                    SLICE("\x93\x00\x91\x91\xb0"
                          "AllBlocksCleared\xc0"),
                    world.now_ms);
}

/* A router that knows the contents goes before a router that does not. A standby does so only after
 * a while: if all know the same, the speaker goes on. */
static void a_router_with_live_contents_goes_first(void **state)
{
    (void)state;
    const enum node_reads *reads = &world.node->router->slots[0].events.reads;
    passes(5 * SECOND);
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
    passes(15 * SECOND);
    assert_int_equal(*reads, NODE_READS_TURN);
    message(0);
    passes(SECOND);
    assert_int_equal(*reads, NODE_READS_AHEAD);
    message(2); /* a message is missing, and no replay has it */
    passes(5 * SECOND);
    assert_int_equal(*reads, NODE_READS_TURN);
    replica(0)->turn_events = (struct node_turn){.others = 1, .ahead = 1};
    message(0);
    passes(9 * SECOND);
    assert_int_equal(*reads, NODE_READS_TURN);
    passes(2 * SECOND);
    assert_int_equal(*reads, NODE_READS_AHEAD);
    kv_readers_lost(world.node->kv_readers, 0, world.now_ms);
    passes(2 * SECOND);
    assert_int_equal(*reads, NODE_READS_AHEAD);
    passes(3 * SECOND);
    assert_int_equal(*reads, NODE_READS_TURN);
}

static void a_label_sets_another_endpoint(void **state)
{
    (void)state;
    struct node_labels labels = {0};
    assert_null(node_labels_parse(SLICE("kv-events=tcp://[::1]:9000?topic=x"), &labels));
    node_router_labels(world.node->router, 0, &labels);
    passes(5 * SECOND);
    assert_string_equal(feeds[0], "tcp://[::1]:9000  x");
    assert_int_equal(asked, 0);
    world.options.kv_events = NODE_KV_EVENTS_OFF;
    passes(2 * SECOND);
    assert_string_equal(feeds[0], "");
}

/* Replica 0's events are off, and the other replicas' events are read. */
static void a_label_turns_events_off(void **state)
{
    (void)state;
    listen_to_the_log();
    passes(5 * SECOND);
    kv_readers_connected(world.node->kv_readers, 0, world.now_ms);
    kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
    passes(2 * SECOND);
    assert_true(world.node->router->slots[0].events.reads == NODE_READS_TURN && said_live == 1);
    struct node_labels labels = {0};
    assert_null(node_labels_parse(SLICE("kv-events=off"), &labels));
    node_router_labels(world.node->router, 0, &labels);
    passes(2 * SECOND);
    assert_string_equal(feeds[0], "");
    assert_int_equal(world.node->router->slots[0].events.reads, NODE_READS_NOT);
    assert_int_equal(lost, 1);
    assert_true(replicas_have("\"events\":{\"state\":\"off\",") &&
                replicas_have("\"speaks\":false,\"from\":\"\""));
    unsigned before = asked;
    passes(7 * MINUTE);
    assert_true(asked == before && feeds[0][0] == '\0' && unreachable == 0);
}

/* If a process has several ranks, each rank has a feed, and the address itself has none. */
static void each_rank_has_a_feed(void **state)
{
    (void)state;
    sources = two_ranks;
    passes(5 * SECOND);
    assert_string_equal(feeds[0], ""); /* two caches, and no ranks to distinguish them */
    struct node_labels labels = {.ranks = 2};
    node_router_labels(world.node->router, 0, &labels);
    passes(5 * SECOND);
    struct kv_reading_row row;
    assert_false(kv_readers_row(world.node->kv_readers, 0, &row));
    assert_non_null(strstr(feeds[0], ":5557 "));
    assert_non_null(strstr(feeds[1], ":5558 "));
    assert_null(node_labels_parse(SLICE("ranks=2#kv-events=tcp://a:7000?replay=7100"), &labels));
    node_router_labels(world.node->router, 0, &labels);
    passes(2 * SECOND);
    assert_string_equal(feeds[0], "tcp://a:7000 tcp://a:7100 ");
    assert_string_equal(feeds[1], "tcp://a:7001 tcp://a:7101 ");
    assert_false(kv_readers_row(world.node->kv_readers, 0, &row));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_engine_reports_the_endpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engine_without_the_path_is_rarely_asked, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_restarted_engine_is_asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_feed_handed_over_is_not_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(a_configured_endpoint_has_time_to_connect, setup, teardown),
        cmocka_unit_test_setup_teardown(a_silent_feed_is_logged, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unreachable_endpoint_is_logged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_silent_feed_is_logged, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_seen_only_in_the_feed_is_logged, setup, teardown),
        cmocka_unit_test_setup_teardown(other_routers_read_in_their_turn, setup, teardown),
        cmocka_unit_test_setup_teardown(other_routers_rely_on_a_reading_router, setup, teardown),
        cmocka_unit_test_setup_teardown(a_router_with_live_contents_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_label_sets_another_endpoint, setup, teardown),
        cmocka_unit_test_setup_teardown(a_label_turns_events_off, setup, teardown),
        cmocka_unit_test_setup_teardown(each_rank_has_a_feed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
