/* The use and limits of client keys: at a single router, and shared with other routers. */
#include "node/access/access_internal.h"

#include <stdio.h>

#include "base/check.h"
#include "tests/lib/test.h"

enum { NOW_MS = 60000 * 100 }; /* a minute begins */

static struct access_table *table_of(const char *const *lines)
{
    struct buf text = {0};
    for (; *lines != NULL; lines++) {
        struct slice rest = slice_of_cstr(*lines), name = slice_cut(&rest, ' ');
        struct access_line line = {.name = name, .digest = access_digest_of(name)};
        assert_int_equal(access_line_write(&text, &line), 0);
        text.len--;
        assert_int_equal(buf_printf(&text, " %.*s\n", SLICE_ARG(rest)), 0);
    }
    struct access_table *t;
    char message[ACCESS_MESSAGE_BYTES];
    assert_int_equal(access_table_create(&t, buf_slice(&text), message), 0);
    buf_free(&text);
    return t;
}

#define TABLE(...) table_of((const char *const[]){__VA_ARGS__, NULL})

static struct access *access_of(struct access_table *t)
{
    struct access *a;
    assert_int_equal(access_create(&a), 0);
    access_take(a, t);
    access_check(a);
    return a;
}

static struct access_key *key(const struct access *a, const char *name)
{
    struct access_key *k = access_find(a, slice_of_cstr(name));
    assert_non_null(k);
    return k;
}

static enum access_verdict ask(struct access *a, const char *name, uint64_t now_ms, unsigned *wait)
{
    return access_begin(a, key(a, name), now_ms, wait);
}

/* Begins and ends a request. */
static bool one(struct access *a, const char *name, uint64_t now_ms)
{
    unsigned wait;
    if (ask(a, name, now_ms, &wait) != ACCESS_GOOD)
        return false;
    access_end(a, key(a, name));
    access_check(a);
    return true;
}

static void no_keys_match_without_a_key_file(void **state)
{
    (void)state;
    struct access *a;
    assert_int_equal(access_create(&a), 0);
    assert_null(access_find(a, SLICE("x")));
    access_check(a);
    access_destroy(a);
}

static void requests_a_minute(void **state)
{
    (void)state;
    unsigned wait = 0;
    struct access *a = access_of(TABLE("alice requests-per-minute=10", "bob"));
    for (unsigned i = 0; i < 10; i++)
        assert_true(one(a, "alice", NOW_MS));
    assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_OVER_REQUESTS);
    assert_in_range(wait, 65, 67); /* a tenth of the requests must fall out of the minute first */
    assert_int_equal(ask(a, "alice", NOW_MS + 59000, &wait), ACCESS_OVER_REQUESTS);
    assert_in_range(wait, 7, 8);
    assert_false(one(a, "alice", NOW_MS + 60000));
    assert_true(one(a, "alice", NOW_MS + 67000));
    assert_false(one(a, "alice", NOW_MS + 67000));
    assert_true(one(a, "alice", NOW_MS + 90000));
    for (unsigned i = 0; i < 100; i++)
        assert_true(one(a, "bob", NOW_MS));
    assert_int_equal(key(a, "alice")->use->requests, 12);
    assert_int_equal(key(a, "alice")->use->refused[ACCESS_OVER_REQUESTS], 4);
    access_destroy(a);
}

/* A steady pace just below the limit is let through; twice the pace is not. */
static void a_steady_pace(void **state)
{
    (void)state;
    for (unsigned times = 1; times <= 2; times++) {
        struct access *a = access_of(TABLE("alice requests-per-minute=60"));
        unsigned good = 0, all = 0;
        for (uint64_t ms = 0; ms < 600000; ms += 1100 / times, all++)
            good += one(a, "alice", NOW_MS + ms);
        assert_in_range(good, times == 1 ? all : 580, times == 1 ? all : 660);
        access_destroy(a);
    }
}

