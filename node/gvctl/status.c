#include "node/gvctl/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/print.h"
#include "node/gvctl/problems.h"
#include "node/gvctl/survey.h"
#include "node/proxy/net.h"
#include "node/route/result.h"

/* Counts the replicas by health. Skips addresses with ranks: the ranks are the replicas. */
static json_t *tally_of_replicas(const json_t *replicas)
{
    json_t *counts = json_pack("{s:i}", "up", 0);
    size_t i;
    const json_t *r;
    json_array_foreach(replicas, i, r)
    {
        if (fields_number(r, "ranks") == 0)
            fields_tally(counts, show_replica_health(r));
    }
    return counts;
}

/* Returns "equal", "different", "unknown" or "alone". Changes on the way between routers cause
 * short differences, so "different" needs several differing answers in a row. */
static const char *converged(const struct survey *s, const struct given *g)
{
    enum { TIMES = 5 };
    static const double pause_s = 0.3;
    const char *word = "alone";
    for (unsigned i = 0; !s->alone && i < TIMES; i++) {
        if (i > 0)
            call_pause(pause_s);
        json_t *answer = ask_json(g, ADMIN_CALL_CONVERGENCE, true);
        word = answer == NULL                      ? "unknown"
               : show_convergence_equal(answer, 0) ? "equal"
                                                   : "different";
        json_decref(answer);
        if (strcmp(word, "different") != 0)
            break;
    }
    return word;
}

/* Kinds of unusable files: the field in a router's answer, a title, and the command for details. */
static const struct {
    const char *member, *title, *more;
    bool of_one; /* the command covers only the asked router */
} refusals[] = {
    {"config_refused", "settings", "config", true},
    {"client_keys_refused", "client keys", "events", false},
    {"tls_files_refused", "TLS files", "events", false},
};

/* Returns an object: router -> field `member` of the router's answer, if not empty. */
static json_t *by_router(const struct survey *s, const char *member)
{
    json_t *out = json_object();
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        json_t *value = json_object_get(r->told, member);
        if (value == NULL)
            value = json_object_get(r->total, member);
        if (json_is_true(value) || json_number_value(value) > 0 || json_array_size(value) > 0)
            (void)json_object_set(out, r->name, value);
    }
    return out;
}

/* Returns the routers with an unusable file of this kind. */
static json_t *refusing(const struct survey *s, const char *member)
{
    json_t *names = json_array(), *by = by_router(s, member), *value;
    const char *name;
    json_object_foreach(by, name, value)
    {
        (void)json_array_append_new(names, json_string(name));
    }
    json_decref(by);
    return names;
}

/* Returns the replicas listed by some source and removed by an operator, each once. */
static json_t *removed(const struct given *g)
{
    json_t *names = json_object(), *out = json_array(),
           *list = ask_json(g, ADMIN_CALL_SOURCES, true);
    size_t i, j;
    json_t *source, *name;
    json_array_foreach(list, i, source)
    {
        json_array_foreach(json_object_get(source, "removed"), j, name)
        {
            const char *text = json_string_value(name);
            if (text != NULL && json_object_get(names, text) == NULL &&
                json_object_set_new(names, text, json_true()) == 0)
                (void)json_array_append(out, name);
        }
    }
    json_decref(names);
    json_decref(list);
    return out;
}

/* Returns the reason why some routers were not counted. */
static const char *why_not_counted(const struct survey *s, char room[256])
{
    const char *why = "no other router is left";
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        bool gone = strcmp(r->state, "left") == 0 || strcmp(r->state, "dead") == 0;
        if (r->told == NULL && !gone) {
            (void)snprintf(room, 256, "this machine gets no answer from the admin port of %s, %s",
                           r->name, fields_text(r->member, "admin"));
            return room;
        }
        if (r->told != NULL && r->total == NULL)
            why = "an older router does not report this";
    }
    return why;
}

