#include "node/gvctl/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/print.h"
#include "node/gvctl/survey.h"

/* How many there are of each of some words, in order of their first. */
struct tally {
    const char *words[16];
    unsigned counts[16];
    unsigned count;
};

static void tally_add(struct tally *t, const char *word)
{
    unsigned i = 0;
    while (i < t->count && strcmp(t->words[i], word) != 0)
        i++;
    if (i == ARRAY_LEN(t->words))
        return;
    t->words[i] = word;
    t->counts[i] = i < t->count ? t->counts[i] + 1 : 1;
    t->count = i < t->count ? t->count : i + 1;
}

static json_t *tally_json(const struct tally *t)
{
    json_t *out = json_object();
    for (unsigned i = 0; i < t->count; i++)
        (void)json_object_set_new(out, t->words[i], json_integer(t->counts[i]));
    return out;
}

/* An address whose ranks are chosen instead of it is no replica of its own. */
static struct tally tally_of_replicas(const json_t *replicas)
{
    struct tally t = {.words = {"up"}, .counts = {0}, .count = 1};
    size_t i;
    const json_t *r;
    json_array_foreach(replicas, i, r)
    {
        if (fields_number(r, "ranks") == 0)
            tally_add(&t, show_replica_health(r));
    }
    return t;
}

/* "equal", "different", "unknown" or "alone". */
static const char *converged(const struct survey *s, const struct given *g)
{
    int code;
    if (s->alone)
        return "alone";
    json_t *answer = ask_quietly(g, g->admin, admin_call_row(ADMIN_CALL_CONVERGENCE)->path,
                                 ASK_TIMEOUT_S, &code);
    const char *word = answer == NULL                      ? "unknown"
                       : show_convergence_equal(answer, 0) ? "equal"
                                                           : "different";
    json_decref(answer);
    return word;
}

/* What of the answer tells of files that are refused, its title, and who says more. */
static const struct {
    const char *member, *title, *more;
} refusals[SURVEY_FILES] = {
    [SURVEY_SETTINGS] = {"config_refused", "settings", "config"}, /* of that router */
    [SURVEY_CLIENT_KEYS] = {"client_keys_refused", "client keys", "events"},
    [SURVEY_TLS_FILES] = {"tls_files_refused", "TLS files", "events"},
};

/* The routers that refuse a file of that kind. */
static json_t *refusing(const struct survey *s, unsigned file)
{
    json_t *names = json_array();
    for (unsigned k = 0; k < s->router_count; k++) {
        if (s->routers[k].refused[file])
            (void)json_array_append_new(names, json_string(s->routers[k].name));
    }
    return names;
}

/* Those that some source lists and an operator removed, each once. */
static json_t *removed(const struct given *g)
{
    int code;
    json_t *names = json_object(), *out = json_array(),
           *list = ask_quietly(g, g->admin, admin_call_row(ADMIN_CALL_SOURCES)->path, ASK_TIMEOUT_S,
                               &code);
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

/* Router -> how many settings wait for its restart. */
static json_t *waiting_json(const struct survey *s)
{
    json_t *out = json_object();
    for (unsigned k = 0; k < s->router_count; k++) {
        if (s->routers[k].waits > 0)
            (void)json_object_set_new(out, s->routers[k].name, json_integer(s->routers[k].waits));
    }
    return out;
}

/* Router -> what its machine is short of, in words. */
static json_t *shortages_json(const struct survey *s)
{
    json_t *out = json_object();
    for (unsigned k = 0; k < s->router_count; k++) {
        json_t *words = json_array();
        for (unsigned i = 0; i < NET_SHORTAGES; i++) {
            if (s->routers[k].short_of[i])
                (void)json_array_append_new(words,
                                            json_string(net_shortage_name((enum net_shortage)i)));
        }
        if (json_array_size(words) > 0)
            (void)json_object_set(out, s->routers[k].name, words);
        json_decref(words);
    }
    return out;
}

/* Router -> connections that it refused since its start. */
static json_t *doors_json(const struct survey *s)
{
    json_t *out = json_object();
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        if (r->connections_refused > 0)
            (void)json_object_set_new(out, r->name,
                                      json_integer((json_int_t)r->connections_refused));
    }
    return out;
}

/* Why not all were counted. */
static const char *why_not_counted(const struct survey *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        const char *state = s->routers[k].state;
        bool gone = strcmp(state, "left") == 0 || strcmp(state, "dead") == 0;
        if (!s->routers[k].reached && !gone)
            return "the other admin ports are not reached from here";
    }
    return "the others are gone";
}

/* Those that are not up, in short. */
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

/* All that tell. Nothing is added up that counts since a start: when a router dies the sum of what
 * is left would be less, and say nothing of what clients got. */
static struct survey_minute minute_of_all(const struct survey *s, unsigned *told)
{
    struct survey_minute sum = {0};
    *told = 0;
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_minute *m = &s->routers[k].minute;
        if (!m->known)
            continue;
        ++*told;
        sum.requests += m->requests;
        sum.hidden += m->hidden;
        for (unsigned i = 0; i < NODE_RESULTS; i++)
            sum.results[i] += m->results[i];
    }
    return sum;
}

