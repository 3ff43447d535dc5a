#include "node/gvctl/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/admin/events.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/columns.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/gather.h"
#include "node/gvctl/plain.h"
#include "node/gvctl/ring.h"

enum { ROUTERS_NAMED = 4, ROUTERS_BYTES = 512 };

/* Returns the router that noticed the event, or the first few of several. */
static const char *router_of(const json_t *answer, const json_t *e, char out[ROUTERS_BYTES])
{
    const json_t *of = fields_has_text(e, "router") ? e : answer; /* in an answer of all routers
                                                                   * each event has a `router` */
    const json_t *name, *names = json_object_get(e, "routers");
    size_t i, len, count = json_array_size(names);
    (void)snprintf(out, ROUTERS_BYTES, "%s",
                   fields_has_text(of, "router") ? fields_text(of, "router") : "-");
    json_array_foreach(names, i, name)
    {
        len = strlen(out);
        if (i > 0 && i < ROUTERS_NAMED)
            (void)snprintf(out + len, ROUTERS_BYTES - len, " %s", json_string_value(name));
    }
    len = strlen(out);
    if (count > ROUTERS_NAMED)
        (void)snprintf(out + len, ROUTERS_BYTES - len, " +%zu", count - ROUTERS_NAMED);
    return out;
}

/* Widths of two columns, each as wide as its longest name. On a terminal ABOUT is left out, because
 * the sentence names the subject. */
struct widths {
    unsigned router, about; /* 0: left out */
};

enum { TIME_COLUMNS = 19, ROUTER_LEAST = 8, ABOUT_LEAST = 21, GAP = 2 };

static struct widths widths_of(const struct show *how, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "events");
    bool narrow = columns_of_terminal() > 0 && !how->wide;
    size_t i, router = ROUTER_LEAST;
    const json_t *e;
    json_array_foreach(list, i, e)
    {
        char text[ROUTERS_BYTES];
        size_t own = strlen(router_of(answer, e, text));
        router = own > router ? own : router;
    }
    return (struct widths){.router = columns_cap((unsigned)router, 2 * TIME_COLUMNS),
                           .about = narrow ? 0 : columns_width(list, "about", ABOUT_LEAST, 0)};
}

/* Prints the columns before the sentence; returns the column where the sentence begins. */
static unsigned print_begin(const struct widths *w, const char *time, const char *router,
                            const char *about)
{
    char text[COLUMNS_TEXT_BYTES];
    printf("%-*s  %s  ", TIME_COLUMNS, time, columns_fit(router, w->router, text));
    if (w->about > 0)
        printf("%s  ", columns_fit(about, w->about, text));
    return TIME_COLUMNS + GAP + w->router + GAP;
}

static void print_head(const struct show *how, const json_t *answer)
{
    struct widths w = widths_of(how, answer);
    (void)print_begin(&w, "TIME", "ROUTER", "ABOUT");
    if (how->wide)
        printf("%-8s  %-8s  %5s  %-24s  ", "FIRST", "KIND", "TIMES", "EVENT");
    (void)puts("WHAT");
}

/* Prints an event. TIME is the last time of a repeated event. */
static void print_line(const struct show *how, const json_t *answer, const json_t *e)
{
    char last[RING_CLOCK_BYTES], first[RING_CLOCK_BYTES], routers[ROUTERS_BYTES];
    const char *router = router_of(answer, e, routers);
    const char *about = fields_has_text(e, "about") ? fields_text(e, "about") : "-";
    double times = fields_number(e, "count");
    struct widths w = widths_of(how, answer);
    unsigned at =
        print_begin(&w, ring_clock(e, "last_ms", "%Y-%m-%d %H:%M:%S", false, last), router, about);
    if (how->wide)
        printf("%-8s  %-8s  %5.0f  %-24s  ", ring_clock(e, "time_ms", "%H:%M:%S", false, first),
               fields_text(e, "kind"), times, fields_text(e, "event"));
    char text[ADMIN_EVENT_TEXT_BYTES * 2];
    bool again = times > 1 && !how->wide;
    (void)snprintf(text, sizeof text, again ? "%s (%.0f times)" : "%s", fields_text(e, "text"),
                   times);
    if (how->wide)
        printf("%s", text);
    else
        columns_wrap(text, at);
    (void)putchar('\n');
}

