/* Shows the routers of a cluster. */
#include <time.h>

#include "node/gvctl/show_internal.h"

enum { NAME_WIDTH = 28, COLUMN_WIDTH = 24, COLUMNS_MAX = 8 /* --json shows all */ };

const char *show_member_state(const json_t *m)
{
    if (json_is_true(json_object_get(m, "duplicate_name")))
        return "twice"; /* two living routers have this name */
    if (json_is_true(json_object_get(m, "mismatch")))
        return "mismatch"; /* different settings or hash key */
    if (strcmp(fields_text(m, "state"), "alive") != 0)
        return fields_text(m, "state");
    if (json_is_string(json_object_get(m, "not_understood")))
        return "not understood"; /* no common version of the protocol */
    if (json_is_true(json_object_get(m, "quarantined")))
        return "quarantined"; /* too many invalid messages */
    if (json_is_string(json_object_get(m, "tcp_filtered")))
        return "TCP filtered"; /* datagrams arrive, but TCP connections fail */
    if (json_is_false(json_object_get(m, "session")))
        return "unmet"; /* alive according to others; no session with the asked router */
    if (json_is_true(json_object_get(m, "draining")))
        return "draining"; /* leaves when the present requests are done */
    return json_is_true(json_object_get(m, "ready")) ? "alive" : "joining";
}

/* Returns the time since the router's start. With `risen`, appends the increments of the
 * incarnation, for becoming ready or refuting a report of death: "7 h ago +1". */
static const char *life_of(const json_t *m, bool risen, char out[48])
{
    char ago[SHOW_TIME_BYTES];
    double began_s = fields_number(m, "epoch_ms") / 1000;
    long long times = json_integer_value(json_object_get(m, "incarnation")) & 0xffff;
    if (began_s <= 0)
        return "-";
    int n = snprintf(out, 48, "%s ago", show_how_long((double)time(NULL) - began_s, ago));
    if (risen && times > 0 && n > 0)
        (void)snprintf(out + n, 48 - (size_t)n, " +%lld", times);
    return out;
}

static void add_member(const struct show *how, struct table *t, const json_t *m)
{
    static const char *const counts[] = {"packets_in", "packets_out", "bytes_in", "bytes_out"};
    const char *state = show_member_state(m);
    bool self = fields_is(m, "self");
    char life[48], text[SHOW_NUMBER_BYTES];
    table_row(t, self ? '*' : ' ');
    table_cell(t, "%s", fields_text(m, "name"));
    table_cell(t, "%s", state);
    table_colour(t, show_colour(how, strcmp(state, "alive") == 0));
    table_cell(t, "%s", fields_text(m, "address"));
    table_cell(t, "%s", fields_text(m, "version"));
    if (self)
        table_cell(t, "-");
    else
        table_cell(t, "%.1f", fields_number(m, "lag_ms"));
    table_cell(t, "%s", life_of(m, how->verbose, life));
    for (unsigned i = 0; i < 8 && self; i++)
        table_cell(t, "%s", "");
    if (self)
        return;
    table_cell(t, "%.2f", fields_number(m, "rtt_ms"));
    table_cell(t, "%.0f", fields_number(m, "heard_ms_ago"));
    table_cell(t, "%.0f", fields_number(m, "lag_deltas"));
    /* "-": no vector received yet */
    table_cell(t, "%s",
               json_is_number(json_object_get(m, "lacks_of_ours"))
                   ? show_short_number(fields_number(m, "lacks_of_ours"), text)
                   : "-");
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        table_cell(t, "%s", show_short_number(fields_number(m, counts[i]), text));
}

/* Prints "version: 0.1.0 (3)": the number of living members for each value, if there are at least
 * `least` values. */
static void show_shares(const json_t *members, const char *what, size_t least)
{
    json_t *shares = json_object();
    size_t i;
    const json_t *m;
    json_array_foreach(members, i, m)
    {
        const char *value = fields_text(m, what);
        if (strcmp(fields_text(m, "state"), "alive") == 0 && value[0] != '\0')
            fields_tally(shares, value);
    }
    const char *value;
    json_t *count;
    unsigned shown = 0;
    json_object_foreach(json_object_size(shares) >= least ? shares : NULL, value, count)
    {
        printf("%s%s%s (%lld)", shown == 0 ? what : "", shown == 0 ? ": " : ", ", value,
               (long long)json_integer_value(count));
        shown++;
    }
    printf("%s", shown > 0 ? "\n" : "");
    json_decref(shares);
}

/* Prints facts about routers that an operator should look at, a line each. */
static void show_notes(const json_t *answer)
{
    size_t i;
    const json_t *m;
    if (fields_has_text(answer, "alone"))
        printf("alone: %s\n", fields_text(answer, "alone"));
    json_array_foreach(json_object_get(answer, "members"), i, m)
    {
        const char *name = fields_text(m, "name");
        if (json_is_true(json_object_get(m, "duplicate_name")))
            printf("%s: two live routers have this name; one is at %s\n", name,
                   fields_text(m, "duplicate_at"));
        if (json_object_get(m, "differs") != NULL)
            printf("%s: %s\n", name, fields_text(m, "differs"));
        if (fields_has_text(m, "tcp_filtered"))
            printf("%s: TCP to %s is filtered and UDP is not: open the gossip port for both\n",
                   name, fields_text(m, "tcp_filtered"));
        if (json_object_get(m, "hints") != NULL)
            printf("%s: %s\n", name, fields_text(m, "hints"));
    }
}