/* By reason. */
static json_t *failed_json(const double results[NODE_RESULTS])
{
    json_t *out = json_object();
    for (unsigned i = 0; i < NODE_RESULTS; i++) {
        if (node_result_failed((enum node_result)i))
            (void)json_object_set_new(out, node_result_text((enum node_result)i),
                                      json_integer((json_int_t)results[i]));
    }
    return out;
}

static json_t *minute_json(const struct survey *s)
{
    unsigned told;
    struct survey_minute m = minute_of_all(s, &told);
    return json_pack("{s:I,s:I,s:o,s:I,s:I,s:I,s:i}", "requests", (json_int_t)m.requests, "failed",
                     (json_int_t)survey_failed(m.results), "failed_by_reason",
                     failed_json(m.results), "client_errors",
                     (json_int_t)m.results[NODE_RESULT_CLIENT_ERROR], "client_gone",
                     (json_int_t)m.results[NODE_RESULT_CLIENT_GONE], "hidden", (json_int_t)m.hidden,
                     "routers_counted", (int)told);
}

/* Router -> what it has counted since its own start. */
static json_t *counters_json(const struct survey *s)
{
    json_t *out = json_object();
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        const struct survey_counters *c = &r->counters;
        if (!r->reached)
            continue;
        json_t *one = json_pack("{s:I,s:I,s:I}", "requests", (json_int_t)c->requests, "refused",
                                (json_int_t)c->refused, "client_errors",
                                (json_int_t)c->results[NODE_RESULT_CLIENT_ERROR]);
        (void)json_object_set_new(
            one, "failed",
            r->tells_failed ? json_integer((json_int_t)survey_failed(c->results)) : json_null());
        (void)json_object_set_new(out, r->name, one);
    }
    return out;
}

static json_t *gather(const struct survey *s, const char *state)
{
    struct survey_counters sum = survey_sum(s);
    struct tally routers = {0}, replicas = tally_of_replicas(s->replicas);
    double under_way = 0, waiting = 0;
    unsigned reached = 0;
    size_t i;
    const json_t *r;
    for (unsigned k = 0; k < s->router_count; k++) {
        tally_add(&routers, s->routers[k].state);
        waiting += s->routers[k].queue_length;
        reached += s->routers[k].reached ? 1 : 0;
    }
    json_array_foreach(s->replicas, i, r)
    {
        under_way += survey_in_flight(r);
    }
    double share = survey_share(&sum);
    json_t *told = json_pack(
        "{s:s,s:s,s:s,s:b,s:s,s:s,s:o,s:s,s:o,s:I,s:I,s:o,s:o,s:i,s:o,s:o}", "router",
        s->routers[0].name, "version", s->routers[0].version, "policy", s->routers[0].policy,
        "ready", s->ready, "why", s->ready ? "" : s->why_not, "alone", s->alone_why, "routers",
        tally_json(&routers), "state", state, "replicas", tally_json(&replicas),
        "requests_in_flight", (json_int_t)under_way, "requests_waiting", (json_int_t)waiting,
        "last_minute", minute_json(s), "since_start", counters_json(s), "routers_counted",
        (int)reached, "share_from_cache", share >= 0 ? json_real(share) : json_null(),
        "replicas_not_up", not_up(s->replicas));
    for (unsigned f = 0; f < SURVEY_FILES; f++)
        (void)json_object_set_new(told, refusals[f].member, refusing(s, f));
    (void)json_object_set_new(told, "config_waits", waiting_json(s));
    (void)json_object_set_new(told, "local_shortages", shortages_json(s));
    (void)json_object_set_new(told, "connections_refused", doors_json(s));
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

/* Which are not up, and why. */
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

static void print_refusing(const struct show *how, const struct survey *s, const json_t *o,
                           unsigned file)
{
    size_t i;
    const json_t *name, *names = json_object_get(o, refusals[file].member);
    if (json_array_size(names) == 0)
        return;
    printf("%-12s %srefused%s", refusals[file].title, show_colour(how, false), show_plain(how));
    json_array_foreach(names, i, name)
    {
        if (!s->alone)
            printf("%s %s", i == 0 ? " at" : ",", json_string_value(name));
    }
    printf(": the file cannot be used, the one before stays in force (gvctl ");
    for (unsigned k = 0; k < s->router_count && file == SURVEY_SETTINGS; k++) {
        if (!s->routers[k].refused[file])
            continue;
        printf("--admin %s ", s->routers[k].admin);
        break;
    }
    printf("%s)\n", refusals[file].more);
}

/* A router knows it when calls of its own fail. Mostly one of two has called: the one that joined.
 */
static void print_filtered(const struct survey *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        if (r->tcp_filtered[0] != '\0')
            printf(
                "%-12s TCP to %s at %s is filtered and UDP is not: open the gossip port for both\n",
                "network", r->name, r->tcp_filtered);
        else if (!r->self && r->filtered > 0)
            printf("%-12s TCP from %s to %u other router%s is filtered and UDP is not: open the "
                   "gossip port for both (gvctl --admin %s members)\n",
                   "network", r->name, r->filtered, fields_plural(r->filtered), r->admin);
    }
}

