/* The cluster: its routers, whether they agree, and the choice of each. */
#include <time.h>

#include "node/gvctl/show_internal.h"

enum { NAME_WIDTH = 28, COLUMN_WIDTH = 24, COLUMNS_MAX = 8 /* --json has them all */ };

/* --- members -------------------------------------------------------------------------------- */

/* 1234 -> "1.2k" */
static const char *short_number(double n, char out[16])
{
    static const char units[] = " kMGTP";
    unsigned u = 0;
    while (n >= 9999.5 && u + 2 < sizeof units) {
        n /= 1000;
        u++;
    }
    (void)snprintf(out, 16, u > 0 && n < 100 ? "%.1f%c" : "%.0f%c", n, units[u]);
    if (u == 0)
        out[strlen(out) - 1] = '\0';
    return out;
}

static const char *state_of(const json_t *m)
{
    if (json_is_true(json_object_get(m, "duplicate_name")))
        return "twice"; /* two that live have its name */
    if (json_is_true(json_object_get(m, "mismatch")))
        return "mismatch"; /* its settings or its hash key are others */
    if (strcmp(show_text(m, "state"), "alive") != 0)
        return show_text(m, "state");
    if (json_is_string(json_object_get(m, "not_understood")))
        return "not understood"; /* they share no version of the protocol */
    if (json_is_true(json_object_get(m, "quarantined")))
        return "quarantined"; /* too much of what it sent made no sense */
    if (json_is_false(json_object_get(m, "session")))
        return "unmet"; /* others say that it is alive; the router asked has no session with it */
    return json_is_true(json_object_get(m, "ready")) ? "alive" : "joining";
}

/* When its life began and how often it rose in it, being ready or denying its death: "21:18:01 +1",
 * or the day if it was not today. */
static const char *life_of(const json_t *m, char out[32])
{
    time_t now = time(NULL);
    time_t at = (time_t)(json_integer_value(json_object_get(m, "epoch_ms")) / 1000);
    long long risen = json_integer_value(json_object_get(m, "incarnation")) & 0xffff;
    struct tm today;
    struct tm then;
    if (localtime_r(&now, &today) == NULL || localtime_r(&at, &then) == NULL)
        return "-";
    bool same_day = today.tm_year == then.tm_year && today.tm_yday == then.tm_yday;
    size_t n = strftime(out, 16, same_day ? "%H:%M:%S" : "%Y-%m-%d", &then);
    if (risen > 0)
        (void)snprintf(out + n, 32 - n, " +%lld", risen);
    return out;
}

static void show_member(const json_t *m)
{
    const char *state = state_of(m);
    bool fine = strcmp(state, "alive") == 0;
    char life[32];
    printf("%s %-*s %s%-14s%s %-22s %15s", json_is_true(json_object_get(m, "self")) ? "*" : " ",
           NAME_WIDTH, show_text(m, "name"), show_good(fine), state, show_plain(),
           show_text(m, "address"), life_of(m, life));
    if (!json_is_true(json_object_get(m, "self"))) {
        char text[5][16] = {"-"}; /* it has not told its vector yet */
        if (json_is_number(json_object_get(m, "lacks_of_ours")))
            (void)short_number(show_number(m, "lacks_of_ours"), text[0]);
        printf(" %8.2f %8.0f %8.1f %6.0f %6s %7s %7s %7s %7s", show_number(m, "rtt_ms"),
               show_number(m, "heard_ms_ago"), show_number(m, "lag_ms"),
               show_number(m, "lag_deltas"), text[0],
               short_number(show_number(m, "packets_in"), text[1]),
               short_number(show_number(m, "packets_out"), text[2]),
               short_number(show_number(m, "bytes_in"), text[3]),
               short_number(show_number(m, "bytes_out"), text[4]));
    }
    printf("\n");
}

