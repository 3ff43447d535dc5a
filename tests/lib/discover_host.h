/* A host for tests of node/discover, which records the calls, in virtual time. */
#ifndef TESTS_LIB_DISCOVER_HOST_H
#define TESTS_LIB_DISCOVER_HOST_H

#include <stdio.h>

#include "base/err.h"
#include "base/prng.h"
#include "node/discover/discover.h"
#include "tests/lib/test.h"

enum { HISTORY_BYTES = 4096, BUSY_MAX = 8 };

/* The host and the recorded calls. */
static struct {
    char text[HISTORY_BYTES];
    char busy[BUSY_MAX][32];
    char lost[32];
    int refuses; /* error returned by each use(); 0: none */
} host;

static struct {
    char text[HISTORY_BYTES]; /* names of events, each with a space */
    struct log log;
} logged;

static struct discover *d;
static uint64_t now;

static void note(const char *what, struct slice name, const char *more)
{
    size_t len = strlen(host.text);
    (void)snprintf(host.text + len, sizeof host.text - len, "%s%s %.*s%s", len > 0 ? "; " : "",
                   what, SLICE_ARG(name), more);
}

static int on_use(void *context, struct slice name, const struct node_labels *labels)
{
    (void)context;
    if (host.refuses != 0)
        return host.refuses;
    char more[300] = "";
    if (node_labels_weight(labels) != 1)
        (void)snprintf(more, sizeof more, " weight %g", labels->weight);
    if (labels->model.len > 0)
        (void)snprintf(more, sizeof more, " model %.*s", SLICE_ARG(labels->model));
    note("use", name, more);
    return ERR_OK;
}

static void on_drain(void *context, struct slice name)
{
    (void)context;
    note("drain", name, "");
}

static void on_forget(void *context, struct slice name)
{
    (void)context;
    note("forget", name, "");
}

static bool on_busy(void *context, struct slice name)
{
    (void)context;
    for (unsigned i = 0; i < BUSY_MAX; i++) {
        if (slice_equal(name, slice_of_cstr(host.busy[i])))
            return true;
    }
    return false;
}

static bool on_has(void *context, struct slice name)
{
    (void)context;
    return !slice_equal(name, slice_of_cstr(host.lost));
}

static void on_log(void *context, struct slice line)
{
    (void)context;
    struct slice rest = line;
    for (unsigned i = 0; i < 2; i++) { /* time, level */
        (void)slice_cut(&rest, ' ');
        rest = slice_trim(rest);
    }
    struct slice event = slice_cut(&rest, ' ');
    size_t len = strlen(logged.text);
    (void)snprintf(logged.text + len, sizeof logged.text - len, "%.*s ", SLICE_ARG(event));
}

static uint64_t on_clock(void *context)
{
    (void)context;
    return 0;
}

static int setup(void **state)
{
    (void)state;
    memset(&host, 0, sizeof host);
    memset(&logged, 0, sizeof logged);
    log_init(&logged.log, on_log, on_clock, NULL);
    const struct discover_host table = {
        .use = on_use, .drain = on_drain, .forget = on_forget, .busy = on_busy, .has = on_has};
    now = 1000;
    return discover_create(&d, &table, &logged.log);
}

static int teardown(void **state)
{
    (void)state;
    discover_destroy(d);
    return 0;
}

static unsigned source(const char *kind, const char *name)
{
    int s = discover_source(d, kind, slice_of_cstr(name));
    assert_true(s >= 0);
    return (unsigned)s;
}

/* Checks the calls of the host since the last check. */
static void told(const char *want)
{
    assert_string_equal(host.text, want);
    host.text[0] = '\0';
    discover_check(d);
}

static void said(const char *want)
{
    assert_string_equal(logged.text, want);
    logged.text[0] = '\0';
}

static void at(uint64_t ms)
{
    now = ms;
    discover_tick(d, now);
}

/* Sets a list such as "a:1 b:1!": '!' after a name means draining, '+' means weight 2. */
static int list(unsigned s, const char *names)
{
    struct discover_entry entries[16];
    unsigned count = 0;
    struct slice rest = slice_of_cstr(names);
    while (rest.len > 0) {
        struct slice name = slice_cut(&rest, ' ');
        struct discover_entry *e = &entries[count++];
        *e = (struct discover_entry){.name = name};
        if (slice_ends_with(name, SLICE("!"))) {
            e->state = DISCOVER_DRAINING;
            e->name.len--;
        } else if (slice_ends_with(name, SLICE("+"))) {
            e->labels.weight = 2;
            e->name.len--;
        }
    }
    return discover_list(d, s, entries, count, now);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