static void tokens_a_minute(void **state)
{
    (void)state;
    unsigned wait = 0;
    struct access *a = access_of(TABLE("alice tokens-per-minute=1000"));
    const struct access_tokens tokens = {.prompt = 900, .cached = 800, .completion = 100};
    assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_GOOD);
    assert_true(one(a, "alice", NOW_MS)); /* no token is used yet */
    access_tokens(a, key(a, "alice"), &tokens, NOW_MS);
    access_end(a, key(a, "alice"));
    assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_OVER_TOKENS);
    assert_in_range(wait, 60, 61);
    assert_false(one(a, "alice", NOW_MS + 59999));
    assert_true(one(a, "alice", NOW_MS + 61000));
    const struct access_use *u = key(a, "alice")->use;
    assert_int_equal(u->prompt_tokens + u->cached_tokens + u->completion_tokens, 1800);
    access_destroy(a);
}

static void requests_in_flight_are_limited(void **state)
{
    (void)state;
    unsigned wait = 0;
    struct access *a = access_of(TABLE("alice in-flight=2"));
    assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_GOOD);
    assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_GOOD);
    assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_OVER_IN_FLIGHT);
    assert_int_equal(wait, 1);
    access_end(a, key(a, "alice"));
    assert_true(one(a, "alice", NOW_MS));
    access_end(a, key(a, "alice"));
    access_destroy(a);
}

/* A request outlives the key. A key name in both the old and the new file keeps the counts. */
static void a_new_key_file_keeps_counts_and_open_requests(void **state)
{
    (void)state;
    unsigned wait = 0;
    struct access *a = access_of(TABLE("alice requests-per-minute=2", "bob"));
    struct access_key *alice = key(a, "alice"), *bob = key(a, "bob");
    access_key_hold(alice);
    access_key_hold(bob);
    assert_int_equal(access_begin(a, alice, NOW_MS, &wait), ACCESS_GOOD);
    assert_int_equal(access_begin(a, bob, NOW_MS, &wait), ACCESS_GOOD);
    assert_int_equal(a->shown, 2);
    access_take(a, TABLE("carol", "alice requests-per-minute=1"));
    assert_int_equal(a->shown, 1);
    access_check(a);
    assert_null(access_find(a, SLICE("bob")));
    assert_int_equal(key(a, "alice")->use->in_flight, 1);
    assert_false(one(a, "alice", NOW_MS));
    access_end(a, alice);
    access_end(a, bob);
    access_key_drop(alice);
    access_key_drop(bob);
    assert_int_equal(key(a, "alice")->use->in_flight, 0);
    access_check(a);
    access_destroy(a);
}

/* --- several routers -------------------------------------------------------------------------- */

/* Delivers the news of `from` to `to`. */
static unsigned publish(struct access *from, uint64_t router, struct access *to, uint64_t now_ms)
{
    struct buf news = {0};
    unsigned messages = 0;
    for (;; messages++) {
        buf_clear(&news);
        assert_int_equal(access_news_write(from, now_ms, &news), 0);
        if (news.len == 0)
            break;
        assert_true(news.len <= ACCESS_NEWS_BYTES);
        assert_int_equal(access_news_read(to, router, buf_slice(&news), now_ms), 0);
        access_check(from);
        access_check(to);
    }
    buf_free(&news);
    return messages;
}

