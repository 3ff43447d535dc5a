/* Shows a router's choice for a request, or the choice of each router. */
#include "node/gvctl/show_internal.h"

enum { NAME_WIDTH = 28, COLUMN_WIDTH = 27 };

/* Returns the explanation's row for the replica, or NULL. */
static const json_t *find_replica(const json_t *explained, const char *name)
{
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(explained, "replicas"), i, r)
    {
        if (fields_equal(r, "replica", name))
            return r;
    }
    return NULL;
}

static bool has_tier_tokens(const json_t *explained)
{
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(explained, "replicas"), i, r)
    {
        if (fields_number(r, "tier_tokens") > 0)
            return true;
    }
    return false;
}

/* Prints each term of the cost at each replica. Columns of terms that no replica has are left
 * out. */
static void show_costs(const struct show *how, const json_t *e, bool tier, bool adapter)
{
    const unsigned hidden = TABLE_WIDE | TABLE_RIGHT;
    const struct table_column columns[] = {{"REPLICA", 0},
                                           {"CACHED", TABLE_RIGHT},
                                           {"KNOWN BY", TABLE_WIDE},
                                           {"FROM TIER", tier ? TABLE_RIGHT : hidden},
                                           {"QUEUE s", TABLE_RIGHT},
                                           {"UNCACHED s", TABLE_RIGHT},
                                           {"DISPLACED s", TABLE_RIGHT},
                                           {"DECODE s", TABLE_RIGHT},
                                           {"ADAPTER s", adapter ? TABLE_RIGHT : hidden},
                                           {"COST s", TABLE_RIGHT}};
    const char *choice = fields_text(e, "choice"), *own = fields_text(e, "shadow_choice");
    struct table t;
    size_t i;
    const json_t *r;
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_array_foreach(json_object_get(e, "replicas"), i, r)
    {
        static const char *const terms[] = {"queue_s",  "uncached_s", "displaced_s",
                                            "decode_s", "adapter_s",  "cost_s"};
        const char *name = fields_text(r, "replica");
        table_row(&t, strcmp(name, choice) == 0 ? '>' : strcmp(name, own) == 0 ? '*' : ' ');
        table_cell(&t, "%s", name);
        table_cell(&t, "%.0f", fields_number(r, "cached_tokens"));
        table_cell(&t, "%s", fields_has_text(r, "cache_from") ? fields_text(r, "cache_from") : "-");
        table_cell(&t, "%.0f", fields_number(r, "tier_tokens"));
        for (size_t j = 0; j < ARRAY_LEN(terms); j++)
            table_cell(&t, "%.3f", fields_number(r, terms[j]));
    }
    table_print(&t, stdout);
}

static void show_left_out(const json_t *e)
{
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(e, "left_out"), i, r)
    {
        printf("- %s  %s\n", fields_text(r, "replica"), fields_text(r, "why"));
    }
}

/* Prints that the choice is a last resort, if all replicas are down. */
static void show_last_resort(const json_t *e)
{
    bool others = json_array_size(json_object_get(e, "left_out")) > 0;
    if (fields_has_text(e, "last_resort"))
        printf(
            "%s is down%s (%s): the router would try it as a last resort (when-all-down: try).\n",
            fields_text(e, "choice"), others ? " too" : "",
            show_reason(fields_text(e, "last_resort"), "down"));
}

/* Explains the special terms in the cost of a replica. */
static void show_behind(const json_t *r)
{
    const char *name = fields_text(r, "replica");
    if (fields_number(r, "times_slower") > 1)
        printf("%s is taken to be %.1f times slower than measured: its unstreamed answers should "
               "have ended by now\n",
               name, fields_number(r, "times_slower"));
    if (fields_number(r, "beyond_s") > 0)
        printf("%s: %.3f s of its QUEUE are added because it has never run that many requests at "
               "once\n",
               name, fields_number(r, "beyond_s"));
    if (fields_number(r, "followers") > 0)
        printf("%s would make a second copy of a prefix that another replica holds. %.0f other "
               "request%s with that prefix would use the copy: DECODE and DISPLACED show this "
               "request's share\n",
               name, fields_number(r, "followers"), fields_plural(fields_number(r, "followers")));
}