/* Lists the replicas that are not up, in short. */
static json_t *not_up(const json_t *replicas)
{
    json_t *out = json_array(), *rows = show_replicas_not_up(replicas);
    size_t i;
    const json_t *r;
    json_array_foreach(rows, i, r)
    {
        char why[SHOW_WHY_TEXT_BYTES];
        (void)json_array_append_new(out, json_pack("{s:s,s:s,s:s}", "name", fields_text(r, "name"),
                                                   "health", show_replica_health(r), "why",
                                                   show_replica_why_text(r, why)));
    }
    json_decref(rows);
    return out;
}

/* Returns the count under `key`; null if `counts` is NULL. */
static json_t *whole(const json_t *counts, const char *key)
{
    return counts != NULL ? json_integer((json_int_t)fields_number(counts, key)) : json_null();
}

static json_t *minute_json(const struct survey *s)
{
    unsigned told;
    json_t *m = survey_minute(s, &told), *failed = json_object();
    for (unsigned i = 0; i < NODE_RESULTS; i++) {
        const char *reason = node_result_text((enum node_result)i);
        if (node_result_failed((enum node_result)i))
            (void)json_object_set_new(failed, reason, whole(json_object_get(m, "failed"), reason));
    }
    json_t *out =
        json_pack("{s:o,s:I,s:o,s:o,s:o,s:o,s:i}", "requests", whole(m, "requests"), "failed",
                  (json_int_t)survey_failed(m), "failed_by_reason", failed, "client_errors",
                  whole(m, "client_errors"), "client_gone", whole(m, "client_gone"), "hidden",
                  whole(m, "hidden"), "routers_counted", (int)told);
    json_decref(m);
    return out;
}

/* Returns an object: router -> counters since the router's start. */
static json_t *counters_json(const struct survey *s)
{
    json_t *out = json_object();
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        if (r->told == NULL)
            continue;
        json_t *failed =
            r->total != NULL ? json_integer((json_int_t)survey_failed(r->total)) : json_null();
        (void)json_object_set_new(out, r->name,
                                  json_pack("{s:o,s:o,s:o,s:o}", "requests",
                                            whole(r->total, "requests"), "refused",
                                            whole(r->total, "refused"), "client_errors",
                                            whole(r->total, "client_errors"), "failed", failed));
    }
    return out;
}

/* Returns why a router that should have others has none; empty: this is not the case. */
static const char *alone_why(const struct survey *s)
{
    return fields_has_text(s->readiness, "alone") ? fields_text(s->readiness, "alone") : "";
}

static json_t *gather(const struct survey *s, const char *state)
{
    static const char *const by_name[] = {"config_waits", "local_shortages", "connections_refused"};
    json_t *sum = survey_sum(s), *routers = json_object();
    double under_way = 0, share = survey_share(sum);
    size_t i;
    const json_t *r;
    for (unsigned k = 0; k < s->router_count; k++)
        fields_tally(routers, s->routers[k].state);
    json_array_foreach(s->replicas, i, r)
    {
        under_way += survey_in_flight(r);
    }
    const json_t *self = s->routers[0].member;
    json_t *told = json_pack(
        "{s:s,s:s,s:s,s:b,s:s,s:s,s:o,s:s,s:o,s:I,s:I,s:o,s:o,s:i,s:o,s:o}", "router",
        s->routers[0].name, "version", fields_text(self, "version"), "policy",
        fields_text(self, "policy"), "ready", s->ready, "why",
        s->ready ? "" : fields_text(s->readiness, "why"), "alone", alone_why(s), "routers", routers,
        "state", state, "replicas", tally_of_replicas(s->replicas), "requests_in_flight",
        (json_int_t)under_way, "requests_waiting", (json_int_t)fields_number(sum, "queued"),
        "last_minute", minute_json(s), "since_start", counters_json(s), "routers_counted",
        (int)survey_counted(s), "share_from_cache", share >= 0 ? json_real(share) : json_null(),
        "replicas_not_up", not_up(s->replicas));
    for (size_t f = 0; f < ARRAY_LEN(refusals); f++)
        (void)json_object_set_new(told, refusals[f].member, refusing(s, refusals[f].member));
    for (i = 0; i < ARRAY_LEN(by_name); i++)
        (void)json_object_set_new(told, by_name[i], by_router(s, by_name[i]));
    json_decref(sum);
    return told;
}

