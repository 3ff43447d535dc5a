/* No memory: a list is taken whole or not at all, and the next one is. */
#include "tests/lib/failmalloc.h"

#include "base/err.h"
#include "node/discover/discover.h"
#include "tests/lib/test.h"

static int on_use(void *context, struct slice name, const struct node_labels *labels)
{
    (void)context;
    (void)name;
    (void)labels;
    return ERR_OK;
}

static void on_name(void *context, struct slice name)
{
    (void)context;
    (void)name;
}

static bool on_busy(void *context, struct slice name)
{
    (void)context;
    (void)name;
    return false;
}

static void on_line(void *context, struct slice line)
{
    (void)context;
    (void)line;
}

static uint64_t on_clock(void *context)
{
    (void)context;
    return 0;
}

static void list(struct discover *d, int source, const char *const *names, unsigned count,
                 uint64_t now_ms, bool may_fail)
{
    struct discover_entry entries[4];
    struct discover_source_stats stats;
    for (unsigned i = 0; i < count; i++)
        entries[i] = (struct discover_entry){.name = slice_of_cstr(names[i])};
    int err = discover_list(d, (unsigned)source, entries, count, now_ms);
    assert_true(err == ERR_OK || (may_fail && err == ERR_NOMEM));
    discover_source_at(d, (unsigned)source, &stats);
    assert_true(stats.failing == (err != ERR_OK));
    discover_check(d);
}

static void life(bool may_fail)
{
    const struct discover_host host = {
        .use = on_use, .drain = on_name, .forget = on_name, .busy = on_busy};
    struct log log;
    struct discover *d;
    log_init(&log, on_line, on_clock, NULL);
    if (discover_create(&d, &host, &log) != ERR_OK) {
        assert_true(may_fail);
        return;
    }
    uint64_t now = 1000;
    int source = discover_source(d, "dns", SLICE("engines:80"));
    if (source < 0) {
        assert_true(may_fail);
        failmalloc_enough();
        source = discover_source(d, "dns", SLICE("engines:80"));
    }
    for (unsigned i = 0; i < 3; i++, now += 3 * DISCOVER_KEEP_MS) {
        list(d, source, (const char *[]){"a:1", "b:1"}, 2, now, may_fail);
        list(d, source, (const char *[]){"b:1", "c:1", "d:1"}, 3, now, may_fail);
        list(d, source, NULL, 0, now, may_fail);
        discover_tick(d, now + DISCOVER_EMPTY_MS);
        discover_tick(d, now + DISCOVER_EMPTY_MS + DISCOVER_KEEP_MS);
        discover_check(d);
    }
    failmalloc_enough(); /* what was missed heals with the next list */
    list(d, source, (const char *[]){"a:1", "b:1"}, 2, now, false);
    discover_tick(d, now + DISCOVER_KEEP_MS);
    discover_tick(d, now + 2 * DISCOVER_KEEP_MS);
    assert_true(discover_lists(d, (unsigned)source, SLICE("a:1")));
    assert_false(discover_lists(d, (unsigned)source, SLICE("c:1")));
    discover_destroy(d);
}

static void lists_without_memory(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(life));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
