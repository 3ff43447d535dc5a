/* Viewers of /live, with a viewer that reads nothing. */
#include "node/admin/live.h"

#include <jansson.h>
#include <stdio.h>

#include "node/cluster/digests.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

static void open_world(void)
{
    static const char *const settings[] = {"client-write-timeout", "5s", NULL};
    proxy_world_open(
        &world, &(struct proxy_world_config){
                    .replicas = 4, .probes = true, .quiet = true, .settings = settings, .seed = 1});
}

static struct wire *view(void)
{
    struct wire *w = proxy_world_connect(&world, PROXY_PORT_ADMIN);
    assert_non_null(w);
    proxy_world_send(&world, w, SLICE("GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    return w;
}

static unsigned count(const struct wire *w, const char *what)
{
    unsigned n = 0;
    const char *end = w->out.at + w->out.len;
    for (const char *p = w->out.at; (p = memmem(p, (size_t)(end - p), what, strlen(what))) != NULL;
         p++)
        n++;
    return n;
}

static unsigned viewers(void)
{
    return admin_live_viewers(world.node->admin->live);
}

static void each_viewer_gets_a_hello_then_equal_frames(void **state)
{
    (void)state;
    open_world();
    struct wire *a = view(), *b = view();
    assert_int_equal(viewers(), 2);
    assert_int_equal(count(a, "event: hello\n"), 1);
    size_t from_a = a->out.len, from_b = b->out.len;
    proxy_world_wait(&world, 5000);
    assert_in_range(count(a, "event: snap\n"), 4, 5);
    assert_true(a->out.len > from_a);
    assert_int_equal(a->out.len - from_a, b->out.len - from_b);
    assert_memory_equal(a->out.at + from_a, b->out.at + from_b, a->out.len - from_a);
    proxy_world_end(&world, a, true);
    assert_int_equal(viewers(), 1);
    assert_int_equal(proxy_stats(world.proxy)->client_gone, 0);
    proxy_world_close(&world); /* while a viewer is connected */
}

/* The last hour in minutes, and the last minutes in seconds. */
static void a_hello_has_the_last_hour(void **state)
{
    (void)state;
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1, .quiet = true, .seed = 1});
    proxy_world_wait(&world, 125000);
    struct wire *w = view();
    const char *end = w->out.at + w->out.len, *data = memmem(w->out.at, w->out.len, "data: ", 6);
    assert_non_null(data);
    const char *stop = memmem(data, (size_t)(end - data), "\n\n", 2);
    assert_non_null(stop);
    json_t *hello = json_loadb(data + 6, (size_t)(stop - data - 6), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(hello, "minutes")), 2);
    const json_t *last = json_array_get(json_object_get(hello, "minutes"), 1);
    assert_in_range(json_integer_value(json_object_get(last, "ms")), 60000, 61100);
    assert_int_equal(
        json_integer_value(json_object_get(last, "time_ms")),
        json_integer_value(json_object_get(json_object_get(hello, "minute"), "time_ms")));
    assert_true(json_array_size(json_object_get(hello, "history")) > 100);
    json_decref(hello);
    proxy_world_close(&world);
}

/* If file descriptors are scarce, viewers once used all of the port's connections. */
static void a_fifth_of_the_port_is_reserved_for_other_calls(void **state)
{
    (void)state;
    proxy_world_open(
        &world,
        &(struct proxy_world_config){
            .replicas = 1, .probes = true, .quiet = true, .admin_connections = 10, .seed = 1});
    for (unsigned i = 0; i < 8; i++)
        (void)view();
    assert_int_equal(viewers(), 8);
    assert_int_equal(count(view(), "8 pages already show this router"), 1);
    assert_int_equal(viewers(), 8);
    proxy_world_close(&world);
}

/* A viewer's backlog is at most a single text. After the configured time the connection is
 * closed. */
static void a_viewer_that_reads_nothing_is_cut(void **state)
{
    (void)state;
    open_world();
    struct wire *fast = view(), *slow = view();
    proxy_world_wait(&world, 2000);
    proxy_world_room(&world, slow, 10);
    size_t before = slow->out.len, most = 0;
    for (unsigned i = 0; i < 40; i++) {
        size_t from = fast->out.len;
        proxy_world_wait(&world, 100);
        most = fast->out.len - from > most ? fast->out.len - from : most;
        assert_true(slow->closing || slow->out.len - before <= 10);
        assert_true(proxy_body_bytes(world.proxy) <= 2 * most + 4 * 65536);
    }
    assert_int_equal(viewers(), 2);
    assert_true(count(fast, "event: snap\n") >= 5);
    proxy_world_wait(&world, 5000);
    assert_true(slow->closing);
    assert_int_equal(viewers(), 1);
    proxy_world_close(&world);
}