static void print_tally(const struct show *how, const char *title, json_t *tally, const char *good)
{
    const char *word;
    json_t *count;
    double all = 0;
    unsigned shown = 0;
    json_object_foreach(tally, word, count)
    {
        all += json_number_value(count);
    }
    printf("%-12s %.0f", title, all);
    json_object_foreach(tally, word, count)
    {
        bool fine = strcmp(word, good) == 0;
        printf("%s%s%.0f %s%s", shown++ == 0 ? ": " : ", ",
               fine && json_number_value(count) > 0 ? show_colour(how, true)
               : !fine                              ? show_colour(how, false)
                                                    : "",
               json_number_value(count), word, show_plain(how));
    }
}

/* Prints the replicas that are not up, with reasons. */
static void print_not_up(const json_t *o)
{
    enum { NAMED_MAX = 3 };
    const json_t *r, *list = json_object_get(o, "replicas_not_up");
    size_t i;
    json_array_foreach(list, i, r)
    {
        if (i >= NAMED_MAX)
            break;
        const char *health = fields_text(r, "health"), *why = fields_text(r, "why");
        printf("%s %s (%s)", i == 0 ? ":" : ",", fields_text(r, "name"),
               why[0] != '\0'                   ? show_reason(why, health)
               : strcmp(health, "unknown") == 0 ? "no health check has answered yet"
                                                : health);
    }
    if (json_array_size(list) > NAMED_MAX)
        printf(" and %zu more: gvctl replicas", json_array_size(list) - NAMED_MAX);
}

static void print_refusing(const struct show *how, const struct survey *s, const json_t *o)
{
    for (size_t f = 0; f < ARRAY_LEN(refusals); f++) {
        size_t i;
        const json_t *name, *names = json_object_get(o, refusals[f].member);
        if (json_array_size(names) == 0)
            continue;
        printf("%-12s %srefused%s", refusals[f].title, show_colour(how, false), show_plain(how));
        json_array_foreach(names, i, name)
        {
            if (!s->alone)
                printf("%s %s", i == 0 ? " at" : ",", json_string_value(name));
        }
        printf(": the file cannot be used, and the previous one stays in force (gvctl ");
        for (unsigned k = 0; k < s->router_count && refusals[f].of_one; k++) {
            if (!fields_is(s->routers[k].told, refusals[f].member))
                continue;
            printf("--admin %s ", s->routers[k].admin);
            break;
        }
        printf("%s)\n", refusals[f].more);
    }
}

/* Returns " at r2" in a cluster. */
static const char *at_router(const struct survey *s, const struct survey_router *r, char out[256])
{
    (void)snprintf(out, 256, " at %s", r->name);
    return s->alone ? "" : out;
}

/* Prints that TCP is filtered between routers. A router notices only failures of its own calls, and
 * usually only the joining router of a pair has called. */
static void print_filtered(const struct show *how, const struct survey *s,
                           const struct survey_router *r)
{
    (void)how, (void)s;
    double filtered = fields_number(r->told, "tcp_filtered");
    if (fields_has_text(r->member, "tcp_filtered"))
        printf("%-12s TCP to %s at %s is filtered and UDP is not: open the gossip port for both\n",
               "network", r->name, fields_text(r->member, "tcp_filtered"));
    else if (!r->self && filtered > 0)
        printf("%-12s TCP from %s to %.0f other router%s is filtered and UDP is not: open the "
               "gossip port for both (gvctl --admin %s members)\n",
               "network", r->name, filtered, fields_plural(filtered), r->admin);
}

