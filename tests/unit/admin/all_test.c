/* GET /events?all=1 at the only router of a cluster: the answer has a part per router. */
#include "node/admin/events.h"

#include <jansson.h>
#include <stdio.h>

#include "base/wire.h"
#include "node/admin/admin_internal.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

static void open_world(bool joins)
{
    proxy_world_open(&world, &(struct proxy_world_config){
                                 .replicas = 2, .quiet = true, .joins = joins, .seed = 1});
}

/* Checks the answer's status and returns the JSON. */
static json_t *ask(const char *target, int wanted)
{
    char request[256];
    int len =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", target);
    struct wire *w = proxy_world_connect(&world, PROXY_PORT_ADMIN);
    assert_non_null(w);
    proxy_world_send(&world, w, slice_of(request, (size_t)len));
    proxy_world_wait(&world, 10);
    int status = 0;
    assert_true(buf_append_char(&w->out, '\0') == 0);
    assert_int_equal(sscanf(w->out.at, "HTTP/1.1 %d", &status), 1);
    assert_int_equal(status, wanted);
    const char *body = strstr(w->out.at, "\r\n\r\n");
    assert_non_null(body);
    json_t *json = json_loads(body + 4, 0, NULL);
    assert_non_null(json);
    return json;
}

static void add(const char *name, const char *text, uint64_t unix_ms)
{
    (void)admin_events_add(world.node->admin->events, ADMIN_EVENT_CONFIG, name, SLICE("it"), text,
                           unix_ms);
}

/* The only router's events, from the answer. */
static json_t *own_events(json_t *answer)
{
    json_t *nodes = json_object_get(answer, "nodes");
    assert_int_equal(json_object_size(nodes), 1);
    json_t *own = json_object_iter_value(json_object_iter(nodes));
    json_t *list = json_object_get(own, "events");
    assert_true(json_is_array(list));
    return list;
}

static const char *text_at(json_t *list, size_t i)
{
    return json_string_value(json_object_get(json_array_get(list, i), "text"));
}

static void events_are_selected_by_number_or_age(void **state)
{
    (void)state;
    open_world(true);
    uint64_t now_ms = admin_unix_ms(world.node->admin);
    add("a", "long ago", now_ms - 100000);
    add("b", "lately", now_ms - 400);
    add("c", "just now", now_ms);
    json_t *answer = ask("/events?all=1&n=2", 200);
    assert_int_equal(json_array_size(own_events(answer)), 2);
    assert_string_equal(text_at(own_events(answer), 0), "lately");
    assert_string_equal(text_at(own_events(answer), 1), "just now");
    json_decref(answer);
    answer = ask("/events?all=1&within=50000", 200);
    unsigned found = 0;
    for (size_t i = 0; i < json_array_size(own_events(answer)); i++) {
        assert_string_not_equal(text_at(own_events(answer), i), "long ago");
        found += strcmp(text_at(own_events(answer), i), "lately") == 0;
    }
    assert_int_equal(found, 1);
    json_decref(answer);
    json_decref(ask("/events?all=1&n=257", 400));
    json_decref(ask("/events?all=1&within=x", 400));
    proxy_world_close(&world);
}

static void a_single_router_ignores_all(void **state)
{
    (void)state;
    open_world(false);
    json_t *answer = ask("/events?all=1&n=1", 200);
    assert_true(json_is_array(json_object_get(answer, "events")));
    json_decref(answer);
    proxy_world_close(&world);
}

/* If the texts are too long as JSON, the oldest are left out. */
static void an_answer_is_limited_in_size(void **state)
{
    (void)state;
    char text[ADMIN_EVENT_TEXT_BYTES], name[ADMIN_EVENTS_MAX][8];
    uint8_t request[2 * WIRE_VARINT_MAX];
    struct buf out;
    open_world(true);
    memset(text, '\1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (unsigned i = 0; i < ADMIN_EVENTS_MAX; i++) {
        (void)snprintf(name[i], sizeof name[i], "e%u", i);
        add(name[i], text, 1);
    }
    struct wire_writer w = wire_writer_of(request, sizeof request);
    wire_write_varint(&w, ADMIN_EVENTS_MAX);
    wire_write_varint(&w, 0);
    struct slice asked = slice_of((const char *)request, wire_written(&w));
    buf_init(&out, 0);
    assert_int_equal(admin_events_answer(world.node->admin, asked, &out), 0);
    assert_in_range(out.len, ADMIN_EVENTS_SHARED_BYTES / 4, ADMIN_EVENTS_SHARED_BYTES);
    json_t *told = json_loadb(out.at, out.len, 0, NULL);
    json_t *list = json_object_get(told, "events");
    assert_in_range(json_array_size(list), 1, ADMIN_EVENTS_MAX - 1);
    json_t *last = json_array_get(list, json_array_size(list) - 1);
    assert_string_equal(json_string_value(json_object_get(last, "event")), "e255");
    json_decref(told);
    buf_free(&out);
    assert_int_equal(admin_events_answer(world.node->admin, slice_of("", 0), &out), ERR_SYNTAX);
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_selected_by_number_or_age),
        cmocka_unit_test(a_single_router_ignores_all),
        cmocka_unit_test(an_answer_is_limited_in_size),
    };
    return cmocka_run_group_tests_name("events of all", tests, NULL, NULL);
}
