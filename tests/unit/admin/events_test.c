#include "node/admin/events.h"

#include <jansson.h>
#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "base/log.h"
#include "tests/lib/test.h"

static struct admin_events *events;

static int begin(void **state)
{
    (void)state;
    return admin_events_create(&events);
}

static int end(void **state)
{
    (void)state;
    admin_events_check(events);
    admin_events_destroy(events);
    return 0;
}

static json_t *read(enum node_decisions_order order, uint64_t beyond, unsigned count)
{
    struct buf out;
    buf_init(&out, 0);
    struct json_writer w = json_writer_of(&out);
    struct node_decisions_query q = {.order = order, .beyond = beyond, .count = count};
    (void)admin_events_write(events, &q, &w);
    assert_int_equal(json_writer_finish(&w), 0);
    json_t *array = json_loadb(out.at, out.len, 0, NULL);
    assert_non_null(array);
    buf_free(&out);
    return array;
}

static void expect_last(const char *kind, const char *about, const char *text)
{
    json_t *array = read(NODE_DECISIONS_LAST, 0, 1);
    const json_t *e = json_array_get(array, 0);
    assert_string_equal(json_string_value(json_object_get(e, "kind")), kind);
    assert_string_equal(json_string_value(json_object_get(e, "about")), about);
    assert_string_equal(json_string_value(json_object_get(e, "text")), text);
    json_decref(array);
}

static int64_t of_last(const char *key)
{
    json_t *array = read(NODE_DECISIONS_LAST, 0, 1);
    int64_t value = json_integer_value(json_object_get(json_array_get(array, 0), key));
    json_decref(array);
    return value;
}

static uint64_t clock_now;
static unsigned lines;

static uint64_t clock_ms(void *context)
{
    (void)context;
    return clock_now;
}

static void count_line(void *context, struct slice line)
{
    (void)context, (void)line;
    lines++;
}

/* The list also keeps events dropped by the log because of their level or a flood. */
static void log_events_become_sentences(void **state)
{
    (void)state;
    struct log log;
    log_init(&log, count_line, clock_ms, NULL);
    log.level = LOG_ERROR;
    log.tap = admin_events_tap;
    log.tap_context = events;
    clock_now = 5000;
    lines = 0;
    log_event(&log, LOG_WARN, "member_dead", LOG_CSTR("member", "r2"));
    expect_last("death", "r2",
                "Router r2 was marked dead: nothing was heard of it. Its load no longer counts.");
    log_event(&log, LOG_INFO, "discovered", LOG_CSTR("source", "dns x:1"), LOG_UINT("added", 1),
              LOG_UINT("gone", 2), LOG_UINT("draining", 1));
    expect_last("replica", "dns x:1", "Source dns x:1: 1 new replica, 2 gone, 1 draining.");
    log_event(&log, LOG_INFO, "discovered", LOG_CSTR("source", "dns x:1"), LOG_UINT("added", 0),
              LOG_UINT("gone", 1), LOG_UINT("draining", 0));
    expect_last("replica", "dns x:1", "Source dns x:1: 0 new replicas, 1 gone, 0 draining.");
    log_event(&log, LOG_WARN, "config_refused", LOG_CSTR("error", "did you mean queue-timeout?"));
    expect_last("config", "",
                "The settings are refused, and nothing changed: did you mean queue-timeout?");
    log_event(&log, LOG_INFO, "cluster_ready", LOG_CSTR("from", "r1"), LOG_INT("ms", 4));
    expect_last("join", "r1", "This router is ready: it copied the state of r1.");
    log_event(&log, LOG_WARN, "upstream_failed", LOG_CSTR("id", "secret-id"),
              LOG_CSTR("replica", "h:1"), LOG_CSTR("what", "broken"), LOG_CSTR("then", "moved"));
    expect_last("retry", "h:1", "Requests failed at replica h:1 (broken) and went to another.");
    log_event(&log, LOG_WARN, "upstream_failed", LOG_CSTR("replica", "h:1"),
              LOG_CSTR("what", "broken"), LOG_CSTR("then", "error"));
    expect_last("trouble", "h:1",
                "Requests failed at replica h:1 (broken), and no other was asked: their clients "
                "got an error, or a cut answer.");
    log_event(&log, LOG_WARN, "kv_events_dropped", LOG_CSTR("from", "10.0.0.1"),
              LOG_CSTR("topic", ""), LOG_CSTR("replica", ""), LOG_CSTR("reason", "no replica"),
              LOG_CSTR("want", ""));
    expect_last("trouble", "", "KV-cache events from 10.0.0.1 are dropped: no replica.");
    log_event(&log, LOG_INFO, "kv_events_lost", LOG_CSTR("replica", "h:1"), LOG_CSTR("from", ""),
              LOG_CSTR("state", "away"));
    expect_last("replica", "h:1",
                "This router lost the KV-cache events of replica h:1: unless another router reads "
                "them, the replica's cache is inferred.");
    log_event(&log, LOG_INFO, "config_read", LOG_CSTR("file", "a.yaml"), LOG_UINT("changed", 2));
    expect_last("config", "", "config read: file a.yaml, changed 2");
    log_event(&log, LOG_INFO, "setting_changed", LOG_CSTR("setting", "policy"),
              LOG_CSTR("before", "random"), LOG_CSTR("now", "session"));
    expect_last("config", "", "policy is now session, before: random.");
    log_event(&log, LOG_WARN, "tls_handshake_failed", LOG_CSTR("port_of", "admin"),
              LOG_CSTR("from", ""), LOG_CSTR("reason", "alert"));
    expect_last("trouble", "", "A TLS handshake failed at the admin port: alert.");
    /* All routers see a drain, but only the receiver of the request has the event. */
    log_event(&log, LOG_INFO, "replica_drain", LOG_CSTR("replica", "h:1"),
              LOG_CSTR("wish", "drained"), LOG_CSTR("from", "10.0.0.9"));
    expect_last("drain", "h:1",
                "Replica h:1 drained by an operator, at this router, from 10.0.0.9.");
    log_event(&log, LOG_INFO, "replica_wish", LOG_CSTR("replica", "h:1"), LOG_CSTR("wish", "added"),
              LOG_CSTR("from", "::1"));
    expect_last("replica", "h:1", "Replica h:1 added by an operator, at this router, from ::1.");
    log_event(&log, LOG_WARN, "admin_refused", LOG_CSTR("from", "10.0.0.9"),
              LOG_CSTR("path", "/drain"));
    expect_last("trouble", "10.0.0.9", "10.0.0.9 was refused: it may not call /drain.");
    assert_int_equal(lines, 0);
    uint64_t before = admin_events_newest(events);
    log_event(&log, LOG_INFO, "request", LOG_CSTR("id", "x"));          /* no news */
    log_event(&log, LOG_DEBUG, "member_left", LOG_CSTR("member", "x")); /* not heard */
    assert_int_equal(admin_events_newest(events), before);
}

