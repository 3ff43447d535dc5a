/* Shows whether the routers of a cluster have the same state. */
#include "node/gvctl/show_internal.h"

bool show_convergence_equal(const json_t *answer, unsigned members)
{
    return fields_is(answer, "equal") &&
           json_object_size(json_object_get(answer, "nodes")) >= members;
}

static double observations(const json_t *node)
{
    double sum = 0;
    size_t i;
    const json_t *generation;
    json_array_foreach(json_object_get(node, "index"), i, generation)
    {
        sum += fields_number(generation, "entries");
    }
    return sum;
}

/* Prints the time slices (generations) whose digests differ between routers. Slices that a router
 * has dropped already are left out. */
static void show_generations(json_t *nodes)
{
    const char *name;
    json_t *node;
    double floor = 0;
    json_t *digests = json_object(); /* generation -> digest, or null if different */
    json_t *counts = json_object();  /* generation -> number of nodes with entries in this
                                      * generation */
    json_object_foreach(nodes, name, node)
    {
        size_t i;
        const json_t *g;
        floor = fields_number(node, "floor") > floor ? fields_number(node, "floor") : floor;
        json_array_foreach(json_object_get(node, "index"), i, g)
        {
            char key[24];
            (void)snprintf(key, sizeof key, "%.0f", fields_number(g, "generation"));
            json_t *digest = json_object_get(g, "digest");
            const json_t *known = json_object_get(digests, key);
            (void)json_object_set(
                digests, key, known == NULL || json_equal(known, digest) ? digest : json_null());
            fields_tally(counts, key);
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

static void show_differ(const json_t *answer)
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

/* --- in a sentence --------------------------------------------------------------------------- */

/* Returns a class of the state in words; an unknown class of a later version by name. */
static const char *class_words(const char *class)
{
    static const char *const words[][2] = {
        {"registry", "the list of replicas, or operators' changes to it"},
        {"index", "which replica holds which prefix"},
        {"poison", "which requests kill engines"},
        {"reports", "load and learned speeds"},
    };
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i][0], class) == 0)
            return words[i][1];
    }
    return class;
}

/* Prints the names of the routers for which `is` holds: "r1, r2". Returns their number. */
static unsigned print_routers(json_t *nodes, bool is(const json_t *node))
{
    const char *name;
    json_t *node;
    unsigned count = 0;
    json_object_foreach(nodes, name, node)
    {
        if (is(node))
            printf("%s%s", count++ == 0 ? "" : ", ", name);
    }
    return count;
}

static bool is_silent(const json_t *node)
{
    return json_object_get(node, "error") != NULL;
}

static bool is_joining(const json_t *node)
{
    return !is_silent(node) && !json_is_true(json_object_get(node, "ready"));
}

static bool any_router(json_t *nodes, bool is(const json_t *node))
{
    const char *name;
    json_t *node;
    json_object_foreach(nodes, name, node)
    {
        if (is(node))
            return true;
    }
    return false;
}

/* Prints since when the states differ, and when they were equal last, as far as this router has
 * compared them. */
static void print_since(const json_t *answer)
{
    double now = fields_number(answer, "now_ms"), since = fields_number(answer, "not_since_ms"),
           equal = fields_number(answer, "equal_ms");
    char text[SHOW_TIME_BYTES];
    if (since > 0 && now >= since)
        printf(", for %s", show_how_long((now - since) / 1000, text));
    printf(".");
    if (equal > 0 && now >= equal)
        printf(" They last held the same state %s ago.", show_how_long((now - equal) / 1000, text));
}

static void print_disagreement(const json_t *answer)
{
    size_t i;
    const json_t *class, *differ = json_object_get(answer, "differ");
    printf("The routers do not agree");
    json_array_foreach(differ, i, class)
    {
        printf("%s%s", i == 0 ? " on " : "; nor on ", class_words(json_string_value(class)));
    }
    print_since(answer);
    printf("\nUpdates may still be on their way: gvctl convergence --wait asks until the routers "
           "agree.");
}