static void limits_apply_to_all_routers_together(void **state)
{
    (void)state;
    unsigned wait = 0;
    struct access *a = access_of(TABLE("alice requests-per-minute=10 in-flight=3", "bob"));
    struct access *b = access_of(TABLE("bob", "alice requests-per-minute=10 in-flight=3"));
    for (unsigned i = 0; i < 6; i++)
        assert_true(one(a, "alice", NOW_MS));
    assert_true(one(a, "bob", NOW_MS));
    assert_int_equal(publish(a, 1, b, NOW_MS), 1);
    assert_int_equal(b->rows, 1); /* bob has no limit, so no router publishes his use */
    assert_int_equal(publish(a, 1, b, NOW_MS), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_true(one(b, "alice", NOW_MS));
    assert_false(one(b, "alice", NOW_MS));
    assert_int_equal(publish(b, 2, a, NOW_MS), 1);
    assert_false(one(a, "alice", NOW_MS));
    assert_true(one(a, "alice", NOW_MS + 2 * 60000));
    access_destroy(a);
    access_destroy(b);
    a = access_of(TABLE("alice in-flight=3"));
    b = access_of(TABLE("alice in-flight=3"));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask(a, "alice", NOW_MS, &wait), ACCESS_GOOD);
    (void)publish(a, 1, b, NOW_MS);
    assert_int_equal(ask(b, "alice", NOW_MS, &wait), ACCESS_OVER_IN_FLIGHT);
    /* Routers repeat their news; otherwise the row is gone after 5 s. */
    assert_int_equal(publish(a, 1, b, NOW_MS + 3000), 1);
    assert_int_equal(ask(b, "alice", NOW_MS + 8000, &wait), ACCESS_OVER_IN_FLIGHT);
    assert_int_equal(ask(b, "alice", NOW_MS + 9001, &wait), ACCESS_GOOD);
    for (unsigned i = 0; i < 3; i++)
        access_end(a, key(a, "alice"));
    access_end(b, key(b, "alice"));
    access_destroy(a);
    access_destroy(b);
}

/* Minutes follow cluster time, whatever the routers' own clocks say. */
static void minutes_follow_the_cluster_clock(void **state)
{
    (void)state;
    struct access *a = access_of(TABLE("alice requests-per-minute=5"));
    struct access *b = access_of(TABLE("alice requests-per-minute=5"));
    access_clock(a, 7000000);
    access_clock(b, -1000);
    for (unsigned i = 0; i < 5; i++)
        assert_true(one(a, "alice", NOW_MS - 7000000 + 7000000));
    struct buf news = {0};
    assert_int_equal(access_news_write(a, NOW_MS, &news), 0);
    /* The same moment by the clock of `b`. */
    uint64_t now_b = NOW_MS + 7000000 + 1000;
    assert_int_equal(access_news_read(b, 1, buf_slice(&news), now_b), 0);
    assert_false(one(b, "alice", now_b));
    /* News about a minute far ahead are ignored. */
    assert_int_equal(access_news_read(b, 2, buf_slice(&news), now_b - 180000), 0);
    assert_int_equal(b->rows, 1);
    buf_free(&news);
    access_destroy(a);
    access_destroy(b);
}

/* Old news, repeated news, and a restarted router remove nothing. */
static void published_use_is_accepted_in_any_order(void **state)
{
    (void)state;
    struct access *a = access_of(TABLE("alice requests-per-minute=4"));
    struct access *b = access_of(TABLE("alice requests-per-minute=4"));
    struct buf first = {0}, second = {0};
    assert_true(one(a, "alice", NOW_MS));
    assert_int_equal(access_news_write(a, NOW_MS, &first), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_true(one(a, "alice", NOW_MS));
    assert_int_equal(access_news_write(a, NOW_MS, &second), 0);
    assert_int_equal(access_news_read(b, 1, buf_slice(&second), NOW_MS), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(access_news_read(b, 1, buf_slice(&first), NOW_MS), 0);
    assert_false(one(b, "alice", NOW_MS));
    access_destroy(a);
    a = access_of(TABLE("alice requests-per-minute=4")); /* a restart */
    assert_true(one(a, "alice", NOW_MS + 1000));
    (void)publish(a, 1, b, NOW_MS + 1000);
    assert_false(one(b, "alice", NOW_MS + 1000));
    buf_free(&first);
    buf_free(&second);
    access_destroy(a);
    access_destroy(b);
}

/* The news of many keys take several messages; unused keys are dropped. */
static void use_of_many_keys_is_published_in_several_messages(void **state)
{
    (void)state;
    enum { MANY = 2000 };
    static char lines[MANY][48];
    static const char *table[MANY + 1];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(lines[i], sizeof lines[i], "n%u requests-per-minute=9", i);
        table[i] = lines[i];
    }
    struct access *a = access_of(table_of(table));
    struct access *b = access_of(table_of(table));
    char name[16];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        assert_true(one(a, name, NOW_MS));
    }
    assert_in_range(publish(a, 1, b, NOW_MS), 4, 10);
    assert_int_equal(b->rows, MANY);
    (void)publish(b, 2, a, NOW_MS + 180000);
    assert_int_equal(b->rows, 0);
    access_destroy(a);
    access_destroy(b);
}