/* It asks the router that it was given, which alone knows. */
static void print_other_asks(const struct survey *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        if (r->other_asks)
            printf("%-12s a router with this key file and another cluster-name asks %s to join "
                   "(gvctl --admin %s events)\n",
                   "network", r->name, r->admin);
    }
}

static void print_waiting(const struct survey *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        if (r->waits > 0)
            printf("%-12s %u wait%s for a restart%s%s (gvctl --admin %s config)\n", "settings",
                   r->waits, r->waits == 1 ? "s" : "", s->alone ? "" : " at ",
                   s->alone ? "" : r->name, r->admin);
    }
}

static void print_shortages(const struct show *how, const struct survey *s)
{
    static const char *const texts[NET_SHORTAGES] = {
        [NET_SHORT_OF_PORTS] = "no local port is left",
        [NET_SHORT_OF_FILES] = "no open file is left",
        [NET_SHORT_OF_MEMORY] = "no memory is left",
    };
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        for (unsigned i = 0; i < NET_SHORTAGES; i++) {
            if (r->short_of[i])
                printf("%-12s %s%s%s%s%s for connections to replicas: it needs %s\n", "shortage",
                       show_colour(how, false), texts[i], show_plain(how), s->alone ? "" : " at ",
                       s->alone ? "" : r->name, net_shortage_want((enum net_shortage)i));
        }
    }
}

static void print_doors(const struct show *how, const struct survey *s)
{
    for (unsigned k = 0; k < s->router_count; k++) {
        const struct survey_router *r = &s->routers[k];
        if (r->connections_refused > 0)
            printf("%-12s %s%.0f connection%s since the start%s%s%s: beyond connections-max (which "
                   "a limit of open files lowers: files_short), or at the admin and probe ports\n",
                   "refused", show_colour(how, false), r->connections_refused,
                   fields_plural(r->connections_refused), show_plain(how), s->alone ? "" : " at ",
                   s->alone ? "" : r->name);
    }
}

/* Some counts with their words, for one and for more; those that are not 0, in brackets or behind
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

/* What failed comes first: an outage shall not look like none. */
static void print_minute(const struct show *how, const json_t *m)
{
    static const char *const failed[][3] = {{"cut", "cut", "cut"},
                                            {"status_5xx", "with a 5xx", "with a 5xx"},
                                            {"queue_full", "for a full queue", "for a full queue"}};
    static const char *const others[][3] = {
        {"client_errors", "client error", "client errors"},
        {"client_gone", "left by its client", "left by their clients"},
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
    printf("%-12s %s%s%s%s%s\n", "router", s->alone ? "" : fields_text(o, "router"),
           s->alone ? "" : ": ", show_colour(how, s->ready),
           s->ready ? "ready" : "not ready: ", s->ready ? "" : s->why_not);
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
    print_filtered(s);
    print_other_asks(s);
    if (s->alone_why[0] != '\0')
        printf("%-12s %s\n", "alone", s->alone_why);
    print_tally(how, "replicas", json_object_get(o, "replicas"), "up");
    size_t gone = json_array_size(json_object_get(o, "replicas_removed"));
    if (gone > 0)
        printf(" (%zu removed by an operator)", gone);
    print_not_up(o);
    printf("\n%-12s %.0f in flight, %.0f waiting\n", "requests",
           fields_number(o, "requests_in_flight"), fields_number(o, "requests_waiting"));
    print_minute(how, json_object_get(o, "last_minute"));
    if (json_is_null(json_object_get(o, "share_from_cache")))
        printf("%-12s not known: no answer has reported it\n", "from cache");
    else
        printf("%-12s %.1f %% of prompt tokens since the start\n", "from cache",
               100 * fields_number(o, "share_from_cache"));
    print_shortages(how, s);
    print_doors(how, s);
    for (unsigned f = 0; f < SURVEY_FILES; f++)
        print_refusing(how, s, o, f);
    print_waiting(s);
    if (fields_number(o, "routers_counted") < s->router_count)
        printf("(Counted at %.0f of %u router%s: %s.)\n", fields_number(o, "routers_counted"),
               s->router_count, fields_plural(s->router_count), why_not_counted(s));
}

int status(const struct given *g)
{
    struct survey s;
    if (!survey_take(&s, g, false))
        return EXIT_FAILURE;
    survey_minutes_take(&s, g);
    bool ready = s.ready;
    json_t *o = gather(&s, converged(&s, g));
    (void)json_object_set_new(o, "replicas_removed", removed(g));
    if (g->show.format == SHOW_JSON)
        print_json(o, stdout);
    else if (g->show.format == SHOW_YAML)
        print_yaml(o, stdout);
    else
        print_short(&g->show, &s, o);
    json_decref(o);
    survey_free(&s);
    return ready ? EXIT_SUCCESS : EXIT_FAILURE;
}