static bool is_plain(const json_t *r)
{
    return fields_number(r, "times_slower") <= 1 && fields_number(r, "beyond_s") <= 0 &&
           fields_number(r, "followers") <= 0;
}

/* Explains the first few replicas with special terms: in a burst nearly all replicas have special
 * terms. */
static void show_all_behind(const json_t *e)
{
    enum { SHOWN_MAX = 4 };
    unsigned found = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(e, "replicas"), i, r)
    {
        if (is_plain(r))
            continue;
        if (found++ < SHOWN_MAX)
            show_behind(r);
    }
    if (found > SHOWN_MAX)
        printf("the same applies to %u more replicas; -o json lists them\n", found - SHOWN_MAX);
}

/* Explains all columns of a verbose table. */
static const char explain_legend[] =
    "\n"
    "All times are the router's estimates for this request, in seconds.\n"
    "CACHED: prompt tokens that the replica's cache holds. KNOWN BY: source of CACHED: events\n"
    "(the engine's KV-cache events), answers (they corrected the cache size) or inferred (from\n"
    "routed requests alone). FROM TIER: cached tokens in slower memory.\n"
    "QUEUE: time until this prompt can start: work booked there, requests of others, and the\n"
    "wait for a free slot or memory (QUEUE of gvctl replicas is only the booked work).\n"
    "UNCACHED: time to compute the prompt tokens that are not cached, and to load those FROM\n"
    "TIER. DISPLACED: time to recompute tokens that this prompt evicts and other requests\n"
    "would reuse. DECODE: time lost by slower output, of this request compared with the\n"
    "fastest replica, and of the requests that run beside it. ADAPTER: time to load its LoRA\n"
    "adapter, and to reload the adapter that it evicts.\n";

/* Prints how the router reads prompts: the parts without effect on engines' prompts, and the source
 * of this knowledge. */
static void show_rendering(const json_t *e)
{
    const json_t *rendering = json_object_get(e, "rendering");
    const char *text = rendering ? fields_text(rendering, "text") : "";
    if (text[0] == '\0')
        return;
    printf("\nHow the router reads prompts of %s (%s): %s (known from: %s",
           fields_text(rendering, "client")[0] ? fields_text(rendering, "client") : "all clients",
           fields_text(rendering, "form"), text, fields_text(rendering, "from"));
    double answers = fields_number(rendering, "answers");
    if (answers > 0)
        printf(", %.0f answer%s", answers, fields_plural(answers));
    printf(")\n");
}

/* True if the prompt is too long for every replica. Replicas with the longest contexts may still be
 * chosen. */
static bool fits_none(const json_t *e)
{
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(e, "replicas"), i, r)
    {
        double context = fields_number(r, "context_tokens");
        if (context <= 0 || fields_number(e, "tokens_least") <= context) /* 0: unknown */
            return false;
    }
    return true;
}

/* Prints the model behind an alias. */
static void show_alias(const json_t *e)
{
    if (fields_has_text(e, "alias") && fields_text(e, "alias")[0])
        printf("%s is an alias: the request goes to %s%s.\n\n", fields_text(e, "alias"),
               fields_text(e, "model"),
               fields_is(e, "fallback") ? ", a fallback: no replica of the model before it is up"
                                        : "");
}

/* Explains the costs if the choice does not follow from them. */
static void show_other_rule(const json_t *e)
{
    const char *choice = fields_text(e, "choice"), *own = fields_text(e, "shadow_choice");
    if (fields_has_text(e, "shadow_choice"))
        printf("\nShadow mode: %s routes. CACHED, QUEUE and the costs are those that the router's "
               "own\npolicy would have made. It would choose %s%s.",
               fields_text(e, "policy"), strcmp(choice, own) == 0 ? "the same" : own,
               strcmp(choice, own) == 0 ? "" : " (*)");
    else if (!fields_equal(e, "policy", "cache_aware"))
        printf("\nThe choice is the policy's own; the costs are what cache_aware would weigh.");
}