static void show_index(const json_t *stats)
{
    const json_t *state = json_object_get(stats, "state");
    const json_t *repair = json_object_get(json_object_get(stats, "reconcile"), "last_round");
    char text[3][SHOW_NUMBER_BYTES];
    printf("\nindex: %s entries in %sB of %sB\n",
           show_short_number(fields_number(state, "index_entries"), text[0]),
           show_short_number(fields_number(state, "index_bytes_used"), text[1]),
           show_short_number(fields_number(state, "index_bytes_max"), text[2]));
    if (json_is_object(repair))
        printf("last comparison: with %s, %.1f s ago: %s; %.0f differences, %sB, %.1f ms\n",
               fields_text(repair, "with"), fields_number(repair, "ago_ms") / 1000,
               fields_text(repair, "result"), fields_number(repair, "differences"),
               show_short_number(
                   fields_number(repair, "bytes_out") + fields_number(repair, "bytes_in"), text[0]),
               fields_number(repair, "took_ms"));
}

/* Prints the contents of packets by frame type, in both directions since the start. */
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
        char text[4][SHOW_NUMBER_BYTES];
        printf("  %-12s %9s %9s %9s %9s\n", type,
               show_short_number(fields_number(ways[0], "frames"), text[0]),
               show_short_number(fields_number(ways[1], "frames"), text[1]),
               show_short_number(fields_number(ways[0], "bytes"), text[2]),
               show_short_number(fields_number(ways[1], "bytes"), text[3]));
    }
    json_decref(types);
}

/* Prints for each member (row) the last delta of each author (column) that the member reports as
 * applied. */
static void show_vectors(const json_t *members)
{
    size_t i;
    const json_t *m;
    printf("\n  %-*s", NAME_WIDTH, "VECTOR");
    json_array_foreach(members, i, m)
    {
        printf(" %*.*s", COLUMN_WIDTH, COLUMN_WIDTH, fields_text(m, "name"));
    }
    printf("\n");
    json_array_foreach(members, i, m)
    {
        printf("  %-*s", NAME_WIDTH, fields_text(m, "name"));
        size_t j;
        const json_t *author;
        json_array_foreach(members, j, author)
        {
            const json_t *at =
                json_object_get(json_object_get(m, "vector"), fields_text(author, "name"));
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

static const char members_legend[] =
    "\n"
    "* marks the router that answers; the table is its view. STARTED: by each router's own\n"
    "clock; +2: the router announced itself twice more, because it became ready or denied its\n"
    "death. HEARD: time since its last packet. DELTAS: its deltas that the answering router\n"
    "knows of but has not applied; LAG: age of the oldest one. LACKS: deltas of the answering\n"
    "router that it has not confirmed. VECTOR: each router (row) has applied all deltas of each\n"
    "router (column) up to this number; above 8 routers only in --json. FRAME: type of content\n"
    "in packets.\n";

/* Prints protocol details, for verbose output only. */
static void show_depths(const json_t *answer)
{
    const json_t *members = json_object_get(answer, "members");
    if (json_array_size(members) <= COLUMNS_MAX)
        show_vectors(members);
    show_frames(json_object_get(answer, "stats"));
    show_index(json_object_get(answer, "stats"));
    printf("%s", members_legend);
}

int show_members(const struct show *how, const json_t *answer)
{
    static const struct table_column columns[] = {
        {"ROUTER", 0},
        {"STATE", 0},
        {"ADDRESS", 0},
        {"VERSION", 0},
        {"LAG ms", TABLE_RIGHT},
        {"STARTED", TABLE_RIGHT | TABLE_WIDE},
        {"RTT ms", TABLE_RIGHT | TABLE_WIDE},
        {"HEARD ms", TABLE_RIGHT | TABLE_WIDE},
        {"DELTAS", TABLE_RIGHT | TABLE_WIDE},
        {"LACKS", TABLE_RIGHT | TABLE_WIDE},
        {"PKT IN", TABLE_RIGHT | TABLE_WIDE},
        {"PKT OUT", TABLE_RIGHT | TABLE_WIDE},
        {"B IN", TABLE_RIGHT | TABLE_WIDE},
        {"B OUT", TABLE_RIGHT | TABLE_WIDE},
    };
    const json_t *members = json_object_get(answer, "members");
    struct table t;
    size_t i;
    const json_t *m;
    if (!json_is_array(members))
        return ERR_SYNTAX;
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_array_foreach(members, i, m)
    {
        add_member(how, &t, m);
    }
    table_print(&t, stdout);
    json_array_foreach(members, i, m)
    {
        if (json_is_string(json_object_get(m, "not_understood")))
            printf("%s is not understood: %s\n", fields_text(m, "name"),
                   fields_text(m, "not_understood"));
    }
    show_shares(members, "version", how->verbose ? 1 : 2);
    show_shares(members, "policy", how->verbose ? 1 : 2);
    show_notes(answer);
    if (how->verbose)
        show_depths(answer);
    return 0;
}