static const char legend[] =
    "\n"
    "An event that repeats within a minute is one row: TIMES is its count, FIRST its first\n"
    "and TIME its last time. ROUTER: the router that noticed the event, whose clock gives\n"
    "the times, and other routers that noticed it within 5 s (-o json and --follow show one\n"
    "event for each router). ABOUT: a replica, a router, a source of replicas or a client's\n"
    "address. EVENT: the event's name in the log, which has more fields. Each router keeps\n"
    "its last 256 events.\n";

static const struct ring ring = {.name = "events",
                                 .followed = "",
                                 .filter = "",
                                 .most = ADMIN_EVENTS_MAX,
                                 .head = print_head,
                                 .line = print_line,
                                 .legend = legend};

/* --- events of all routers -------------------------------------------------------------------- */

enum { TARGET_BYTES = 96 };

/* Asks all routers for the newest `count` events of each. */
static json_t *ask_all(const struct given *g, unsigned count, uint64_t within_ms, bool quiet,
                       int *status)
{
    char target[TARGET_BYTES];
    struct buf text = {0};
    (void)snprintf(target, sizeof target, "%s?all=1&n=%u&within=%llu",
                   admin_call_row(ADMIN_CALL_EVENTS_ALL)->path, count,
                   (unsigned long long)within_ms);
    json_t *answer = ring_ask(g, &ring, target, quiet, &text, status);
    buf_free(&text);
    return answer;
}

/* Handles the answer of a router that reports only its own events: a router alone, or an older one.
 * Returns the exit status. */
static int of_one(const struct given *g, const json_t *answer)
{
    if (g->router != NULL && !fields_equal(answer, "router", g->router)) {
        (void)fprintf(stderr, "gvctl: %s is not router \"%s\", and reports no other router\n",
                      g->admin, g->router);
        return EXIT_FAILURE;
    }
    if (fields_has_text(answer, "router"))
        plain_printf(stderr,
                     "gvctl: router %s has an older version and reports only its own events\n",
                     fields_text(answer, "router"));
    return ring_show(g, &ring);
}

/* Returns an answer with the merged events in `list`, which it takes over. */
static json_t *whole_of(const struct gather *all, const json_t *answer, json_t *list)
{
    return json_pack("{s:O?,s:o,s:O,s:O?}", "self", json_object_get(answer, "self"), "events", list,
                     "silent", all->silent, "not_asked", json_object_get(answer, "not_asked"));
}

/* True if the requested router answered. */
static bool is_there(const struct given *g, const struct gather *all)
{
    if (g->router == NULL || json_object_get(all->routers, g->router) != NULL)
        return true;
    if (json_object_get(all->silent, g->router) == NULL)
        (void)fprintf(stderr, "gvctl: no router \"%s\" is alive; gvctl members lists the routers\n",
                      g->router);
    return false;
}

/* --- the same event at several routers -------------------------------------------------------- */

enum { FOLD_MS = 5000 };

static json_int_t last_ms(const json_t *event)
{
    return json_integer_value(json_object_get(event, "last_ms"));
}

static bool has_router(const json_t *event, const char *name)
{
    size_t i;
    const json_t *router;
    json_array_foreach(json_object_get(event, "routers"), i, router)
    {
        if (strcmp(json_string_value(router), name) == 0)
            return true;
    }
    return false;
}