/* Bytes of a later version are skipped; malformed bytes are an error. */
static void malformed_use_is_refused_and_later_bytes_skipped(void **state)
{
    (void)state;
    struct access *a = access_of(TABLE("alice requests-per-minute=4"));
    struct access *b = access_of(TABLE("alice requests-per-minute=4"));
    for (unsigned i = 0; i < 4; i++)
        assert_true(one(a, "alice", NOW_MS));
    struct buf news = {0};
    assert_int_equal(access_news_write(a, NOW_MS, &news), 0);
    for (size_t n = 1; n < news.len; n++)
        assert_int_equal(access_news_read(b, 1, slice_of(news.at, n), NOW_MS), ERR_SYNTAX);
    assert_int_equal(b->rows, 0);
    assert_int_equal(buf_append(&news, "later", 5), 0);
    news.at[0] = (char)(news.at[0] + 5);
    assert_int_equal(access_news_read(b, 1, buf_slice(&news), NOW_MS), 0);
    assert_int_equal(b->rows, 1);
    assert_false(one(b, "alice", NOW_MS));
    buf_free(&news);
    access_destroy(a);
    access_destroy(b);
}

static void key_names_in_metrics_are_bounded(void **state)
{
    (void)state;
    enum { MANY = ACCESS_SHOWN_MAX + 2 };
    static char lines[MANY][16];
    static const char *table[MANY + 1];
    for (unsigned i = 0; i < MANY; i++) {
        (void)snprintf(lines[i], sizeof lines[i], "n%u", i);
        table[i] = lines[i];
    }
    struct access *a = access_of(table_of(table));
    for (unsigned i = 0; i < MANY; i++)
        assert_true(one(a, lines[i], NOW_MS));
    struct buf text = {0};
    struct prometheus p = prometheus_of(&text, "grapevine_");
    access_metrics(a, &p);
    assert_int_equal(prometheus_finish(&p), 0);
    assert_int_equal(buf_append_char(&text, '\0'), 0);
    assert_non_null(strstr(text.at, "key_requests_total{key=\"n999\"} 1\n"));
    assert_null(strstr(text.at, "\"n1000\""));
    assert_non_null(strstr(text.at, "key_requests_total{key=\"(others)\"} 2\n"));
    assert_non_null(strstr(text.at, "grapevine_client_keys 1002\n"));
    buf_free(&text);
    access_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_keys_match_without_a_key_file),
        cmocka_unit_test(requests_a_minute),
        cmocka_unit_test(a_steady_pace),
        cmocka_unit_test(tokens_a_minute),
        cmocka_unit_test(requests_in_flight_are_limited),
        cmocka_unit_test(a_new_key_file_keeps_counts_and_open_requests),
        cmocka_unit_test(limits_apply_to_all_routers_together),
        cmocka_unit_test(minutes_follow_the_cluster_clock),
        cmocka_unit_test(published_use_is_accepted_in_any_order),
        cmocka_unit_test(use_of_many_keys_is_published_in_several_messages),
        cmocka_unit_test(malformed_use_is_refused_and_later_bytes_skipped),
        cmocka_unit_test(key_names_in_metrics_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