/* "version: 0.1.0 (3)": of those that live, how many have which. */
static void show_shares(const json_t *members, const char *what)
{
    json_t *shares = json_object();
    size_t i;
    const json_t *m;
    json_array_foreach(members, i, m)
    {
        const char *value = show_text(m, what);
        if (strcmp(show_text(m, "state"), "alive") == 0 && value[0] != '\0')
            (void)json_object_set_new(
                shares, value,
                json_integer(1 + json_integer_value(json_object_get(shares, value))));
    }
    const char *value;
    json_t *count;
    unsigned shown = 0;
    json_object_foreach(shares, value, count)
    {
        printf("%s%s%s (%lld)", shown == 0 ? what : "", shown == 0 ? ": " : ", ", value,
               (long long)json_integer_value(count));
        shown++;
    }
    printf("%s", shown > 0 ? "\n" : "");
    json_decref(shares);
}

/* What an operator should look at, a line each. */
static void show_notes(const json_t *answer)
{
    size_t i;
    const json_t *m;
    if (show_text(answer, "alone")[0] != '\0')
        printf("alone: %s\n", show_text(answer, "alone"));
    json_array_foreach(json_object_get(answer, "members"), i, m)
    {
        const char *name = show_text(m, "name");
        if (json_is_true(json_object_get(m, "duplicate_name")))
            printf("%s: two routers that live have this name; one is at %s\n", name,
                   show_text(m, "duplicate_at"));
        if (json_object_get(m, "differs") != NULL)
            printf("%s: %s\n", name, show_text(m, "differs"));
        if (json_object_get(m, "hints") != NULL)
            printf("%s: %s\n", name, show_text(m, "hints"));
    }
}

static void show_index(const json_t *stats)
{
    const json_t *state = json_object_get(stats, "state");
    const json_t *repair = json_object_get(json_object_get(stats, "reconcile"), "last_round");
    char text[3][16];
    printf("\nindex: %s entries in %sB of %sB\n",
           short_number(show_number(state, "index_entries"), text[0]),
           short_number(show_number(state, "index_bytes_used"), text[1]),
           short_number(show_number(state, "index_bytes_max"), text[2]));
    if (json_is_object(repair))
        printf("last comparison: with %s, %.1f s ago: %s; %.0f differences, %sB, %.1f ms\n",
               show_text(repair, "with"), show_number(repair, "ago_ms") / 1000,
               show_text(repair, "result"), show_number(repair, "differences"),
               short_number(show_number(repair, "bytes_out") + show_number(repair, "bytes_in"),
                            text[0]),
               show_number(repair, "took_ms"));
}

/* What the packets carried, by frame type, both ways since the start. */
static void show_frames(const json_t *stats)
{
    json_t *gossip = json_object_get(stats, "gossip");
    json_t *in = json_object_get(gossip, "frames_in");
    json_t *sent = json_object_get(gossip, "frames_out");
    json_t *types = json_object();
    (void)json_object_update(types, in);
    (void)json_object_update(types, sent);
    printf("\n  %-12s %9s %9s %9s %9s\n", "FRAME", "IN", "OUT", "B IN", "B OUT");
    const char *type;
    json_t *unused;
    json_object_foreach(types, type, unused)
    {
        const json_t *ways[] = {json_object_get(in, type), json_object_get(sent, type)};
        char text[4][16];
        printf("  %-12s %9s %9s %9s %9s\n", type,
               short_number(show_number(ways[0], "frames"), text[0]),
               short_number(show_number(ways[1], "frames"), text[1]),
               short_number(show_number(ways[0], "bytes"), text[2]),
               short_number(show_number(ways[1], "bytes"), text[3]));
    }
    json_decref(types);
}