/* Prints that a router of another cluster asks to join. Each router knows only of requests to
 * itself. */
static void print_other_asks(const struct show *how, const struct survey *s,
                             const struct survey_router *r)
{
    (void)how, (void)s;
    if (fields_number(r->told, "other_cluster_asks") > 0)
        printf("%-12s a router with this key file and another cluster-name asks %s to join "
               "(gvctl --admin %s events)\n",
               "network", r->name, r->admin);
}

static void print_waiting(const struct show *how, const struct survey *s,
                          const struct survey_router *r)
{
    (void)how;
    char at[256];
    double waits = fields_number(r->told, "config_waits");
    if (waits > 0)
        printf("%-12s %.0f wait%s for a restart%s (gvctl --admin %s config)\n", "settings", waits,
               waits == 1 ? "s" : "", at_router(s, r, at), r->admin);
}

static void print_shortages(const struct show *how, const struct survey *s,
                            const struct survey_router *r)
{
    static const char *const texts[NET_SHORTAGES] = {
        [NET_SHORT_OF_PORTS] = "no local port is left",
        [NET_SHORT_OF_FILES] = "no open file is left",
        [NET_SHORT_OF_MEMORY] = "no memory is left",
    };
    size_t k;
    const json_t *of;
    char at[256];
    json_array_foreach(json_object_get(r->told, "local_shortages"), k, of)
    {
        for (unsigned i = 0; i < NET_SHORTAGES && json_is_string(of); i++) {
            if (strcmp(json_string_value(of), net_shortage_name((enum net_shortage)i)) == 0)
                printf("%-12s %s%s%s%s for connections to replicas: to do: %s\n", "shortage",
                       show_colour(how, false), texts[i], show_plain(how), at_router(s, r, at),
                       net_shortage_want((enum net_shortage)i));
        }
    }
}

static void print_doors(const struct show *how, const struct survey *s,
                        const struct survey_router *r)
{
    char at[256];
    double refused = fields_number(r->total, "connections_refused");
    if (refused > 0)
        printf("%-12s %s%.0f connection%s since the start%s%s: over connections-max (gvctl config "
               "shows it), or over the limit of the admin and probe ports\n",
               "refused", show_colour(how, false), refused, fields_plural(refused), show_plain(how),
               at_router(s, r, at));
}

static void print_each(const struct show *how, const struct survey *s,
                       void (*print)(const struct show *how, const struct survey *s,
                                     const struct survey_router *r))
{
    for (unsigned k = 0; k < s->router_count; k++)
        print(how, s, &s->routers[k]);
}

/* Prints the counts other than 0 with words for singular and plural, in brackets or after
 * commas. */
static void print_counts(const json_t *counts, const char *const words[][3], unsigned n,
                         const char *before, const char *after)
{
    bool any = false;
    for (unsigned i = 0; i < n; i++) {
        double count = fields_number(counts, words[i][0]);
        if (count > 0)
            printf("%s%.0f %s", any ? ", " : before, count, words[i][count == 1 ? 1 : 2]);
        any = any || count > 0;
    }
    printf("%s", any ? after : "");
}

/* Prints the requests of the last minute. Failures come first: an outage must be visible at
 * once. */
static void print_minute(const struct show *how, const json_t *m)
{
    static const char *const failed[][3] = {{"cut", "cut", "cut"},
                                            {"status_5xx", "with a 5xx", "with a 5xx"},
                                            {"queue_full", "for a full queue", "for a full queue"}};
    static const char *const others[][3] = {
        {"client_errors", "client error", "client errors"},
        {"client_gone", "abandoned by its client", "abandoned by their clients"},
        {"hidden", "failure hidden by a retry", "failures hidden by a retry"}};
    if (fields_number(m, "routers_counted") == 0) {
        printf("%-12s not known (an older router)\n", "last minute");
        return;
    }
    double requests = fields_number(m, "requests");
    printf("%-12s %.0f request%s, %s%.0f failed%s", "last minute", requests,
           fields_plural(requests), show_colour(how, fields_number(m, "failed") == 0),
           fields_number(m, "failed"), show_plain(how));
    print_counts(json_object_get(m, "failed_by_reason"), failed, ARRAY_LEN(failed), " (", ")");
    print_counts(m, others, ARRAY_LEN(others), "; ", "");
    printf("\n");
}

