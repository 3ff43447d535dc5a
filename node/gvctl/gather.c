#include "node/gvctl/gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/plain.h"

bool gather_begin(struct gather *g, const char *only)
{
    *g = (struct gather){.only = only, .routers = json_object(), .silent = json_object()};
    return g->routers != NULL && g->silent != NULL;
}

void gather_end(struct gather *g)
{
    json_decref(g->routers);
    json_decref(g->silent);
    *g = (struct gather){0};
}

static bool is_wanted(const struct gather *g, const char *name)
{
    return g->only == NULL || strcmp(g->only, name) == 0;
}

/* Only routers in the last answer count: a silent router does not lengthen the time. */
uint64_t gather_within_ms(const struct gather *g, double now_s)
{
    const char *name;
    json_t *router;
    double from_s = now_s;
    json_object_foreach(g->routers, name, router)
    {
        if (!fields_is(router, "answers"))
            continue;
        double until_s = fields_number(router, "until_s");
        if (until_s <= 0)
            return 0; /* nothing was taken from this router yet */
        from_s = until_s < from_s ? until_s : from_s;
    }
    return json_object_size(g->routers) == 0
               ? 0
               : (uint64_t)((now_s - from_s) * 1000) + GATHER_OVERLAP_MS;
}

/* --- an answer ------------------------------------------------------------------------------- */

static json_int_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Returns the row of the router in g->routers. For a new or restarted router the row begins anew,
 * with nothing taken. NULL: out of memory. */
static json_t *row_of(struct gather *g, const char *name, const json_t *told)
{
    json_t *row = json_object_get(g->routers, name);
    if (row != NULL && whole(row, "since_ms") == whole(told, "since_ms"))
        return row;
    if (row == NULL && json_object_size(g->routers) >= GATHER_ROUTERS_MAX)
        (void)json_object_clear(g->routers);
    row = json_pack("{s:I,s:I,s:f}", "since_ms", whole(told, "since_ms"), "changed", (json_int_t)0,
                    "until_s", 0.0);
    return json_object_set_new(g->routers, name, row) == 0 ? row : NULL;
}

/* True if the question reached back to the last event taken from the router. */
static bool has_reached(const json_t *row, double now_s, uint64_t within_ms)
{
    double from_s = now_s - (double)within_ms / 1000 + (double)GATHER_OVERLAP_MS / 1000;
    double until_s = fields_number(row, "until_s");
    return within_ms == 0 || (until_s > 0 && from_s <= until_s + 0.002);
}

static void take_router(struct gather *g, const char *name, const json_t *told, double now_s,
                        uint64_t within_ms, json_t *out)
{
    json_t *row = row_of(g, name, told);
    (void)json_object_set_new(row, "answers", json_true());
    if (row == NULL || !has_reached(row, now_s, within_ms))
        return;
    json_int_t changed = whole(row, "changed");
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(told, "events"), i, event)
    {
        if (whole(event, "change") <= changed)
            continue;
        json_t *own = json_pack("{s:s}", "router", name);
        if (json_object_update(own, event) != 0 || json_array_append(out, own) != 0)
            (void)fputs("gvctl: out of memory: an event is left out\n", stderr);
        json_decref(own);
    }
    if (whole(told, "changed") > changed)
        (void)json_object_set_new(row, "changed", json_integer(whole(told, "changed")));
    (void)json_object_set_new(row, "until_s", json_real(now_s));
}

struct entry {
    json_t *of;
};

/* Compares events by the last time, then by the router's name, then by number. */
static int compare(const void *a, const void *b)
{
    const json_t *one = ((const struct entry *)a)->of, *other = ((const struct entry *)b)->of;
    json_int_t ms = whole(one, "last_ms") - whole(other, "last_ms");
    if (ms == 0)
        ms = strcmp(fields_text(one, "router"), fields_text(other, "router"));
    if (ms == 0)
        ms = whole(one, "change") - whole(other, "change");
    return ms < 0 ? -1 : ms > 0;
}

/* Returns the events in order, and consumes the list. Out of memory: returns the list as it is. */
static json_t *sorted(json_t *list)
{
    size_t count = json_array_size(list);
    struct entry *order = calloc(count > 0 ? count : 1, sizeof *order);
    json_t *out = json_array();
    if (order == NULL || out == NULL) {
        free(order);
        json_decref(out);
        return list;
    }
    for (size_t i = 0; i < count; i++)
        order[i].of = json_array_get(list, i);
    qsort(order, count, sizeof *order, compare);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(out, order[i].of);
    free(order);
    json_decref(list);
    return out;
}

json_t *gather_take(struct gather *g, const json_t *answer, double now_s, uint64_t within_ms)
{
    json_t *nodes = json_object_get(answer, "nodes");
    json_t *out = json_is_object(nodes) ? json_array() : NULL;
    const char *name;
    json_t *told;
    if (out == NULL)
        return NULL;
    json_object_foreach(g->routers, name, told)
    {
        (void)json_object_set_new(told, "answers", json_false());
    }
    json_object_foreach(nodes, name, told)
    {
        if (is_wanted(g, name) && json_is_array(json_object_get(told, "events")))
            take_router(g, name, told, now_s, within_ms, out);
    }
    return sorted(out);
}

/* --- missing routers -------------------------------------------------------------------------- */

void gather_tell_silent(struct gather *g, const json_t *answer)
{
    json_t *now = json_object();
    const char *name;
    json_t *told;
    json_object_foreach(json_object_get(answer, "nodes"), name, told)
    {
        if (!is_wanted(g, name) || !fields_has_text(told, "error"))
            continue;
        const char *why = fields_text(told, "error");
        (void)json_object_set(now, name, json_object_get(told, "error"));
        if (json_object_get(g->silent, name) != NULL)
            continue;
        if (strcmp(why, err_text(ERR_UNSUPPORTED)) == 0)
            why = "its version is too old for GET /events?all=1";
        plain_printf(stderr, "gvctl: router %s does not answer: %s; its events are missing\n", name,
                     why);
    }
    json_decref(g->silent);
    g->silent = now;
}

void gather_tell_not_asked(const struct gather *g, const json_t *answer)
{
    unsigned count = 0;
    const char *name;
    json_t *state;
    json_object_foreach(json_object_get(answer, "not_asked"), name, state)
    {
        const char *why = json_string_value(state) != NULL ? json_string_value(state) : "-";
        if (strcmp(why, "left") == 0 || !is_wanted(g, name))
            continue;
        if (count < GATHER_NAMED_MAX)
            plain_printf(stderr, "%s %s (%s)", count == 0 ? "gvctl: not asked:" : ",", name, why);
        count++;
    }
    if (count > GATHER_NAMED_MAX)
        (void)fprintf(stderr, " and %u more", count - GATHER_NAMED_MAX);
    if (count > 0)
        (void)fputc('\n', stderr);
}