/* Returns an earlier event with the same text, of other routers only; NULL: none. */
static json_t *twin_of(const json_t *list, const json_t *event)
{
    for (size_t i = json_array_size(list); i > 0; i--) {
        json_t *other = json_array_get(list, i - 1);
        if (last_ms(event) - last_ms(other) > FOLD_MS)
            break;
        if (fields_equal(other, "text", fields_text(event, "text")) &&
            fields_equal(other, "about", fields_text(event, "about")) &&
            fields_number(other, "count") == fields_number(event, "count") &&
            !has_router(other, fields_text(event, "router")))
            return other;
    }
    return NULL;
}

/* Merges equal events of several routers into a single event with all routers; consumes the
 * list. */
static json_t *folded(json_t *list)
{
    json_t *event, *out = json_array();
    size_t i;
    json_array_foreach(list, i, event)
    {
        json_t *twin = twin_of(out, event), *to = twin != NULL ? twin : event;
        if (twin == NULL && (json_object_set_new(event, "routers", json_array()) != 0 ||
                             json_array_append(out, event) != 0))
            (void)fputs("gvctl: out of memory: an event is left out\n", stderr);
        (void)json_array_append(json_object_get(to, "routers"), json_object_get(event, "router"));
    }
    json_decref(list);
    return out;
}

/* Returns the last events of the first answer, of all routers. */
static json_t *last_of(const struct given *g, struct gather *all, const json_t *answer,
                       double now_s)
{
    json_t *list = gather_take(all, answer, now_s, 0);
    if (ring_is_table(g) && !g->follow)
        list = folded(list);
    size_t count = json_array_size(list), wanted = ring_wanted(g, &ring);
    while (count > wanted && json_array_remove(list, 0) == 0)
        count--;
    return list;
}

static int show_all(const struct given *g, struct gather *all, const json_t *answer, double now_s)
{
    json_t *list = last_of(g, all, answer, now_s);
    gather_tell_silent(all, answer);
    gather_tell_not_asked(all, answer);
    if (!is_there(g, all)) {
        json_decref(list);
        return EXIT_FAILURE;
    }
    json_t *shown = whole_of(all, answer, list);
    ring_print_last(g, &ring, shown);
    json_decref(shown);
    return EXIT_SUCCESS;
}

/* Prints each router's new events. */
static bool follow_once(const struct given *g, const struct ring *r, void *context, int *status)
{
    struct gather *all = context;
    double now_s = call_seconds();
    uint64_t within_ms = gather_within_ms(all, now_s);
    json_t *answer = ask_all(g, ADMIN_EVENTS_MAX, within_ms, true, status);
    json_t *list = answer != NULL ? gather_take(all, answer, now_s, within_ms) : NULL;
    if (list != NULL) {
        gather_tell_silent(all, answer);
        json_t *shown = whole_of(all, answer, list);
        ring_print(g, r, shown);
        json_decref(shown);
    } else if (answer != NULL) {
        ask_other(g);
    }
    json_decref(answer);
    return list != NULL;
}

static int follow_all(const struct given *g, struct gather *all, const json_t *answer, double now_s)
{
    json_t *shown = whole_of(all, answer, last_of(g, all, answer, now_s));
    gather_tell_silent(all, answer);
    gather_tell_not_asked(all, answer);
    if (ring_is_table(g))
        ring.head(&g->show, shown);
    ring_print(g, &ring, shown);
    json_decref(shown);
    return ring_follow(g, &ring, follow_once, all);
}

static int of_all(const struct given *g)
{
    struct gather all;
    double now_s = call_seconds();
    int status, exit_status = EXIT_FAILURE;
    json_t *answer = ask_all(g, ring_wanted(g, &ring), 0, false, &status);
    bool begun = gather_begin(&all, g->router);
    if (answer == NULL || !begun)
        exit_status = EXIT_FAILURE;
    else if (!json_is_object(json_object_get(answer, "nodes")))
        exit_status = of_one(g, answer);
    else
        exit_status =
            g->follow ? follow_all(g, &all, answer, now_s) : show_all(g, &all, answer, now_s);
    gather_end(&all);
    json_decref(answer);
    return exit_status;
}

int events(const struct given *g)
{
    return g->local ? ring_show(g, &ring) : of_all(g);
}
