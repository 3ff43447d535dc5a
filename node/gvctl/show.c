/* One router: its replicas, and its choice. */
#include "node/gvctl/show_internal.h"

/* Why the router has the replica. */
static const char *source_of(const json_t *replica, char out[24])
{
    if (json_is_number(json_object_get(replica, "rank")))
        return "rank";
    const json_t *sources = json_object_get(replica, "sources");
    const char *first = json_string_value(json_array_get(sources, 0));
    if (first != NULL) {
        struct slice kind = slice_of_cstr(first);
        kind = slice_cut(&kind, ' ');
        (void)snprintf(out, 24, "%.*s%s", kind.len > 20 ? 20 : (int)kind.len, kind.at,
                       json_array_size(sources) > 1 ? "+" : "");
        return out;
    }
    if (strcmp(show_text(replica, "wish"), "added") == 0)
        return "added";
    if (json_is_true(json_object_get(replica, "unnamed")))
        return "unnamed";
    return json_is_true(json_object_get(replica, "configured")) ? "gone" : "heard";
}

/* What it serves: so many models by its own list, "2?" by clients' answers. Where nothing is known:
 * "refused" if it refuses to tell, else "-". */
static const char *models_of(const json_t *replica, char out[16])
{
    const json_t *models = json_object_get(replica, "models");
    const char *from = show_text(models, "from");
    if (strcmp(from, "engine") != 0 && show_number(models, "count") < 1)
        return json_array_size(json_object_get(replica, "probes_refused")) > 0 ? "refused" : "-";
    (void)snprintf(out, 16, "%.0f%s", show_number(models, "count"),
                   strcmp(from, "engine") == 0 ? "" : "?");
    return out;
}

/* Those that refuse the router, and what to do about it. */
static void show_refusing(const json_t *list)
{
    size_t i, j;
    const json_t *r, *path;
    bool any = false, has_key = false;
    json_array_foreach(list, i, r)
    {
        const json_t *paths = json_object_get(r, "probes_refused");
        if (json_array_size(paths) == 0)
            continue;
        printf("%s%s refuses the router's", any ? "" : "\n", show_text(r, "name"));
        json_array_foreach(paths, j, path)
        {
            printf(" %s", json_string_value(path));
        }
        const json_t *models = json_object_get(r, "models");
        printf(" (401 or 403); models learned from clients: %.0f\n", show_number(models, "count"));
        any = true;
        has_key = json_is_true(json_object_get(r, "api_key"));
    }
    if (any)
        printf("%s The file is read anew when it changes.\n",
               has_key ? "The key in replica-api-key-file is not taken: write the engines' API key "
                         "there."
                       : "Give the router the engines' API key: --replica-api-key-file FILE.");
}

static void show_routers(const json_t *list)
{
    size_t i;
    json_t *r;
    json_array_foreach(list, i, r)
    {
        if (json_is_string(json_object_get(r, "router")))
            printf("\n%s is a Grapevine router (%s), no engine, and gets no requests: take it out "
                   "of the replicas\n(replica in the settings, or gvctl remove).\n",
                   show_text(r, "name"), show_text(r, "router"));
    }
}

/* "avoided" where it is up, but chosen only where no other will do. */
static const char *health_of(const json_t *r)
{
    const char *health = show_text(r, "health");
    if (strcmp(health, "up") == 0 && strcmp(show_text(r, "why"), "asleep") == 0)
        return "asleep";
    return strcmp(health, "up") == 0 && json_is_true(json_object_get(r, "avoided")) ? "avoided"
                                                                                    : health;
}

/* What keeps it from being chosen, and for how long where that is known, in one word:
 * "errors:4.1s". */
static const char *why_of(const json_t *r, char out[32])
{
    const char *why = show_text(r, "why");
    const char *sign = strcmp(why, "stalled") == 0 ? show_text(r, "stalled") : "";
    char left[16] = "";
    if (why[0] == '\0' && show_number(r, "ranks") > 0) {
        (void)snprintf(out, 32, "ranks:%.0f", show_number(r, "ranks"));
        return out;
    }
    if (why[0] == '\0' || strcmp(why, health_of(r)) == 0)
        return "-";
    if (json_is_number(json_object_get(r, "why_for_ms")))
        (void)snprintf(left, sizeof left, ":%.1fs", show_number(r, "why_for_ms") / 1000);
    (void)snprintf(out, 32, "%s%s%s%s", why, sign[0] != '\0' ? ":" : "", sign, left);
    return out;
}

