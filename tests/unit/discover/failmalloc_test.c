/* Out of memory: a list is taken whole or not at all, and the next list succeeds. */
#include "tests/lib/discover_quiet.h"
#include "tests/lib/failmalloc.h"

#include "base/err.h"
#include "node/discover/discover_internal.h"
#include "node/discover/kubernetes.h"
#include "tests/lib/test.h"

static int on_use(void *context, struct slice name, const struct node_labels *labels)
{
    (void)context;
    (void)name;
    (void)labels;
    return ERR_OK;
}

static void list(struct discover *d, int source, const char *const *names, unsigned count,
                 uint64_t now_ms, bool may_fail)
{
    struct discover_entry entries[4];
    for (unsigned i = 0; i < count; i++)
        entries[i] = (struct discover_entry){.name = slice_of_cstr(names[i])};
    int err = discover_list(d, (unsigned)source, entries, count, now_ms);
    assert_true(err == ERR_OK || (may_fail && err == ERR_NOMEM));
    assert_true(d->sources[source].failing == (err != ERR_OK));
    discover_check(d);
}

static void life(bool may_fail)
{
    const struct discover_host host = {
        .use = on_use, .drain = on_name, .forget = on_name, .busy = on_busy, .has = on_has};
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
    failmalloc_enough(); /* the next list repairs the loss */
    list(d, source, (const char *[]){"a:1", "b:1"}, 2, now, false);
    discover_tick(d, now + DISCOVER_KEEP_MS);
    discover_tick(d, now + 2 * DISCOVER_KEEP_MS);
    assert_true(discover_lists(d, (unsigned)source, SLICE("a:1")));
    assert_false(discover_lists(d, (unsigned)source, SLICE("c:1")));
    discover_destroy(d);
}

#define KUBERNETES_SLICE(name, ip)                                                                 \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"2\"},\"addressType\":\"IPv4\","    \
    "\"ports\":[{\"port\":80}],\"endpoints\":[{\"addresses\":[\"" ip "\"]}]}"

/* An API server with slice a at version 1, and slice b from version 2 on, which an event
 * announces. */
static void serve(struct discover_kubernetes *k, uint64_t now_ms, uint64_t *until_ms, bool *later)
{
    static const char a[] =
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" KUBERNETES_SLICE("a",
                                                                                 "10.0.0.1") "]}";
    static const char both[] =
        "{\"metadata\":{\"resourceVersion\":\"2\"},\"items\":[" KUBERNETES_SLICE(
            "a", "10.0.0.1") "," KUBERNETES_SLICE("b", "10.0.0.2") "]}";
    static const char event[] =
        "{\"type\":\"ADDED\",\"object\":" KUBERNETES_SLICE("b", "10.0.0.2") "}";
    enum discover_kubernetes_action action;
    while ((action = discover_kubernetes_next(k, now_ms, until_ms)) != DISCOVER_KUBERNETES_WAIT) {
        discover_kubernetes_check(k);
        if (action != DISCOVER_KUBERNETES_ASK)
            continue;
        const char *target = discover_kubernetes_target(k);
        bool watch = strstr(target, "watch=true") != NULL;
        bool news = watch && strstr(target, "resourceVersion=1") != NULL;
        const char *body = news ? event : watch ? "" : *later ? both : a;
        *later = *later || news;
        discover_kubernetes_answered(k, 200, 0, now_ms);
        discover_kubernetes_received(k, slice_of_cstr(body), now_ms);
        if (!watch)
            discover_kubernetes_ended(k, NULL, now_ms);
    }
}

static void service_life(bool may_fail)
{
    struct discover_service service;
    struct discover_kubernetes *k;
    uint64_t now = 1000;
    assert_null(discover_service_parse(SLICE("ns/svc"), &service));
    if (discover_kubernetes_create(&k, &service, 1, now) != ERR_OK) {
        assert_true(may_fail);
        return;
    }
    unsigned count = 0;
    bool later = false;
    for (unsigned i = 0; i < 6 && count < 2; i++) {
        serve(k, now, &now, &later);
        if (i == 1)
            failmalloc_enough(); /* the loss repairs itself after a while */
        (void)discover_kubernetes_entries(k, &count);
    }
    const struct discover_entry *entries = discover_kubernetes_entries(k, &count);
    assert_int_equal(count, 2);
    assert_slice_equal(entries[1].name, "10.0.0.2:80");
    discover_kubernetes_destroy(k);
}

static void a_service_without_memory(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(service_life));
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
        cmocka_unit_test(a_service_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