static void print_short(const struct show *how, const struct survey *s, const json_t *o)
{
    const char *state = fields_text(o, "state");
    char room[256];
    problems_print(how, json_object_get(o, "attention"), s->unix_ms);
    printf("%-12s %s%s%s%s%s\n", "router", s->alone ? "" : fields_text(o, "router"),
           s->alone ? "" : ": ", show_colour(how, s->ready),
           s->ready ? "ready" : "not ready: ", s->ready ? "" : fields_text(s->readiness, "why"));
    if (how->colour)
        printf("%s", show_plain(how));
    if (s->alone) {
        printf("%-12s none: this router runs alone\n", "cluster");
    } else {
        bool equal = strcmp(state, "equal") == 0;
        print_tally(how, "routers", json_object_get(o, "routers"), "alive");
        printf("; %s%s%s\n", equal ? show_colour(how, true) : "",
               equal                             ? "all hold the same state"
               : strcmp(state, "different") == 0 ? "their states differ (gvctl convergence)"
                                                 : "whether they agree is not known",
               show_plain(how));
        printf("%-12s grapevine %s, policy %s\n", "version", fields_text(o, "version"),
               fields_text(o, "policy"));
    }
    print_each(how, s, print_filtered);
    print_each(how, s, print_other_asks);
    if (fields_has_text(o, "alone"))
        printf("%-12s %s\n", "alone", fields_text(o, "alone"));
    print_tally(how, "replicas", json_object_get(o, "replicas"), "up");
    size_t gone = json_array_size(json_object_get(o, "replicas_removed"));
    if (gone > 0)
        printf(" (%zu removed by an operator)", gone);
    print_not_up(o);
    printf("\n%-12s %.0f in flight, %.0f waiting\n", "requests",
           fields_number(o, "requests_in_flight"), fields_number(o, "requests_waiting"));
    print_minute(how, json_object_get(o, "last_minute"));
    if (json_is_null(json_object_get(o, "share_from_cache")))
        printf("%-12s not known%s\n", "from cache",
               fields_number(o, "routers_counted") > 0 ? ": no answer has reported it"
                                                       : " (an older router)");
    else
        printf("%-12s %.1f %% of prompt tokens since the start\n", "from cache",
               100 * fields_number(o, "share_from_cache"));
    print_each(how, s, print_shortages);
    print_each(how, s, print_doors);
    print_refusing(how, s, o);
    print_each(how, s, print_waiting);
    if (fields_number(o, "routers_counted") < s->router_count)
        printf("(Counts are from %.0f of %u router%s: %s.)\n", fields_number(o, "routers_counted"),
               s->router_count, fields_plural(s->router_count), why_not_counted(s, room));
}

int status(const struct given *g)
{
    struct survey s;
    if (!survey_take(&s, g, false))
        return EXIT_FAILURE;
    bool ready = s.ready;
    const char *state = converged(&s, g);
    json_t *o = gather(&s, state);
    json_t *problems = problems_take(g, &s, strcmp(state, "different") == 0);
    int check = problems_status(problems);
    (void)json_object_set_new(o, "attention", problems);
    (void)json_object_set_new(o, "replicas_removed", removed(g));
    if (g->show.format == SHOW_TABLE)
        print_short(&g->show, &s, o);
    else
        print_as(g->show.format, o, stdout);
    json_decref(o);
    survey_free(&s);
    if (!g->check)
        return ready ? EXIT_SUCCESS : EXIT_FAILURE;
    return check == EXIT_SUCCESS && !ready ? PROBLEMS_DEGRADED : check;
}