static void a_slow_viewer_resumes_with_whole_events(void **state)
{
    (void)state;
    open_world();
    struct wire *slow = view();
    proxy_world_wait(&world, 1000);
    proxy_world_room(&world, slow, 7);
    proxy_world_wait(&world, 3500);
    proxy_world_room(&world, slow, SIZE_MAX);
    proxy_world_wait(&world, 3000);
    assert_int_equal(viewers(), 1);
    /* Each event in the output is whole JSON; skipped frames are missing entirely. */
    const char *p = memmem(slow->out.at, slow->out.len, "event: ", 7);
    const char *end = slow->out.at + slow->out.len;
    unsigned events = 0, gaps = 0;
    int64_t frame = 0;
    while (p != NULL && p < end) {
        const char *data = memmem(p, (size_t)(end - p), "data: ", 6);
        const char *stop = memmem(data, (size_t)(end - data), "\n\n", 2);
        assert_true(data != NULL && stop != NULL);
        json_t *json = json_loadb(data + 6, (size_t)(stop - data - 6), 0, NULL);
        assert_non_null(json);
        if (strncmp(p, "event: snap", 11) == 0) {
            int64_t now = json_integer_value(json_object_get(json, "frame"));
            gaps += frame != 0 && now != frame + 1;
            frame = now;
        }
        json_decref(json);
        events++;
        p = stop + 2;
    }
    assert_true(events >= 5);
    assert_int_equal(gaps, 1);
    proxy_world_close(&world);
}

static void viewers_beyond_the_limit_get_a_reason(void **state)
{
    (void)state;
    open_world();
    for (unsigned i = 0; i < LIVE_VIEWERS_MAX; i++)
        (void)view();
    assert_int_equal(viewers(), LIVE_VIEWERS_MAX);
    struct wire *late = view();
    assert_int_equal(viewers(), LIVE_VIEWERS_MAX);
    assert_int_equal(count(late, "503"), 2); /* the status and the code */
    assert_int_equal(count(late, "pages already show this router"), 1);
    admin_viewers_end(world.node->admin);
    assert_int_equal(viewers(), 0);
    proxy_world_close(&world);
}

static void digests_are_shortened(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 0);
    struct json_writer w = json_writer_of(&out);
    unsigned silent = 7;
    struct slice nodes = SLICE(
        "{\"r\\u0031\":{\"ready\":true,\"floor\":1,\"registry\":\"ab\",\"whole_index\":\"cd\","
        "\"hears\":{\"r2\":40,\"r3\":null},\"index\":[{\"generation\":1,\"digest\":\"x\"}]},"
        "\"r2\":{\"error\":\"timeout\"},\"r3\":7}");
    assert_true(node_digests_brief_write(nodes, true, &silent, &w));
    assert_int_equal(json_writer_finish(&w), 0);
    assert_int_equal(silent, 1);
    assert_slice_equal(
        buf_slice(&out),
        "{\"r1\":{\"ready\":true,\"registry\":\"ab\",\"whole_index\":\"cd\",\"hears\":"
        "{\"r2\":40,\"r3\":null}},\"r2\":{\"error\":\"timeout\"},\"r3\":{}}");
    /* The lists of heard routers are left out: with many routers they do not fit. */
    buf_clear(&out);
    w = json_writer_of(&out);
    assert_true(node_digests_brief_write(nodes, false, &silent, &w));
    assert_int_equal(json_writer_finish(&w), 0);
    assert_int_equal(silent, 1);
    assert_slice_equal(buf_slice(&out),
                       "{\"r1\":{\"ready\":true,\"registry\":\"ab\",\"whole_index\":\"cd\"},"
                       "\"r2\":{\"error\":\"timeout\"},\"r3\":{}}");
    static const struct slice bad[] = {SLICE(""), SLICE("[]"), SLICE("{\"a\":"), SLICE("{\"a\":{"),
                                       SLICE("{\"a\":{\"hears\":{\"b\"")};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        w = json_writer_of(&out);
        assert_false(node_digests_brief_write(bad[i], true, &silent, &w));
        assert_int_equal(json_writer_finish(&w), 0); /* still nested correctly */
    }
    buf_free(&out);
}

/* Two of the longest names stay distinct. A router named "error" does not count as silent. */
static void long_router_names_stay_distinct_in_digests(void **state)
{
    (void)state;
    struct buf in, out;
    buf_init(&in, 0);
    buf_init(&out, 0);
    char name[GOSSIP_NAME_MAX + 1];
    memset(name, 'n', GOSSIP_NAME_MAX);
    name[GOSSIP_NAME_MAX] = '\0';
    name[GOSSIP_NAME_MAX - 1] = '1';
    assert_int_equal(buf_printf(&in, "{\"%s\":{\"hears\":{\"error\":1}},", name), 0);
    name[GOSSIP_NAME_MAX - 1] = '2';
    assert_int_equal(buf_printf(&in, "\"%s\":{\"hears\":{}},\"error\":{}}", name), 0);
    struct json_writer w = json_writer_of(&out);
    unsigned silent;
    assert_true(node_digests_brief_write(buf_slice(&in), true, &silent, &w));
    assert_int_equal(json_writer_finish(&w), 0);
    assert_int_equal(silent, 0);
    assert_int_equal(in.len, out.len);
    assert_memory_equal(in.at, out.at, in.len);
    buf_free(&in);
    buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_viewer_gets_a_hello_then_equal_frames),
        cmocka_unit_test(a_viewer_that_reads_nothing_is_cut),
        cmocka_unit_test(a_slow_viewer_resumes_with_whole_events),
        cmocka_unit_test(viewers_beyond_the_limit_get_a_reason),
        cmocka_unit_test(a_hello_has_the_last_hour),
        cmocka_unit_test(a_fifth_of_the_port_is_reserved_for_other_calls),
        cmocka_unit_test(digests_are_shortened),
        cmocka_unit_test(long_router_names_stay_distinct_in_digests),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