/* Rows: up to which delta of each author that router has told to have applied all. */
static void show_vectors(const json_t *members)
{
    size_t i;
    const json_t *m;
    printf("\n  %-*s", NAME_WIDTH, "VECTOR");
    json_array_foreach(members, i, m)
    {
        printf(" %*.*s", COLUMN_WIDTH, COLUMN_WIDTH, show_text(m, "name"));
    }
    printf("\n");
    json_array_foreach(members, i, m)
    {
        printf("  %-*s", NAME_WIDTH, show_text(m, "name"));
        size_t j;
        const json_t *author;
        json_array_foreach(members, j, author)
        {
            const json_t *at =
                json_object_get(json_object_get(m, "vector"), show_text(author, "name"));
            json_int_t life = json_integer_value(json_object_get(author, "epoch_ms"));
            char cell[32] = "-";
            if (json_is_array(at))
                (void)snprintf(
                    cell, sizeof cell, "%lld%s",
                    (long long)json_integer_value(json_array_get(at, 1)),
                    json_integer_value(json_array_get(at, 0)) == life ? "" : " (earlier life)");
            printf(" %*s", COLUMN_WIDTH, cell);
        }
        printf("\n");
    }
}

int show_members(struct slice text)
{
    json_t *answer = show_parse_object(text);
    const json_t *members = json_object_get(answer, "members");
    if (!json_is_array(members)) {
        json_decref(answer);
        return ERR_SYNTAX;
    }
    printf("  %-*s %-14s %-22s %15s %8s %8s %8s %6s %6s %7s %7s %7s %7s\n", NAME_WIDTH, "ROUTER",
           "STATE", "ADDRESS", "STARTED", "RTT ms", "HEARD ms", "LAG ms", "LAG", "LACKS", "PKT IN",
           "PKT OUT", "B IN", "B OUT");
    size_t i;
    const json_t *m;
    json_array_foreach(members, i, m)
    {
        show_member(m);
    }
    json_array_foreach(members, i, m)
    {
        if (json_is_string(json_object_get(m, "not_understood")))
            printf("%s is not understood: %s\n", show_text(m, "name"),
                   show_text(m, "not_understood"));
    }
    printf("\n");
    show_shares(members, "version");
    show_shares(members, "policy");
    show_notes(answer);
    if (json_array_size(members) <= COLUMNS_MAX)
        show_vectors(members);
    show_frames(json_object_get(answer, "stats"));
    show_index(json_object_get(answer, "stats"));
    printf(
        "\n"
        "* is the router that was asked; all is as it sees it. STARTED: +2, it announced itself\n"
        "twice since: it became ready, or denied its death. HEARD: since its last packet. LAG: "
        "deltas of it that are known here\n"
        "and not applied yet, and the age of the oldest. LACKS: deltas of ours that it has not\n"
        "told to have applied. VECTOR: up to which delta of each router (column) each (row) has\n"
        "applied all; above %d routers --json has it. FRAME: what the packets carried.\n",
        COLUMNS_MAX);
    json_decref(answer);
    return 0;
}

/* --- convergence ---------------------------------------------------------------------------- */

bool show_convergence_equal(struct slice text, unsigned members)
{
    json_t *answer = show_parse_object(text);
    bool equal = json_is_true(json_object_get(answer, "equal")) &&
                 json_object_size(json_object_get(answer, "nodes")) >= members;
    json_decref(answer);
    return equal;
}

static double observations(const json_t *node)
{
    double sum = 0;
    size_t i;
    const json_t *generation;
    json_array_foreach(json_object_get(node, "index"), i, generation)
    {
        sum += show_number(generation, "entries");
    }
    return sum;
}

