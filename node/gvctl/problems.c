#include "node/gvctl/problems.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/admin/attention.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/fields.h"
#include "node/route/result.h"

static const char *const severities[] = {"red", "amber", "grey"}; /* worst first */

static uint64_t failed_for(const json_t *counts, enum node_result result)
{
    return (uint64_t)fields_number(json_object_get(counts, "failed"), node_result_text(result));
}

/* Adds an item for each kind of failure in the router's last minute. */
static void add_clients(struct admin_attention_list *list, const struct survey_router *r)
{
    json_t *sum = json_object(), *second;
    size_t i;
    json_array_foreach(json_object_get(r->told, "figures"), i, second)
    {
        sum = survey_add(sum, second, 1);
    }
    admin_attention_clients(list, slice_of_cstr(r->name),
                            &(struct admin_attention_minute){
                                .requests = (uint64_t)fields_number(sum, "requests"),
                                .status_5xx = failed_for(sum, NODE_RESULT_STATUS_5XX),
                                .unauthorized = (uint64_t)fields_number(sum, "unauthorized"),
                                .cut = failed_for(sum, NODE_RESULT_CUT),
                                .queue_full = failed_for(sum, NODE_RESULT_QUEUE_FULL)});
    json_decref(sum);
}

/* Returns the list as JSON, in the format of GET /attention. */
static json_t *json_of(const struct admin_attention_list *list)
{
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    admin_attention_write(list, &w);
    json_object_end(&w);
    json_t *json = json_writer_finish(&w) == 0 ? json_loadb(out.at, out.len, 0, NULL) : NULL;
    buf_free(&out);
    return json;
}

static bool has_kind(const json_t *items, enum admin_attention_kind kind)
{
    size_t i;
    const json_t *item;
    bool found = false;
    json_array_foreach(items, i, item)
    {
        found = found || fields_equal(item, "kind", admin_attention_kind_text(kind));
    }
    return found;
}

static void append_all(json_t *to, const json_t *from, const char *severity)
{
    size_t i;
    json_t *item;
    json_array_foreach(from, i, item)
    {
        if (fields_equal(item, "severity", severity))
            (void)json_array_append(to, item);
    }
}

json_t *problems_take(const struct given *g, const struct survey *s, bool differ)
{
    json_t *here = ask_json(g, ADMIN_CALL_ATTENTION, true), *items = json_array();
    const json_t *own = json_object_get(here, "items");
    struct admin_attention_list list = {0};
    for (unsigned k = 1; k < s->router_count; k++)
        add_clients(&list, &s->routers[k]);
    if (differ && !has_kind(own, ATTENTION_ROUTERS_DIFFER) &&
        !has_kind(own, ATTENTION_ROUTERS_INCOMPARABLE))
        admin_attention_add(&list, ATTENTION_ROUTERS_DIFFER,
                            &(struct admin_attention_facts){.n = 0});
    json_t *more = json_of(&list);
    for (size_t i = 0; i < sizeof severities / sizeof severities[0]; i++) {
        append_all(items, own, severities[i]);
        append_all(items, json_object_get(more, "items"), severities[i]);
    }
    const char *worst = json_array_size(items) > 0
                            ? fields_text(json_array_get(items, 0), "severity")
                        : json_is_array(own) ? "well"
                                             : "unknown";
    json_t *out = json_pack("{s:s,s:I,s:O}", "worst", worst, "more",
                            (json_int_t)fields_number(here, "more"), "items", items);
    json_decref(items);
    json_decref(more);
    json_decref(here);
    return out;
}

static void print_item(const struct show *how, const json_t *item, double now_ms)
{
    const char *severity = fields_text(item, "severity");
    char since[SHOW_TIME_BYTES];
    double since_ms = fields_number(item, "since_ms");
    bool red = strcmp(severity, "red") == 0;
    printf("%s%-12s%s %s", red ? show_colour(how, false) : "", severity, red ? show_plain(how) : "",
           fields_text(item, "what"));
    if (since_ms > 0)
        printf(", for %s", show_how_long((now_ms - since_ms) / 1000, since));
    printf("\n%-12s hurts %s; next: %s\n", "", fields_text(item, "hurts"),
           fields_text(item, "command"));
}

/* True for replica_out, replica_avoided and replica_flaps. */
static bool is_of_replica(const json_t *item)
{
    return slice_starts_with(slice_of_cstr(fields_text(item, "kind")), SLICE("replica_"));
}

/* Many replicas that died at once would fill the screen; what else is wrong stands below them. */
enum { REPLICAS_SHOWN = 5 };

void problems_print(const struct show *how, const json_t *problems, double now_ms)
{
    size_t i;
    const json_t *item;
    unsigned replicas = 0;
    if (fields_equal(problems, "worst", "well"))
        printf("%-12s %snone%s\n", "problems", show_colour(how, true), show_plain(how));
    json_array_foreach(json_object_get(problems, "items"), i, item)
    {
        replicas += is_of_replica(item);
        if (replicas <= REPLICAS_SHOWN || !is_of_replica(item))
            print_item(how, item, now_ms);
    }
    double more = fields_number(problems, "more");
    if (replicas > REPLICAS_SHOWN)
        more += replicas - REPLICAS_SHOWN;
    if (more > 0)
        printf("%-12s and %.0f more: gvctl replicas\n", "", more);
}

int problems_status(const json_t *problems)
{
    const char *worst = fields_text(problems, "worst");
    return strcmp(worst, "red") == 0     ? PROBLEMS_HURT
           : strcmp(worst, "amber") == 0 ? PROBLEMS_DEGRADED
                                         : EXIT_SUCCESS;
}