int show_explain(const struct show *how, const json_t *e)
{
    if (!json_is_object(e))
        return ERR_SYNTAX;
    show_alias(e);
    if (json_is_string(json_object_get(e, "error"))) {
        printf("policy %s: %s (model \"%s\")\n", fields_text(e, "policy"), fields_text(e, "error"),
               fields_text(e, "model"));
        show_left_out(e);
        return 0;
    }
    double prompt = fields_number(e, "prompt_tokens"), output = fields_number(e, "output_tokens"),
           checkpoints = fields_number(e, "checkpoints");
    printf("policy %s, about %.0f prompt token%s, %.0f expected output token%s, %.0f "
           "checkpoint%s\n\n",
           fields_text(e, "policy"), prompt, fields_plural(prompt), output, fields_plural(output),
           checkpoints, fields_plural(checkpoints));
    if (fields_number(e, "tokens_most") > 0)
        printf("Prompt and answer together have %.0f to %.0f tokens. %s\n\n",
               fields_number(e, "tokens_least"), fields_number(e, "tokens_most"),
               fits_none(e) ? "No replica's context is long enough: the engine will refuse it."
                            : "Some replicas' contexts may be too short.");
    bool adapter = fields_is(e, "adapter"), tier = has_tier_tokens(e);
    show_costs(how, e, tier, adapter);
    show_left_out(e);
    show_last_resort(e);
    show_other_rule(e);
    printf("\ncost = queue + uncached + %g x displaced + %g x decode%s; > marks the choice\n"
           "(among nearly equal costs the choice is random)\n",
           fields_number(e, "displaced_weight"), fields_number(e, "decode_weight"),
           adapter ? " + adapter" : "");
    if (fields_is(find_replica(e, fields_text(e, "choice")), "due"))
        printf("%s is slow, but no request waits there while requests wait at the cheapest "
               "replica; lately it got less work than its speed allows\n",
               fields_text(e, "choice"));
    show_all_behind(e);
    show_rendering(e);
    if (how->verbose)
        printf("%s", explain_legend);
    else if (tier)
        printf("FROM TIER: the part of CACHED that must be loaded from a slower tier; UNCACHED "
               "includes the time\n");
    return 0;
}

/* --- side by side --------------------------------------------------------------------------- */

/* Returns the names of all replicas that some router weighed, as keys of an object. */
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
            (void)json_object_set_new(names, fields_text(replica, "replica"), json_true());
        }
    }
    return names;
}

/* Prints the cost of a replica at each router. Each router estimates the prompt's length from its
 * own observations. A router's CACHED is therefore shown beside the same router's estimate:
 * compared with another router's, CACHED could exceed the total. */
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
            (void)snprintf(cell, sizeof cell, "%c%9.3f %6.0f of %6.0f",
                           fields_equal(node, "choice", replica) ? '>' : ' ',
                           fields_number(r, "cost_s"), fields_number(r, "cached_tokens"),
                           fields_number(node, "prompt_tokens"));
        printf(" %*s", COLUMN_WIDTH, cell);
    }
    printf("\n");
}

/* Names the routers with a policy other than cache_aware, which may choose a replica of higher
 * cost. */
static void show_policies(json_t *nodes)
{
    const char *key;
    json_t *node;
    bool any = false;
    json_object_foreach(nodes, key, node)
    {
        bool other = json_is_string(json_object_get(node, "policy")) &&
                     !fields_equal(node, "policy", "cache_aware");
        if (other)
            printf("%s%s: policy %s does not choose by these costs\n", any ? "" : "\n", key,
                   fields_text(node, "policy"));
        any = any || other;
    }
}

bool show_explain_chooses(const json_t *answer)
{
    json_t *nodes = json_object_get(answer, "nodes"), *node;
    const char *key;
    bool any = fields_has_text(answer, "choice");
    json_object_foreach(nodes, key, node)
    {
        any = any || fields_has_text(node, "choice");
    }
    return any;
}

int show_explain_all(const struct show *how, const json_t *answer)
{
    json_t *nodes = json_object_get(answer, "nodes");
    (void)how;
    if (!json_is_object(nodes))
        return ERR_SYNTAX;
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
        printf(" %*s", COLUMN_WIDTH, "COST s CACHED of PROMPT");
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
        if (error != NULL) {
            printf("%s: %s\n", key, error);
            show_left_out(node);
        } else if (fields_has_text(node, "last_resort")) {
            printf("%s: ", key);
            show_last_resort(node);
        }
    }
    printf("\n"
           "> marks the choice of each router. CACHED of PROMPT: tokens, as that router estimates\n"
           "them. Estimates differ until each router has learned the engine's bytes per token.\n");
    show_policies(nodes);
    return 0;
}