/* Prints why routers differ; only the first reason, because it explains the others. */
static void print_why_not(const json_t *answer, unsigned members)
{
    json_t *nodes = json_object_get(answer, "nodes");
    if (any_router(nodes, is_silent)) {
        printf("It is not known whether the routers agree: ");
        (void)print_routers(nodes, is_silent);
        printf(" did not answer.");
    } else if (fields_is(answer, "equal")) {
        printf("Too few routers are alive: %zu of %u. They hold the same state.",
               json_object_size(nodes), members);
    } else if (any_router(nodes, is_joining)) {
        printf("The routers do not agree yet: ");
        unsigned count = print_routers(nodes, is_joining);
        printf(" %s joining.", count == 1 ? "is" : "are");
    } else if (json_is_false(json_object_get(answer, "comparable"))) {
        printf("The routers' states cannot be compared: no time slice is kept by all of them. "
               "Compare their clocks and settings (gvctl members).");
    } else {
        print_disagreement(answer);
    }
}

static void show_verdict(const struct show *how, const json_t *answer, unsigned members)
{
    size_t count = json_object_size(json_object_get(answer, "nodes"));
    bool good_news = show_convergence_equal(answer, members);
    printf("%s", show_colour(how, good_news));
    if (!good_news)
        print_why_not(answer, members);
    else if (count > 1)
        printf("All %zu living routers hold the same state.", count);
    else
        printf("Only one router is alive, so no state differs.");
    printf("%s\n", show_plain(how));
    json_t *lost = json_object_get(answer, "not_asked");
    const char *name;
    json_t *state;
    unsigned shown = 0;
    json_object_foreach(lost, name, state)
    {
        printf("%s%s (%s)", shown++ == 0 ? "Not asked: " : ", ", name, json_string_value(state));
    }
    printf("%s", shown > 0 ? ".\n" : "");
}

/* --- digests --------------------------------------------------------------------------------- */

static void show_digests(const struct show *how, json_t *nodes)
{
    static const struct table_column columns[] = {
        {"ROUTER", 0},
        {"REGISTRY", 0},
        {"INDEX", 0},
        {"POISON", 0},
        {"REPORTS", 0},
        {"GENERATIONS", TABLE_RIGHT | TABLE_WIDE},
        {"OBSERVATIONS", TABLE_RIGHT | TABLE_WIDE},
        {"", 0},
    };
    static const char *const digests[] = {"registry", "whole_index", "poison", "reports"};
    const int digits = how->wide ? 16 : 8;
    struct table t;
    const char *name;
    json_t *node;
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_object_foreach(nodes, name, node)
    {
        const char *error = json_string_value(json_object_get(node, "error"));
        table_row(&t, ' ');
        table_cell(&t, "%s", name);
        for (size_t i = 0; i < ARRAY_LEN(digests); i++)
            table_cell(&t, "%.*s", digits, fields_text(node, digests[i]));
        table_cell(&t, "%zu", json_array_size(json_object_get(node, "index")));
        table_cell(&t, "%.0f", observations(node));
        table_cell(&t, "%s%s",
                   error != NULL              ? "did not answer: "
                   : fields_is(node, "ready") ? ""
                                              : "joining",
                   error != NULL ? error : "");
        table_colour(&t, error != NULL ? show_colour(how, false) : "");
    }
    table_print(&t, stdout);
}

int show_convergence(const struct show *how, const json_t *answer, unsigned members)
{
    json_t *nodes = json_object_get(answer, "nodes");
    if (!json_is_object(nodes))
        return ERR_SYNTAX;
    show_verdict(how, answer, members);
    if (!how->wide)
        return 0;
    printf("\n");
    if (!fields_is(answer, "equal") && !any_router(nodes, is_silent))
        show_differ(answer);
    show_digests(how, nodes);
    if (how->verbose)
        printf("\n"
               "Digests of each router's state. REGISTRY: replica names and operators' changes.\n"
               "INDEX: which replica holds which prefix. POISON: requests that killed replicas.\n"
               "REPORTS: load and learned rates.\n");
    return 0;
}