static void repeated_events_are_counted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        (void)admin_events_add(events, ADMIN_EVENT_RETRY, "a", SLICE("h"), "again", 1000 + i);
    assert_int_equal(admin_events_newest(events), 1);
    assert_int_equal(of_last("count"), 100);
    assert_int_equal(of_last("time_ms"), 1000);
    assert_int_equal(of_last("last_ms"), 1099);
    assert_int_equal(admin_events_change(events), 100);
    (void)admin_events_add(events, ADMIN_EVENT_RETRY, "a", SLICE("h"), "other", 1100);
    (void)admin_events_add(events, ADMIN_EVENT_RETRY, "a", SLICE("h"), "again", 1200);
    assert_int_equal(admin_events_newest(events), 3); /* a change in between is an event */
    (void)admin_events_add(events, ADMIN_EVENT_RETRY, "a", SLICE("h"), "again",
                           1201 + ADMIN_EVENT_AGAIN_MS);
    assert_int_equal(admin_events_newest(events), 4); /* long ago */
}

static void the_ring_is_bounded_and_read_by_number_or_change(void **state)
{
    (void)state;
    char text[32];
    for (unsigned i = 1; i <= ADMIN_EVENTS_MAX + 10; i++) {
        (void)snprintf(text, sizeof text, "event %u", i);
        (void)admin_events_add(events, ADMIN_EVENT_CONFIG, "e", slice_of("", 0), text, i);
    }
    json_t *all = read(NODE_DECISIONS_AFTER, 0, 10000);
    assert_int_equal(json_array_size(all), ADMIN_EVENTS_MAX);
    assert_string_equal(json_string_value(json_object_get(json_array_get(all, 0), "text")),
                        "event 11");
    json_decref(all);
    json_t *few = read(NODE_DECISIONS_AFTER, 20, 2);
    assert_int_equal(json_array_size(few), 2);
    assert_int_equal(json_integer_value(json_object_get(json_array_get(few, 0), "id")), 21);
    json_decref(few);
    static const uint64_t ids[] = {20, 10, ADMIN_EVENTS_MAX + 11, 0, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) { /* only the first event is kept */
        json_t *one = read(NODE_DECISIONS_ONE, ids[i], 5);
        assert_int_equal(json_array_size(one), i == 0);
        json_decref(one);
    }
}

/* Long texts are cut between characters, and are still JSON. */
static void long_texts_are_cut(void **state)
{
    (void)state;
    char text[1000] = "x";
    for (size_t i = 1; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    text[sizeof text - 1] = '\0';
    (void)admin_events_add(events, ADMIN_EVENT_KEY, "e", slice_of_cstr(text), text, 1);
    json_t *array = read(NODE_DECISIONS_LAST, 0, 1);
    const char *cut = json_string_value(json_object_get(json_array_get(array, 0), "text"));
    assert_int_equal(strlen(cut), ADMIN_EVENT_TEXT_BYTES - 1);
    assert_null(strstr(cut, "\xef\xbf\xbd"));
    json_decref(array);
    for (unsigned k = 0; k < ADMIN_EVENT_KINDS; k++)
        assert_non_null(admin_event_kind_text((enum admin_event_kind)k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(log_events_become_sentences, begin, end),
        cmocka_unit_test_setup_teardown(repeated_events_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(the_ring_is_bounded_and_read_by_number_or_change, begin,
                                        end),
        cmocka_unit_test_setup_teardown(long_texts_are_cut, begin, end),
    };
    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
