#include "node/gvctl/ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "node/gvctl/ask.h"
#include "node/gvctl/print.h"

enum { LAST_DEFAULT = 32 /* without --last */, TARGET_BYTES = 1024 };

/* The fields of the last answer that show where the next one has to begin. */
struct seen {
    json_int_t changed, since_ms;
};

static json_int_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *ring_clock(const json_t *entry, const char *key, const char *format, bool fine,
                       char out[RING_CLOCK_BYTES])
{
    json_int_t ms = whole(entry, key);
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (!json_is_integer(json_object_get(entry, key)) || localtime_r(&at, &tm) == NULL)
        return "-";
    size_t n = strftime(out, RING_CLOCK_BYTES - 4, format, &tm);
    if (fine)
        (void)snprintf(out + n, RING_CLOCK_BYTES - n, ".%03d", (int)(ms % 1000));
    return out;
}

unsigned ring_wanted(const struct given *g, const struct ring *ring)
{
    unsigned wanted = g->last > 0 ? g->last : LAST_DEFAULT;
    return wanted < ring->most ? wanted : ring->most;
}

bool ring_is_table(const struct given *g)
{
    return g->show.format == SHOW_TABLE || g->show.format == SHOW_NAME;
}

static json_t *list_of(const struct ring *ring, const json_t *answer)
{
    return json_object_get(answer, ring->name);
}

void ring_print(const struct given *g, const struct ring *ring, const json_t *answer)
{
    size_t i;
    json_t *entry;
    json_array_foreach(list_of(ring, answer), i, entry)
    {
        if (g->show.format == SHOW_JSON) {
            print_json_line(entry, stdout);
        } else if (g->show.format == SHOW_YAML) {
            (void)puts("---");
            print_yaml(entry, stdout);
        } else {
            ring->line(&g->show, answer, entry);
        }
    }
    (void)fflush(stdout);
}

void ring_print_last(const struct given *g, const struct ring *ring, json_t *answer)
{
    if (ring_is_table(g)) {
        ring->head(&g->show, answer);
        ring_print(g, ring, answer);
        printf("%s", g->show.verbose ? ring->legend : "");
    } else {
        print_as(g->show.format, answer, stdout);
    }
}

json_t *ring_ask(const struct given *g, const struct ring *ring, const char *target, bool quiet,
                 struct buf *text, int *status)
{
    json_t *answer = ask_here(g, target, quiet, text, status);
    if (*status == 404)
        (void)fprintf(stderr, "gvctl: that router has an older version without %s (404)\n",
                      ring->name);
    return answer;
}

/* Returns the answer; NULL after a failed call, with its `status`, or after an answer of another
 * form. */
static json_t *ask_for(const struct given *g, const struct ring *ring, const char *target,
                       bool quiet, int *status)
{
    struct buf text = {0};
    json_t *answer = ring_ask(g, ring, target, quiet, &text, status);
    bool good = json_is_array(list_of(ring, answer));
    if (answer != NULL && !good)
        ask_other(g);
    else if (good && g->show.format == SHOW_JSON && !g->follow)
        print_text(buf_slice(&text), stdout);
    buf_free(&text);
    if (good)
        return answer;
    json_decref(answer);
    return NULL;
}

static int show_last(const struct given *g, const struct ring *ring)
{
    char target[TARGET_BYTES], count[16] = "";
    int status;
    if (g->last > 0)
        (void)snprintf(count, sizeof count, "&n=%u", ring_wanted(g, ring));
    int path = snprintf(target, sizeof target, "/%s", ring->name);
    (void)snprintf(target + path, sizeof target - (size_t)path, "%s%s", count, ring->filter);
    if (target[path] == '&')
        target[path] = '?';
    json_t *answer = ask_for(g, ring, target, false, &status);
    if (answer == NULL)
        return EXIT_FAILURE;
    if (g->show.format != SHOW_JSON)
        ring_print_last(g, ring, answer);
    json_decref(answer);
    return EXIT_SUCCESS;
}

/* Prints new entries until there are no more for now. Returns false if the router cannot be
 * asked. */
static bool follow_once(const struct given *g, const struct ring *ring, void *context, int *status)
{
    struct seen *seen = context;
    size_t n = ring->most;
    while (n == ring->most) {
        char target[TARGET_BYTES];
        (void)snprintf(target, sizeof target, "/%s?n=%u%s%s&changed=%lld", ring->name, ring->most,
                       ring->followed, ring->filter, (long long)seen->changed);
        json_t *answer = ask_for(g, ring, target, true, status);
        if (answer == NULL)
            return false;
        json_int_t since = whole(answer, "since_ms");
        bool anew = seen->since_ms != 0 && since != seen->since_ms;
        /* Asked anew after a pause: behind a balancer, each answer may be from another router. */
        n = anew ? 0 : json_array_size(list_of(ring, answer));
        if (!anew)
            ring_print(g, ring, answer);
        seen->changed = anew ? 0 : whole(answer, "changed");
        seen->since_ms = since;
        json_decref(answer);
    }
    return true;
}

int ring_follow(const struct given *g, const struct ring *ring, ring_once *once, void *context)
{
    bool reached = true;
    for (;;) {
        int status;
        bool good = once(g, ring, context, &status);
        if (!good && status >= 200 && status != 503)
            return EXIT_FAILURE;
        if (reached && !good)
            (void)fprintf(stderr, "gvctl: cannot reach %s; retrying\n", g->admin);
        reached = good;
        call_pause(g->interval_s > 0 ? g->interval_s : 1);
    }
}

/* Prints the last entries, then new ones. */
static int follow(const struct given *g, const struct ring *ring)
{
    struct seen seen = {0};
    char target[TARGET_BYTES];
    int status;
    (void)snprintf(target, sizeof target, "/%s?n=%u%s%s", ring->name, ring_wanted(g, ring),
                   ring->followed, ring->filter);
    json_t *answer = ask_for(g, ring, target, false, &status);
    if (answer == NULL)
        return EXIT_FAILURE;
    seen.since_ms = whole(answer, "since_ms");
    seen.changed = whole(answer, "changed");
    if (ring_is_table(g))
        ring->head(&g->show, NULL);
    ring_print(g, ring, answer);
    json_decref(answer);
    return ring_follow(g, ring, follow_once, &seen);
}

int ring_show(const struct given *g, const struct ring *ring)
{
    return g->follow ? follow(g, ring) : show_last(g, ring);
}
