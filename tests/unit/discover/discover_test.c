/* The results of sources' lists: names used, drained, forgotten. In virtual time. */
#include "node/discover/discover_internal.h"
#include "tests/lib/discover_host.h"

static bool drains(const char *name)
{
    struct node_labels labels;
    bool draining;
    assert_true(discover_told(d, slice_of_cstr(name), &labels, &draining));
    return draining;
}

static void names_are_used_drained_and_forgotten(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "b:1 a:1"), ERR_OK);
    told("use a:1; use b:1");
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK); /* the same names in another order */
    told("");
    assert_int_equal(list(s, "c:1 b:1"), ERR_OK);
    told("drain a:1; use c:1");
    assert_true(drains("a:1"));
    assert_false(drains("b:1"));
    at(now + DISCOVER_KEEP_MS - 1);
    told("");
    at(now + 1);
    told("forget a:1");
    said("discovered discovered ");
}

/* Scaled to zero: the setting names the future model. */
static void an_empty_source_still_names_its_model(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_true(discover_may_have(d)); /* no list has come yet */
    struct node_labels labels = {.model = SLICE("org/m")};
    assert_int_equal(discover_source_labels(d, s, &labels), ERR_OK);
    assert_false(discover_may_have(d));
    assert_true(discover_names_model(d, SLICE("org/m"), true));
    assert_true(discover_names_model(d, SLICE("org/m:adapter"), false));
    assert_false(discover_names_model(d, SLICE("org/mm"), false));
    assert_false(discover_names_model(d, SLICE("org"), false));
    /* If the source has replicas, their models count instead of the label. */
    assert_int_equal(list(s, "a:1"), ERR_OK);
    assert_true(discover_names_model(d, SLICE("org/m"), false));
    assert_false(discover_names_model(d, SLICE("org/m"), true));
    labels = (struct node_labels){.adapters_on_demand = true};
    assert_int_equal(discover_source_labels(d, s, &labels), ERR_OK);
    assert_false(discover_may_have(d));
    told("use a:1");
    discover_check(d);
}

static void a_returning_name_is_used_at_once(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK);
    assert_int_equal(list(s, "a:1"), ERR_OK);
    now += 5000;
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK);
    told("use a:1; use b:1; drain b:1; use b:1");
    /* an earlier absence does not count next time */
    now += DISCOVER_KEEP_MS;
    assert_int_equal(list(s, "a:1"), ERR_OK);
    at(now + DISCOVER_KEEP_MS - 1);
    told("drain b:1");
    at(now + 1);
    told("forget b:1");
}

static void a_busy_name_is_kept_until_its_requests_end(void **state)
{
    (void)state;
    unsigned s = source("file", "x");
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK);
    (void)strcpy(host.busy[0], "b:1");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    told("use a:1; use b:1; drain b:1");
    at(now + 100 * DISCOVER_KEEP_MS);
    told("");
    host.busy[0][0] = '\0';
    at(now + 1000);
    told("forget b:1");
    at(now + 1000); /* nothing is left to do */
    told("");
}

static void a_name_stays_while_any_source_lists_it(void **state)
{
    (void)state;
    unsigned settings = source("settings", ""), s = source("dns", "x");
    assert_int_equal(list(settings, "a:1"), ERR_OK);
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK);
    told("use a:1; use b:1");
    assert_int_equal(list(s, "b:1"), ERR_OK);
    at(now + 10 * DISCOVER_KEEP_MS);
    told("");
    assert_true(discover_lists(d, settings, SLICE("a:1")));
    assert_false(discover_lists(d, s, SLICE("a:1")));
}

static void one_source_suffices_to_drain_a_name(void **state)
{
    (void)state;
    unsigned dns = source("dns", "x"), pods = source("kubernetes", "ns/x");
    assert_int_equal(list(dns, "a:1 b:1"), ERR_OK);
    assert_int_equal(list(pods, "a:1 b:1"), ERR_OK);
    told("use a:1; use b:1");
    assert_int_equal(list(pods, "a:1 b:1!"), ERR_OK);
    told("drain b:1");
    at(now + 10 * DISCOVER_KEEP_MS); /* still listed, so not forgotten */
    told("");
    assert_int_equal(list(pods, "a:1 b:1"), ERR_OK);
    told("use b:1");
    assert_int_equal(list(pods, "a:1 b:1!"), ERR_OK);
    assert_int_equal(list(pods, "a:1"), ERR_OK); /* gone from the pods' list, still in DNS */
    told("drain b:1; use b:1");
    assert_int_equal(list(dns, "a:1"), ERR_OK);
    told("drain b:1");
    /* A name that any source lists as draining is drained. */
    assert_int_equal(list(pods, "a:1"), ERR_OK);
    assert_int_equal(list(dns, "a:1!"), ERR_OK);
    told("drain a:1");
}