int show_replicas(struct slice text)
{
    json_t *list = show_parse(text);
    if (!json_is_array(list)) {
        json_decref(list);
        return ERR_SYNTAX;
    }
    printf("%-28s %-9s %-16s %-7s %-7s %-10s %8s %8s %8s %9s %10s %9s %9s %9s\n", "REPLICA",
           "HEALTH", "WHY", "ENGINE", "MODELS", "FROM", "CHOSEN", "REQUESTS", "OTHERS'", "QUEUE s",
           "PREFILL/s", "CACHE", "HELD", "RESTARTS");
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
    {
        const json_t *load = json_object_get(r, "load");
        const json_t *learned = json_object_get(r, "learned");
        const json_t *cache = json_object_get(r, "cache");
        char models[16], source[24], why[32];
        printf(
            "%-28s %-9s %-16s %-7s %-7s %-10s %8.0f %8.0f %8.0f %9.3f %10.0f %8.0fk %8.0fk %9.0f\n",
            show_text(r, "name"), health_of(r), why_of(r, why), show_text(r, "engine"),
            models_of(r, models), source_of(r, source), show_number(r, "chosen"),
            show_number(load, "requests"), show_number(load, "requests_of_others"),
            show_number(load, "queue_s"), show_number(learned, "prefill_tokens_per_s"),
            show_number(cache, "tokens") / 1000, show_number(cache, "present_bytes") / 4000,
            show_number(r, "restarts"));
    }
    show_routers(list);
    show_refusing(list);
    printf("\n"
           "HEALTH: avoided replicas are up, and get a request only where no other will do.\n"
           "WHY: what keeps it from being chosen, and for how long where that is known;\n"
           "ranks:4: its data-parallel ranks are chosen instead, NAME@0 and those below it.\n"
           "MODELS: as many as the engine lists; 2? were learned from clients' requests;\n"
           "refused: the engine refuses to tell (401 or 403) and none is known; - none is known.\n"
           "FROM: its source here (gvctl sources; + if there are several), added at run time\n"
           "(gvctl add), rank: its address has a source, gone from its source, heard of from a\n"
           "router that names it, or unnamed: no living router names it, and it goes in 16\n"
           "minutes at most. CHOSEN: by this router alone. OTHERS': requests of other routers\n"
           "under way there. CACHE and HELD are\n"
           "thousands of tokens: the size of the replica's KV cache, and how much of it this\n"
           "router believes to be filled (at 4 bytes a token).\n");
    json_decref(list);
    return 0;
}

int show_sources(struct slice text)
{
    json_t *list = show_parse(text);
    if (!json_is_array(list)) {
        json_decref(list);
        return ERR_SYNTAX;
    }
    printf("%-10s %8s %9s %9s %8s  %s\n", "SOURCE", "REPLICAS", "DRAINING", "FAILURES", "AGE s",
           "NAME");
    size_t i;
    const json_t *s;
    json_array_foreach(list, i, s)
    {
        char age[16] = "never";
        if (json_is_number(json_object_get(s, "age_s")))
            (void)snprintf(age, sizeof age, "%.1f", show_number(s, "age_s"));
        printf("%-10s %8.0f %9.0f %9.0f %8s  %s\n", show_text(s, "kind"), show_number(s, "entries"),
               show_number(s, "draining"), show_number(s, "failures"), age, show_text(s, "name"));
        if (json_is_string(json_object_get(s, "error")))
            printf("    %s\n", show_text(s, "error"));
        else if (json_is_string(json_object_get(s, "lacks")))
            printf("    incomplete: %s\n", show_text(s, "lacks"));
        if (json_is_string(json_object_get(s, "empty")) &&
            !json_is_string(json_object_get(s, "error")))
            printf("    empty: %s%s\n", show_text(s, "empty"),
                   show_number(s, "entries") > 0 ? "; its last list holds for 30 s" : "");
    }
    printf("\n"
           "REPLICAS: in the list that the source gave last. AGE: since it was asked with success; "
           "of the\n"
           "settings, since the start. Below a source that fails now is why: its last list "
           "holds.\n"
           "Below one that lists nothing is why, if that is known.\n");
    json_decref(list);
    return 0;
}