/* The time slices whose digests are not the same everywhere, above what anybody has dropped. */
static void show_generations(json_t *nodes)
{
    const char *name;
    json_t *node;
    double floor = 0;
    json_t *digests = json_object(); /* generation -> digest, or null where they differ */
    json_t *counts = json_object();  /* generation -> nodes that hold something of it */
    json_object_foreach(nodes, name, node)
    {
        size_t i;
        const json_t *g;
        floor = show_number(node, "floor") > floor ? show_number(node, "floor") : floor;
        json_array_foreach(json_object_get(node, "index"), i, g)
        {
            char key[24];
            (void)snprintf(key, sizeof key, "%.0f", show_number(g, "generation"));
            json_t *digest = json_object_get(g, "digest");
            const json_t *known = json_object_get(digests, key);
            (void)json_object_set(
                digests, key, known == NULL || json_equal(known, digest) ? digest : json_null());
            (void)json_object_set_new(
                counts, key, json_integer(1 + json_integer_value(json_object_get(counts, key))));
        }
    }
    unsigned shown = 0;
    const char *key;
    json_t *digest;
    json_object_foreach(digests, key, digest)
    {
        bool same = json_is_string(digest) && json_integer_value(json_object_get(counts, key)) ==
                                                  (json_int_t)json_object_size(nodes);
        if (same || strtod(key, NULL) < floor)
            continue;
        printf("%s%s", shown == 0 ? "time slices that differ: " : ", ", key);
        shown++;
    }
    printf("%s", shown > 0 ? "\n" : "");
    json_decref(digests);
    json_decref(counts);
}

static bool all_answered(json_t *nodes)
{
    const char *name;
    json_t *node;
    json_object_foreach(nodes, name, node)
    {
        if (json_object_get(node, "error") != NULL)
            return false;
    }
    return true;
}

static void show_differ(json_t *answer)
{
    size_t i;
    const json_t *class;
    json_array_foreach(json_object_get(answer, "differ"), i, class)
    {
        printf("%s%s", i == 0 ? "classes that differ: " : ", ", json_string_value(class));
        if (i + 1 == json_array_size(json_object_get(answer, "differ")))
            printf("\n");
    }
    show_generations(json_object_get(answer, "nodes"));
}

/* Why it is not so; the first of the reasons, for it explains the others. */
static void show_why_not(json_t *answer, unsigned members)
{
    json_t *nodes = json_object_get(answer, "nodes");
    const char *name;
    json_t *node;
    unsigned silent = 0;
    json_object_foreach(nodes, name, node)
    {
        if (json_object_get(node, "error") != NULL)
            printf("%s%s", silent++ == 0 ? "not equal: " : ", ", name);
    }
    if (silent > 0) {
        printf(" did not answer");
        return;
    }
    if (json_is_true(json_object_get(answer, "equal"))) {
        printf("too few: %zu of %u routers", json_object_size(nodes), members);
        return;
    }
    unsigned joining = 0;
    json_object_foreach(nodes, name, node)
    {
        if (!json_is_true(json_object_get(node, "ready")))
            printf("%s%s", joining++ == 0 ? "not equal: " : ", ", name);
    }
    if (joining > 0)
        printf(joining == 1 ? " is joining" : " are joining");
    else if (json_is_false(json_object_get(answer, "comparable")))
        printf("not comparable: the routers keep no time slice in common");
    else
        printf("not equal (what was just learned may still be on its way)");
}

static void show_verdict(json_t *answer, unsigned members)
{
    bool equal = json_is_true(json_object_get(answer, "equal"));
    size_t count = json_object_size(json_object_get(answer, "nodes"));
    bool good_news = equal && count >= members;
    printf("%s", show_good(good_news));
    if (!good_news)
        show_why_not(answer, members);
    else if (count > 1)
        printf("equal: all %zu living routers hold the same state", count);
    else
        printf("equal: there is one living router");
    printf("%s\n", show_plain());
    json_t *lost = json_object_get(answer, "not_asked");
    const char *name;
    json_t *state;
    unsigned shown = 0;
    json_object_foreach(lost, name, state)
    {
        printf("%s%s (%s)", shown++ == 0 ? "not asked: " : ", ", name, json_string_value(state));
    }
    printf("%s", shown > 0 ? "\n" : "");
}