static void a_name_first_listed_as_draining_is_never_used(void **state)
{
    (void)state;
    unsigned s = source("kubernetes", "ns/x");
    assert_int_equal(list(s, "a:1 b:1!"), ERR_OK);
    told("use a:1");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    at(now + 2 * DISCOVER_KEEP_MS);
    told("");
}

static void labels_come_from_the_first_source(void **state)
{
    (void)state;
    unsigned first = source("settings", ""), second = source("file", "x");
    assert_int_equal(list(second, "a:1+ b:1+"), ERR_OK);
    told("use a:1 weight 2; use b:1 weight 2");
    assert_int_equal(list(first, "a:1"), ERR_OK);
    told("use a:1");
    assert_int_equal(list(second, "a:1+ b:1"), ERR_OK);
    told("use b:1");
    assert_int_equal(list(first, "c:1"), ERR_OK);
    told("use a:1 weight 2; use c:1");
}

static void a_refused_name_is_tried_again(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    host.refuses = ERR_FULL;
    assert_int_equal(list(s, "a:1 b:1"), ERR_OK);
    at(now + 1000);
    at(now + 1000);
    told("");
    said("discovered replica_refused replica_refused "); /* once each */
    /* Never used, so nothing to drain. But the name may be waiting for room: forget it. */
    assert_int_equal(list(s, "b:1"), ERR_OK);
    told("forget a:1");
    assert_int_equal(list(s, "b:1!"), ERR_OK);
    told("forget b:1");
    assert_int_equal(list(s, "b:1"), ERR_OK);
    host.refuses = 0;
    at(now + 1000);
    told("use b:1");
    at(now + 1000);
    told("");
}

/* The host dropped used names because older names came. */
static void names_dropped_by_the_host_are_offered_again(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "a:1 b:1+"), ERR_OK);
    told("use a:1; use b:1 weight 2");
    (void)strcpy(host.lost, "b:1");
    at(now + 1000);
    told("use b:1 weight 2");
    host.refuses = ERR_FULL;
    at(now + 1000);
    at(now + 1000);
    said("discovered replica_refused ");
    host.refuses = 0;
    host.lost[0] = '\0';
    at(now + 1000);
    told("use b:1 weight 2");
    at(now + 1000);
    told("");
    /* If the host drops a name while the name drains, the drain is over. */
    assert_int_equal(list(s, "a:1"), ERR_OK);
    (void)strcpy(host.lost, "b:1");
    at(now + 1000);
    at(now + 2 * DISCOVER_KEEP_MS);
    told("drain b:1");
}

static void an_invalid_list_changes_nothing(void **state)
{
    (void)state;
    static struct discover_entry many[DISCOVER_ENTRIES_MAX + 1];
    static char names[DISCOVER_ENTRIES_MAX + 1][16];
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "a:1"), ERR_OK);
    for (unsigned i = 0; i <= DISCOVER_ENTRIES_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "h%u:1", i);
        many[i].name = slice_of_cstr(names[i]);
    }
    assert_int_equal(discover_list(d, s, many, DISCOVER_ENTRIES_MAX + 1, now), ERR_LIMIT);
    char text[NODE_NAME_MAX + 1];
    memset(text, 'n', sizeof text);
    struct discover_entry entry = {.name = slice_of(text, sizeof text)};
    assert_int_equal(discover_list(d, s, &entry, 1, now), ERR_RANGE);
    entry.name.len = 0;
    assert_int_equal(discover_list(d, s, &entry, 1, now), ERR_RANGE);
    told("use a:1");
    assert_true(discover_lists(d, s, SLICE("a:1")));
    said("discovered discovery_failed discovery_failed ");
    /* The maximum number of entries. */
    assert_int_equal(discover_list(d, s, many, DISCOVER_ENTRIES_MAX, now), ERR_OK);
    discover_check(d);
}

static void the_first_of_duplicate_entries_counts(void **state)
{
    (void)state;
    unsigned s = source("dns", "x");
    assert_int_equal(list(s, "a:1+ b:1 a:1"), ERR_OK);
    told("use a:1 weight 2; use b:1");
    assert_int_equal(d->sources[s].list.count, 2);
}

static void a_duplicate_source_is_refused(void **state)
{
    (void)state;
    (void)source("kubernetes", "ns/x");
    assert_int_equal(discover_source(d, "kubernetes", SLICE("ns/x")), ERR_EXISTS);
    (void)source("file", "ns/x");
    (void)source("kubernetes", "ns/x:8000");
}

static bool is_removed(const void *context, struct slice name)
{
    return slice_equal(name, slice_of_cstr(context));
}