static bool is_due(const json_t *explained, const char *choice)
{
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(explained, "replicas"), i, r)
    {
        if (strcmp(show_text(r, "replica"), choice) == 0)
            return json_is_true(json_object_get(r, "due"));
    }
    return false;
}

static bool has_tier_tokens(const json_t *explained)
{
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(explained, "replicas"), i, r)
    {
        if (show_number(r, "tier_tokens") > 0)
            return true;
    }
    return false;
}

int show_explain(struct slice text)
{
    json_t *e = show_parse(text);
    if (!json_is_object(e)) {
        json_decref(e);
        return ERR_SYNTAX;
    }
    const char *error = json_string_value(json_object_get(e, "error"));
    if (error != NULL) {
        printf("policy %s: %s (model \"%s\")\n", show_text(e, "policy"), error,
               show_text(e, "model"));
        json_decref(e);
        return 0;
    }
    printf("policy %s, about %.0f prompt tokens, %.0f expected output tokens, %.0f checkpoints\n\n",
           show_text(e, "policy"), show_number(e, "prompt_tokens"), show_number(e, "output_tokens"),
           show_number(e, "checkpoints"));
    bool adapter = json_is_true(json_object_get(e, "adapter"));
    bool tier = has_tier_tokens(e);
    printf("  %-28s %9s%s %9s %10s %12s %10s%s %10s\n", "REPLICA", "CACHED",
           tier ? " FROM TIER" : "", "QUEUE s", "UNCACHED s", "DISPLACED s", "DECODE s",
           adapter ? "  ADAPTER s" : "", "COST s");
    const char *choice = show_text(e, "choice");
    size_t i;
    const json_t *r;
    json_array_foreach(json_object_get(e, "replicas"), i, r)
    {
        const char *name = show_text(r, "replica");
        printf("%c %-28s %9.0f", strcmp(name, choice) == 0 ? '>' : ' ', name,
               show_number(r, "cached_tokens"));
        if (tier)
            printf(" %9.0f", show_number(r, "tier_tokens"));
        printf(" %9.3f %10.3f %12.3f %10.3f", show_number(r, "queue_s"),
               show_number(r, "uncached_s"), show_number(r, "displaced_s"),
               show_number(r, "decode_s"));
        if (adapter)
            printf(" %10.3f", show_number(r, "adapter_s"));
        printf(" %10.3f\n", show_number(r, "cost_s"));
    }
    json_array_foreach(json_object_get(e, "left_out"), i, r)
    {
        printf("- %-28s %s\n", show_text(r, "replica"), show_text(r, "why"));
    }
    if (strcmp(show_text(e, "policy"), "cache_aware") != 0)
        printf("\nThe choice is the policy's own; the costs are what cache_aware would weigh.");
    printf("\ncost = queue + uncached + %g x displaced + %g x decode%s; > marks the choice "
           "(near-equal costs are drawn among)\n",
           show_number(e, "displaced_weight"), show_number(e, "decode_weight"),
           adapter ? " + adapter" : "");
    if (is_due(e, choice))
        printf("%s is slow and has no line, the cheapest has one, and it had less than its speed "
               "deserves\n",
               choice);
    if (tier)
        printf("FROM TIER: of CACHED, what a slower tier has to bring back; UNCACHED has the time "
               "for it\n");
    json_decref(e);
    return 0;
}

/* --- several routers ------------------------------------------------------------------------ */

void show_error(int status, struct slice text)
{
    json_t *body = show_parse(text);
    const char *message =
        json_string_value(json_object_get(json_object_get(body, "error"), "message"));
    if (text.len == 0)
        text = SLICE("an answer without a word");
    if (message != NULL)
        (void)fprintf(stderr, "gvctl: %s (%d)\n", message, status);
    else
        (void)fprintf(stderr, "gvctl: %d: %.*s\n", status, SLICE_ARG(text));
    json_decref(body);
}