int show_convergence(struct slice text, unsigned members)
{
    json_t *answer = show_parse_object(text);
    if (!json_is_object(json_object_get(answer, "nodes"))) {
        json_decref(answer);
        return ERR_SYNTAX;
    }
    bool equal = json_is_true(json_object_get(answer, "equal"));
    printf("%-*s %-16s %-16s %-16s %-16s %11s %12s\n", NAME_WIDTH, "ROUTER", "REGISTRY", "INDEX",
           "LOG", "REPORTS", "GENERATIONS", "OBSERVATIONS");
    const char *name;
    json_t *node;
    json_object_foreach(json_object_get(answer, "nodes"), name, node)
    {
        const char *error = json_string_value(json_object_get(node, "error"));
        if (error != NULL) {
            printf("%-*s %sdid not answer: %s%s\n", NAME_WIDTH, name, show_good(false), error,
                   show_plain());
            continue;
        }
        printf("%-*s %-16s %-16s %-16s %-16s %11zu %12.0f%s\n", NAME_WIDTH, name,
               show_text(node, "registry"), show_text(node, "whole_index"), show_text(node, "log"),
               show_text(node, "reports"), json_array_size(json_object_get(node, "index")),
               observations(node),
               json_is_true(json_object_get(node, "ready")) ? "" : "  (joining)");
    }
    printf("\n");
    if (!equal && all_answered(json_object_get(answer, "nodes")))
        show_differ(answer);
    show_verdict(answer, members);
    json_decref(answer);
    return 0;
}

/* --- explain, side by side ------------------------------------------------------------------ */

static const json_t *find_replica(const json_t *node, const char *name)
{
    size_t i;
    const json_t *replica;
    json_array_foreach(json_object_get(node, "replicas"), i, replica)
    {
        if (strcmp(show_text(replica, "replica"), name) == 0)
            return replica;
    }
    return NULL;
}

/* The names of all replicas that any node weighs, in a JSON object. */
static json_t *all_replicas(json_t *nodes)
{
    json_t *names = json_object();
    const char *key;
    json_t *node;
    json_object_foreach(nodes, key, node)
    {
        size_t i;
        const json_t *replica;
        json_array_foreach(json_object_get(node, "replicas"), i, replica)
        {
            (void)json_object_set_new(names, show_text(replica, "replica"), json_true());
        }
    }
    return names;
}

static void show_row(json_t *nodes, const char *replica)
{
    printf("%-*s", NAME_WIDTH, replica);
    const char *key;
    json_t *node;
    json_object_foreach(nodes, key, node)
    {
        const json_t *r = find_replica(node, replica);
        char cell[64] = "-";
        if (r != NULL)
            (void)snprintf(cell, sizeof cell, "%c%9.3f %10.0f",
                           strcmp(show_text(node, "choice"), replica) == 0 ? '>' : ' ',
                           show_number(r, "cost_s"), show_number(r, "cached_tokens"));
        printf(" %*s", COLUMN_WIDTH, cell);
    }
    printf("\n");
}

int show_explain_all(struct slice text)
{
    json_t *answer = show_parse_object(text);
    json_t *nodes = json_object_get(answer, "nodes");
    if (!json_is_object(nodes)) {
        json_decref(answer);
        return ERR_SYNTAX;
    }
    const char *key;
    json_t *node;
    printf("%-*s", NAME_WIDTH, "");
    json_object_foreach(nodes, key, node)
    {
        printf(" %*.*s", COLUMN_WIDTH, COLUMN_WIDTH, key);
    }
    printf("\n%-*s", NAME_WIDTH, "REPLICA");
    json_object_foreach(nodes, key, node)
    {
        printf(" %*s", COLUMN_WIDTH, "COST s     CACHED");
    }
    printf("\n");
    json_t *replicas = all_replicas(nodes);
    json_t *unused;
    const char *name;
    json_object_foreach(replicas, name, unused)
    {
        show_row(nodes, name);
    }
    json_decref(replicas);
    json_object_foreach(nodes, key, node)
    {
        const char *error = json_string_value(json_object_get(node, "error"));
        if (error != NULL)
            printf("%s: %s\n", key, error);
    }
    printf("\n> marks the choice of each router; CACHED is in tokens\n");
    json_decref(answer);
    return 0;
}
