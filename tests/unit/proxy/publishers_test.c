/* Engines connecting to publish their KV events: the owner of a connection, and the limits of
 * strangers. */
#include "node/proxy/engine/publishers.h"

#include <stdio.h>
#include <stdlib.h>

#include "node/kv/readers.h"
#include "node/proxy/engine/pool.h"
#include "node/route/router_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"
#include "tests/lib/zmtp.h"

enum { SECOND = 1000 };

static struct proxy_world world;
static char opened[128]; /* the feed opened last: "endpoint replay topic" */

/* --- the shell of feeds ---------------------------------------------------------------------- */

static int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)context, (void)feed;
    (void)snprintf(opened, sizeof opened, "%.*s %.*s %.*s", SLICE_ARG(endpoint), SLICE_ARG(replay),
                   SLICE_ARG(topic));
    return ERR_OK;
}

static void on_close(void *context, unsigned feed)
{
    (void)context, (void)feed;
    opened[0] = '\0';
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

/* --- engines --------------------------------------------------------------------------------- */

/* An empty batch. */
static const struct slice batch = {.at = "\x93\xcb\x41\xda\x22\xfa\xa0\x20\x00\x00\x90\x00",
                                   .len = 12};

static struct wire *dial(const char *from)
{
    (void)snprintf(world.peer, sizeof world.peer, "%s", from);
    struct wire *w = proxy_world_connect(&world, PROXY_PORT_EVENTS);
    world.peer[0] = '\0';
    assert_non_null(w);
    return w;
}

static struct wire *engine(const char *from)
{
    struct wire *w = dial(from);
    proxy_world_send(&world, w, slice_of(ZMTP_GREETING, ZMTP_GREETING_BYTES));
    proxy_world_send(&world, w, ZMTP_READY);
    assert_true(!w->closing && slice_ends_with(buf_slice(&w->out), SLICE("\0\1\1")));
    return w;
}

static void publish(struct wire *w, struct slice topic, uint64_t number)
{
    struct buf out = {.at = NULL};
    zmtp_message(&out, topic, number, batch);
    proxy_world_send(&world, w, buf_slice(&out));
    buf_free(&out);
}

static void label(unsigned slot, const char *text)
{
    struct node_labels labels = {0};
    assert_null(node_labels_parse(slice_of_cstr(text), &labels));
    node_router_labels(world.node->router, slot, &labels);
}

static const char *address(unsigned slot)
{
    return world.proxy->engines.pools[slot].address.host;
}

static bool row_of(unsigned slot, struct kv_reading_row *row)
{
    return kv_readers_row(world.node->kv_readers, slot, row);
}

/* Messages read from the replica; -1: no feed. */
static int read_of(unsigned slot)
{
    struct kv_reading_row row;
    return row_of(slot, &row) ? (int)row.stats.feed.messages : -1;
}

/* A figure of /metrics. */
static int figure(const char *name)
{
    struct buf out = {.at = NULL};
    struct prometheus p = prometheus_of(&out, "grapevine_");
    publishers_metrics(world.proxy, &p);
    assert_int_equal(prometheus_finish(&p), 0);
    assert_int_equal(buf_append_char(&out, '\0'), 0);
    char line[128];
    (void)snprintf(line, sizeof line, "\ngrapevine_events_publishers%s ", name);
    const char *at = strstr(out.at, line);
    assert_non_null(at);
    int value = (int)strtol(at + strlen(line), NULL, 10);
    buf_free(&out);
    return value;
}

static int connections(void)
{
    return figure("{state=\"new\"}") + figure("{state=\"ready\"}") + figure("{state=\"read\"}");
}

static int dropped(const char *reason)
{
    char name[64];
    (void)snprintf(name, sizeof name, "_dropped_total{reason=\"%s\"}", reason);
    return figure(name);
}

static int closed(const char *reason)
{
    char name[64];
    (void)snprintf(name, sizeof name, "_closed_total{reason=\"%s\"}", reason);
    return figure(name);
}

static enum node_reads reads(unsigned slot)
{
    return world.node->router->slots[slot].events.reads;
}

static int setup(void **state)
{
    (void)state;
    opened[0] = '\0';
    proxy_world_open(&world,
                     &(struct proxy_world_config){.quiet = true, .replicas = 3, .shape = shape});
    proxy_world_wait(&world, SECOND);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    proxy_world_close(&world);
    assert_string_equal(opened, "");
    return 0;
}

/* --- owners of connections ------------------------------------------------------------------- */

static void a_publisher_is_found_by_its_topic(void **state)
{
    (void)state;
    label(1, "kv-events=listen?topic=kv@b&replay=5657");
    struct wire *w = engine("203.0.113.9"); /* behind a device with another address */
    assert_int_equal(read_of(1), -1);
    assert_int_equal(reads(1), NODE_READS_TURN); /* the next tick looks at the label */
    proxy_world_wait(&world, 2 * SECOND);
    assert_int_equal(reads(1), NODE_READS_NOT);
    publish(w, SLICE("kv@b"), 0);
    assert_int_equal(read_of(1), 0); /* waits for the replay */
    char want[128];
    (void)snprintf(want, sizeof want, " tcp://%s:5657 kv@b", address(1));
    assert_string_equal(opened, want);
    kv_readers_replay_ended(world.node->kv_readers, 0, world.now_ms);
    assert_int_equal(read_of(1), 1);
    struct kv_reading_row row;
    assert_true(row_of(1, &row) && row.speaks);
    assert_string_equal(row.from, "203.0.113.9");
    proxy_world_wait(&world, PROXY_TICK_MS);
    assert_true(node_router_events_are_live(world.node->router, 1));
    assert_int_equal(reads(1), NODE_READS_AHEAD);
    publish(w, SLICE("kv@b"), 1);
    assert_int_equal(read_of(1), 2);
    assert_int_equal(figure("{state=\"read\"}"), 1);
}

static void a_publisher_is_found_by_its_address(void **state)
{
    (void)state;
    char mapped[64];
    (void)snprintf(mapped, sizeof mapped, "::ffff:%s", address(0));
    struct wire *w = engine(mapped);
    publish(w, SLICE(""), 0);
    assert_int_equal(read_of(0), 1);
    assert_string_equal(opened, "  "); /* no replay, and nothing to dial */
    publish(w, SLICE(""), 1);
    assert_int_equal(read_of(0), 2);
}

static void messages_of_unknown_publishers_are_dropped(void **state)
{
    (void)state;
    label(1, "kv-events=listen?topic=kv@b");
    label(2, "kv-events=tcp://10.0.0.3:5557");
    struct wire *unknown = engine("203.0.113.9"), *topic = engine(address(0));
    struct wire *labelled = engine(address(1)), *dialled = engine(address(2));
    publish(unknown, SLICE(""), 0);
    publish(topic, SLICE("kv@x"), 0); /* a topic counts, not the address */
    publish(labelled, SLICE(""), 0);  /* the replica has a topic */
    publish(dialled, SLICE(""), 0);
    assert_true(dropped("address") == 3 && dropped("topic") == 1);
    for (unsigned slot = 0; slot < 3; slot++)
        assert_int_equal(read_of(slot), -1);
    label(0, "kv-events=listen?topic=kv@x"); /* noticed at the next look */
    proxy_world_wait(&world, 2 * SECOND);
    publish(topic, SLICE("kv@x"), 1);
    assert_int_equal(read_of(0), 1);
    label(0, "kv-events=listen");
    proxy_world_wait(&world, 2 * SECOND);
    publish(topic, SLICE("kv@x"), 2);
    assert_true(dropped("topic") == 2 && reads(0) == NODE_READS_AHEAD);
    proxy_world_wait(&world, 2 * SECOND);
    assert_int_equal(reads(0), NODE_READS_NOT);
}

/* The label turns the replica's events off: the messages are recognised, and not read. */
static void events_turned_off_are_not_read(void **state)
{
    (void)state;
    label(0, "kv-events=off");
    struct wire *w = engine(address(0));
    publish(w, SLICE(""), 0);
    assert_true(dropped("unread") == 1 && dropped("address") == 0 && read_of(0) == -1);
    label(0, "");
    proxy_world_wait(&world, 2 * SECOND);
    publish(w, SLICE(""), 1);
    assert_int_equal(read_of(0), 1);
}

static unsigned said, said_full, said_refused;

static void on_event(void *context, enum log_level level, const char *event,
                     const struct log_field *fields, unsigned count, uint64_t now_ms)
{
    (void)context, (void)level, (void)now_ms;
    for (unsigned i = 0; i < count && strcmp(event, "kv_events_full") == 0; i++) {
        said_full += i == 0;
        if (strcmp(fields[i].name, "refused") == 0)
            said_refused += (unsigned)fields[i].value.u;
    }
    said += strcmp(event, "kv_events_dropped") == 0;
}

/* Among many connections, the log names a connection every few seconds, and each only once. */
static void unknown_publishers_are_logged_once(void **state)
{
    (void)state;
    said = 0;
    world.log.tap = on_event;
    struct wire *one = engine("203.0.113.9"), *other = engine("203.0.113.10");
    publish(one, SLICE(""), 0);
    publish(other, SLICE(""), 0);
    assert_int_equal(said, 1);
    for (unsigned i = 1; i < 30; i++) {
        proxy_world_wait(&world, 2 * SECOND);
        publish(one, SLICE(""), i);
        publish(other, SLICE(""), i);
    }
    assert_true(said == 2 && dropped("address") == 60);
    world.log.tap = NULL;
}

/* If two replicas match, neither is taken. */
static void an_ambiguous_publisher_is_not_read(void **state)
{
    (void)state;
    struct node_address *other = &world.proxy->engines.pools[1].address;
    (void)snprintf(other->host, sizeof other->host, "%s", address(0));
    struct wire *w = engine(address(0));
    publish(w, SLICE(""), 0);
    assert_true(dropped("several") == 1 && read_of(0) == -1 && read_of(1) == -1);
    label(1, "kv-events=listen?topic=kv@b");
    proxy_world_wait(&world, 2 * SECOND);
    publish(w, SLICE(""), 1);
    assert_true(dropped("several") == 1 && read_of(0) == 1);
    label(0, "kv-events=listen?topic=kv@b");
    struct wire *named = engine(address(0));
    publish(named, SLICE("kv@b"), 0);
    assert_int_equal(dropped("several"), 2);
}

static void a_connection_for_several_ranks_is_not_read(void **state)
{
    (void)state;
    label(0, "ranks=2#kv-events=listen?topic=kv@a");
    proxy_world_wait(&world, 2 * SECOND);
    publish(engine(address(0)), SLICE("kv@a"), 0);
    assert_int_equal(dropped("ranks"), 1);
}

static void the_first_connection_is_read(void **state)
{
    (void)state;
    struct wire *first = engine(address(0)), *second = engine(address(0));
    publish(first, SLICE(""), 0);
    publish(second, SLICE(""), 5);
    assert_true(dropped("taken") == 1 && read_of(0) == 1);
    proxy_world_end(&world, first, true);
    struct kv_reading_row row;
    assert_true(row_of(0, &row) && row.reading == KV_READING_AWAY);
    publish(second, SLICE(""), 1); /* at once */
    assert_true(row_of(0, &row) && row.reading == KV_READING_LIVE);
    assert_true(row.stats.feed.messages == 2 && row.connects == 2 && row.stats.feed.missed == 0);
}

/* The slot number may soon belong to another replica. */
static void a_forgotten_replicas_connection_is_not_read(void **state)
{
    (void)state;
    struct wire *w = engine(address(0));
    publish(w, SLICE(""), 0);
    proxy_world_wish(&world, 0, false);
    proxy_world_wait(&world, 2 * SECOND);
    assert_int_equal(read_of(0), -1);
    assert_int_equal(figure("{state=\"read\"}"), 1);
    assert_true(proxy_replica_forgotten(world.proxy, 0));
    assert_int_equal(figure("{state=\"read\"}"), 0);
    publish(w, SLICE(""), 1);
    assert_int_equal(dropped("address"), 1);
}

/* --- the reading router ---------------------------------------------------------------------- */

/* The feed's knowledge is kept for a minute; the other routers no longer rely on this router. */
static void a_closed_connection_keeps_the_feed_for_a_minute(void **state)
{
    (void)state;
    struct wire *w = engine(address(0));
    publish(w, SLICE(""), 0);
    proxy_world_wait(&world, 2 * SECOND);
    assert_int_equal(reads(0), NODE_READS_AHEAD);
    proxy_world_end(&world, w, false);
    proxy_world_wait(&world, 2 * SECOND);
    assert_int_equal(reads(0), NODE_READS_NOT);
    assert_false(node_router_events_are_live(world.node->router, 0));
    assert_int_equal(read_of(0), 1);
    w = engine(address(0));
    publish(w, SLICE(""), 2); /* another router read message 1 */
    struct kv_reading_row row;
    assert_true(row_of(0, &row));
    assert_true(row.stats.feed.gaps == 1 && row.stats.feed.missed == 1 && !row.stats.tree.whole);
    proxy_world_end(&world, w, false);
    proxy_world_wait(&world, 70 * SECOND);
    assert_int_equal(read_of(0), -1);
}

/* By the turns this router goes before all routers without a connection. */
static void routers_without_a_connection_do_not_count(void **state)
{
    (void)state;
    struct node_replica *k = &world.node->router->replicas[0];
    struct wire *w = engine(address(0));
    k->turn_events = (struct node_turn){.others = 3, .ahead = 1}; /* another router has it, too */
    publish(w, SLICE(""), 0);
    struct kv_reading_row row;
    assert_true(row_of(0, &row) && row.role == KV_ROLE_STANDS_BY && !row.speaks);
    k->turn_events.ahead = 0;
    proxy_world_wait(&world, 2 * SECOND);
    assert_true(row_of(0, &row) && row.speaks);
    world.options.kv_events = NODE_KV_EVENTS_OFF;
    proxy_world_wait(&world, 2 * SECOND);
    assert_true(read_of(0) == -1 && reads(0) == NODE_READS_NOT);
    publish(w, SLICE(""), 1);
    assert_int_equal(dropped("unread"), 1);
    world.options.kv_events = NODE_KV_EVENTS_AUTO;
    proxy_world_wait(&world, 2 * SECOND);
    publish(w, SLICE(""), 2);
    assert_true(row_of(0, &row) && row.reading == KV_READING_LIVE);
}

/* --- strangers ------------------------------------------------------------------------------- */

static void other_protocols_are_refused(void **state)
{
    (void)state;
    struct wire *web = dial("203.0.113.9"), *silent = dial("203.0.113.9");
    proxy_world_send(&world, web, SLICE("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    proxy_world_send(&world, web, SLICE("Accept: text/html,application/xhtml+xml\r\n"));
    assert_true(web->reset && closed("protocol") == 1);
    proxy_world_wait(&world, PUBLISHERS_HANDSHAKE_MS - 100);
    assert_false(silent->closing);
    proxy_world_wait(&world, 200);
    assert_true(silent->reset && closed("handshake") == 1);
    struct wire *large = engine("203.0.113.9");
    proxy_world_send(&world, large, SLICE("\2\0\0\0\0\1\0\0\1"));
    assert_true(large->reset && closed("size") == 1);
    struct wire *fickle = engine(address(0));
    publish(fickle, SLICE(""), 0);
    publish(fickle, SLICE("other"), 1);
    assert_true(fickle->reset && closed("topic") == 1);
    struct wire *odd = engine(address(0));
    proxy_world_send(&world, odd, SLICE("\0\1x"));
    assert_true(!odd->closing && dropped("odd") == 1);
    publish(odd, SLICE("a\nb"), 0);
    assert_true(!odd->closing && dropped("odd") == 2);
    struct wire *deaf = dial(address(0));
    proxy_world_room(&world, deaf, 0);
    proxy_world_send(&world, deaf, slice_of(ZMTP_GREETING, ZMTP_GREETING_BYTES));
    assert_true(deaf->reset && closed("write") == 1);
    assert_int_equal(connections(), 1);
}

static void connections_are_limited(void **state)
{
    (void)state;
    said_full = said_refused = 0;
    world.log.tap = on_event;
    for (unsigned i = 0; i < PUBLISHERS_MAX; i++)
        assert_false(engine("203.0.113.9")->closing);
    struct wire *more = dial(address(0));
    assert_true(more->reset && closed("limit") == 1 && connections() == PUBLISHERS_MAX);
    assert_true(said_full == 1 && said_refused == 1);
    for (unsigned i = 0; i < 3; i++)
        assert_true(dial(address(0))->reset);
    assert_int_equal(said_full, 1);
    proxy_world_wait(&world, PUBLISHERS_LOG_MS);
    assert_true(dial(address(0))->reset);
    assert_true(said_full == 2 && said_refused == 5); /* including unnamed connections */
    world.log.tap = NULL;
    proxy_world_end(&world, &world.wires[0], false);
    assert_false(dial(address(0))->closing);
}

/* After sending too much, a connection is read again in the next second. */
static void bytes_per_second_are_limited(void **state)
{
    (void)state;
    enum { LEN = 16 << 20 };
    struct wire *w = engine(address(0));
    char *bytes = calloc(1, LEN);
    assert_non_null(bytes);
    struct buf out = {.at = NULL};
    zmtp_message(&out, SLICE(""), 0, slice_of(bytes, LEN));
    free(bytes);
    for (unsigned i = 0; i < 3; i++)
        proxy_world_send(&world, w, buf_slice(&out));
    assert_true(!w->reading && figure("_paused_total") == 1 && w->in.len > 0);
    proxy_world_wait(&world, 2 * SECOND);
    assert_true(w->reading && w->in.len == 0 && !w->closing);
    buf_free(&out);
}

/* Among messages without an end, the largest is dropped to make room. */
static void memory_is_limited_for_all_connections(void **state)
{
    (void)state;
    enum { LEN = 15 << 20, COUNT = 6 };
    char *bytes = calloc(1, LEN);
    struct wire *w[COUNT];
    assert_non_null(bytes);
    for (unsigned i = 0; i < COUNT; i++)
        w[i] = engine("203.0.113.9");
    struct wire *small = engine(address(0));
    for (unsigned i = 0; i < COUNT; i++) {
        proxy_world_send(&world, w[i],
                         SLICE("\1\0\1\x08"
                               "12345678\2\0\0\0\0\1\0\0\0"));
        proxy_world_send(&world, w[i], slice_of(bytes, LEN));
        assert_in_range(figure("_bytes"), 0, PUBLISHERS_MEMORY_MAX);
    }
    assert_true(closed("memory") >= 1 && closed("memory") < COUNT);
    publish(small, SLICE(""), 0);
    assert_int_equal(read_of(0), 1);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_publisher_is_found_by_its_topic, setup, teardown),
        cmocka_unit_test_setup_teardown(a_publisher_is_found_by_its_address, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_of_unknown_publishers_are_dropped, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(events_turned_off_are_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(unknown_publishers_are_logged_once, setup, teardown),
        cmocka_unit_test_setup_teardown(an_ambiguous_publisher_is_not_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_connection_for_several_ranks_is_not_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_first_connection_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(a_forgotten_replicas_connection_is_not_read, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_closed_connection_keeps_the_feed_for_a_minute, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(routers_without_a_connection_do_not_count, setup, teardown),
        cmocka_unit_test_setup_teardown(other_protocols_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(connections_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_per_second_are_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_limited_for_all_connections, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