static void sources_are_limited_and_shown(void **state)
{
    (void)state;
    unsigned a = source("settings", ""), b = source("dns", "engines:1");
    assert_int_equal(list(a, "x:1"), ERR_OK);
    assert_int_equal(list(b, "x:1 y:1!"), ERR_OK);
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    json_array_begin(&w);
    discover_names_write(d, SLICE("x:1"), &w);
    discover_names_write(d, SLICE("y:1"), &w);
    discover_names_write(d, SLICE("z:1"), &w);
    discover_names_write(NULL, SLICE("x:1"), &w);
    json_array_end(&w);
    assert_int_equal(json_writer_finish(&w), ERR_OK);
    assert_slice_equal(buf_slice(&out),
                       "[[\"settings\",\"dns engines:1\"],[\"dns engines:1\"],[],[]]");
    buf_clear(&out);
    discover_failed(d, b, "timeout", now);
    w = json_writer_of(&out);
    discover_sources_write(d, now + 2500, is_removed, "y:1", &w);
    assert_int_equal(json_writer_finish(&w), ERR_OK);
    assert_slice_equal(
        buf_slice(&out),
        "[{\"kind\":\"settings\",\"name\":\"\",\"entries\":1,\"draining\":0,"
        "\"failures\":0,\"age_s\":2.5,\"error\":null,\"lacks\":null,\"empty\":null,"
        "\"removed\":[]},"
        "{\"kind\":\"dns\",\"name\":\"engines:1\",\"entries\":2,\"draining\":1,"
        "\"failures\":1,\"age_s\":2.5,\"error\":\"timeout\",\"lacks\":null,\"empty\":null,"
        "\"removed\":[\"y:1\"]}]");
    buf_free(&out);
    for (unsigned i = 2; i < DISCOVER_SOURCES_MAX; i++) {
        char more[16];
        (void)snprintf(more, sizeof more, "more%u", i);
        (void)source("dns", more);
    }
    assert_int_equal(discover_source(d, "dns", SLICE("one too many")), ERR_FULL);
}

/* Any lists in any order: after all waits, the host uses exactly the listed names. */
static void the_host_ends_with_the_listed_names(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 7);
    unsigned s[3] = {source("settings", ""), source("dns", "x"), source("file", "y")};
    for (unsigned round = 0; round < 3000; round++) {
        char names[64] = "";
        for (int c = 'a'; c <= 'f'; c++) {
            unsigned kind = (unsigned)prng_below(&prng, 6);
            size_t len = strlen(names);
            if (kind < 4)
                (void)snprintf(names + len, sizeof names - len, "%s%c:1%s", len > 0 ? " " : "", c,
                               kind == 3   ? "!"
                               : kind == 2 ? "+"
                                           : "");
        }
        unsigned which = (unsigned)prng_below(&prng, 3);
        if (prng_below(&prng, 8) == 0)
            discover_failed(d, s[which], "it", now);
        else
            assert_int_equal(list(s[which], prng_below(&prng, 5) == 0 ? "" : names), ERR_OK);
        host.refuses = prng_below(&prng, 10) == 0 ? ERR_FULL : 0;
        (void)snprintf(host.busy[0], sizeof host.busy[0], "%c:1", 'a' + (int)prng_below(&prng, 9));
        at(now + prng_below(&prng, 20000));
        discover_check(d);
        host.text[0] = '\0';
    }
    memset(host.busy, 0, sizeof host.busy);
    host.refuses = 0;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(list(s[i], "z:9"), ERR_OK);
    at(now + 1);
    for (unsigned i = 0; i < 4; i++)
        at(now + DISCOVER_KEEP_MS);
    assert_int_equal(d->sources[s[0]].list.count, 1);
    host.text[0] = '\0';
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(list(s[i], "y:9"), ERR_OK);
    told("use y:9; drain z:9"); /* and no other name is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_are_used_drained_and_forgotten),
        TEST(an_empty_source_still_names_its_model),
        TEST(a_returning_name_is_used_at_once),
        TEST(a_busy_name_is_kept_until_its_requests_end),
        TEST(a_name_stays_while_any_source_lists_it),
        TEST(one_source_suffices_to_drain_a_name),
        TEST(a_name_first_listed_as_draining_is_never_used),
        TEST(labels_come_from_the_first_source),
        TEST(a_refused_name_is_tried_again),
        TEST(names_dropped_by_the_host_are_offered_again),
        TEST(an_invalid_list_changes_nothing),
        TEST(the_first_of_duplicate_entries_counts),
        TEST(a_duplicate_source_is_refused),
        TEST(sources_are_limited_and_shown),
        TEST(the_host_ends_with_the_listed_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
