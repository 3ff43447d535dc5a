/* Shows a router's replicas and their sources. */
#include "node/gvctl/columns.h"
#include "node/gvctl/show_internal.h"

#include <math.h>

/* Returns the source of the replica in a word, for the column FROM. */
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
    if (fields_equal(replica, "wish", "added"))
        return "added";
    if (fields_is(replica, "unnamed"))
        return "unnamed";
    return fields_is(replica, "configured") ? "gone" : "heard";
}

/* Returns the number of models from the replica's own list, or "2?" from clients' answers. With
 * nothing known: "refused" if the replica refuses to answer, else "-". */
static const char *models_of(const json_t *replica, char out[16])
{
    const json_t *models = json_object_get(replica, "models");
    bool listed = fields_equal(models, "from", "engine");
    if (!listed && fields_number(models, "count") < 1)
        return json_array_size(json_object_get(replica, "probes_refused")) > 0 ? "refused" : "-";
    (void)snprintf(out, 16, "%.0f%s", fields_number(models, "count"), listed ? "" : "?");
    return out;
}

/* Prints the first model and the number of further models; empty if none is known. */
static void put_model(struct table *t, const json_t *replica)
{
    const json_t *names = json_object_get(json_object_get(replica, "models"), "names");
    const char *first = json_string_value(json_array_get(names, 0));
    size_t count = json_array_size(names);
    if (first == NULL)
        table_cell(t, "%s", "");
    else if (count == 1)
        table_cell(t, "%s", first);
    else
        table_cell(t, "%s +%zu", first, count - 1);
}

/* Lists replicas that refuse the router's own requests, and the remedy. */
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
        printf("%s%s refuses the router's", any ? "" : "\n", fields_text(r, "name"));
        json_array_foreach(paths, j, path)
        {
            printf(" %s", json_string_value(path));
        }
        const json_t *models = json_object_get(r, "models");
        printf(" (401 or 403); models learned from clients: %.0f\n",
               fields_number(models, "count"));
        any = true;
        has_key = fields_is(r, "api_key");
    }
    if (any)
        printf("%s The router re-reads the file when it changes.\n",
               has_key ? "The engine refuses the key in replica-api-key-file: write the engines' "
                         "API key there."
                       : "Give the router the engines' API key: --replica-api-key-file FILE.");
}

/* Lists replicas without a list of models, which receive requests for any model, and the remedy. */
static void show_listless(const json_t *list)
{
    size_t i;
    const json_t *r;
    bool any = false;
    json_array_foreach(list, i, r)
    {
        const json_t *models = json_object_get(r, "models");
        if (!json_is_number(json_object_get(models, "list_status")) ||
            fields_has_text(models, "label") || !fields_equal(r, "health", "up"))
            continue;
        printf("%s%s lists no models: GET /v1/models answered %.0f%s.\n", any ? "" : "\n",
               fields_text(r, "name"), fields_number(models, "list_status"),
               fields_number(models, "list_status") == 200 ? ", but no list" : "");
        any = true;
    }
    if (any)
        printf("The router may send it requests for any model. If it is not an engine, correct its "
               "host, port or path; "
               "if it is one,\nname its model by a label (http://HOST:PORT#model=NAME).\n");
}

static void show_routers(const json_t *list)
{
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
    {
        if (json_is_string(json_object_get(r, "router")))
            printf("\n"
                   "%s is a Grapevine router (%s), not an engine, and gets no requests. Remove it "
                   "from the replicas\n"
                   "(replica in the settings, or gvctl remove).\n",
                   fields_text(r, "name"), fields_text(r, "router"));
    }
}

const char *show_replica_health(const json_t *replica)
{
    const char *health = fields_text(replica, "health");
    if (strcmp(health, "up") == 0 && fields_equal(replica, "why", "asleep"))
        return "asleep";
    return strcmp(health, "up") == 0 && fields_is(replica, "avoided") ? "avoided" : health;
}

json_t *show_replicas_not_up(const json_t *replicas)
{
    json_t *out = json_array();
    size_t i;
    json_t *r;
    for (int down = 1; down >= 0; down--) {
        json_array_foreach(replicas, i, r)
        {
            const char *health = show_replica_health(r);
            bool up = strcmp(health, "up") == 0 || fields_number(r, "ranks") > 0;
            if (!up && (strcmp(health, "down") == 0) == (down == 1))
                (void)json_array_append(out, r);
        }
    }
    return out;
}

const char *show_reason(const char *text, const char *health)
{
    size_t n = strlen(health);
    return strncmp(text, health, n) == 0 && strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

/* Returns the status of the health check's answer, if this is why the replica is out; "": another
 * reason, or no answer. */
static const char *check_status(const json_t *r, char out[16])
{
    out[0] = '\0';
    bool why = fields_equal(r, "why", "checks") || fields_equal(r, "why", "leaving");
    if (why && json_is_number(json_object_get(r, "check_status")))
        (void)snprintf(out, 16, "%.0f", fields_number(r, "check_status"));
    return out;
}

const char *show_replica_why(const json_t *r, char out[SHOW_WHY_BYTES])
{
    const char *why = fields_text(r, "why");
    char left[16] = "", status[16];
    const char *sign =
        strcmp(why, "stalled") == 0 ? fields_text(r, "stalled") : check_status(r, status);
    if (why[0] == '\0' && fields_number(r, "ranks") > 0) {
        (void)snprintf(out, SHOW_WHY_BYTES, "ranks:%.0f", fields_number(r, "ranks"));
        return out;
    }
    if (why[0] == '\0' || strcmp(why, show_replica_health(r)) == 0)
        return "-";
    if (json_is_number(json_object_get(r, "why_for_ms")))
        (void)snprintf(left, sizeof left, ":%.1fs", fields_number(r, "why_for_ms") / 1000);
    bool too = fields_is(r, "drained") && strcmp(why, "drained") != 0;
    (void)snprintf(out, SHOW_WHY_BYTES, "%s%s%s%s%s", why, sign[0] != '\0' ? ":" : "", sign, left,
                   too ? ",drained" : "");
    return out;
}

const char *show_replica_why_text(const json_t *r, char out[SHOW_WHY_TEXT_BYTES])
{
    char status[16];
    bool answered = check_status(r, status)[0] != '\0';
    (void)snprintf(out, SHOW_WHY_TEXT_BYTES, "%s%s%s",
                   fields_has_text(r, "why_text") ? fields_text(r, "why_text") : "",
                   answered ? " with status " : "", status);
    return out;
}

static const char *next_of_rejecting(const json_t *r)
{
    double status = fields_number(r, "rejects_status");
    if (status == 401 || status == 403)
        return "give the engine the API key that the model's other engines have";
    return status == 404 ? "compare its model and adapters with those of the model's other engines"
                         : "compare its chat template, tool parser, flags and version with those "
                           "of the model's other engines";
}

/* Returns advice if the trouble does not end by itself; "" otherwise. */
static const char *next_of(const json_t *r)
{
    static const struct {
        const char *why, *next;
    } rows[] = {
        {"no_address",
         "correct the name, give it an address in DNS or /etc/hosts, or gvctl remove it"},
        {"dns_silent",
         "check that the nameserver in /etc/resolv.conf is up and reachable from this router"},
        {"dns_fails", "replica_unresolved in the router's log has the DNS server's error"},
        {"refuses", "start the engine, or gvctl remove it"},
        {"checks", "the engine's log says why; restart the engine, or gvctl remove it"},
        {"requests", "the engine's log says why; restart the engine, or gvctl remove it"},
        {"tls", "gvctl events says how to fix TLS"},
        {"drained", "run gvctl undrain when it may serve again"},
        {"stalled", "look at its GPU and its log; requests that have no answer token yet move to "
                    "other replicas"},
        {"errors", "the engine's log says why; gvctl drain keeps requests away"},
        {"broke", "the engine's log says why; gvctl drain keeps requests away"},
    };
    double status = fields_number(r, "check_status");
    if (fields_equal(r, "why", "checks") && status > 0 && status < 500)
        return "check that the engine runs there: its host (sent as Host), port or health-path may "
               "be wrong";
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (fields_equal(r, "why", rows[i].why))
            return rows[i].next;
    }
    return fields_equal(r, "why", "rejects") ? next_of_rejecting(r) : "";
}

/* Lists the first few replicas that are not up, with reason and advice. Routers found among the
 * replicas have a separate sentence. Includes replicas that reject requests accepted by their
 * peers, even if up and used. */
static void show_not_up(const json_t *list)
{
    enum { SHOWN_MAX = 4 };
    unsigned found = 0;
    size_t i;
    json_t *r;
    json_t *rows = show_replicas_not_up(list);
    json_array_foreach(list, i, r)
    {
        if (fields_equal(r, "why", "rejects") && !fields_is(r, "avoided"))
            (void)json_array_append(rows, r);
    }
    json_array_foreach(rows, i, r)
    {
        bool told = fields_has_text(r, "why_text") && !fields_equal(r, "why", "router");
        if (!told || found++ >= SHOWN_MAX)
            continue;
        const char *next = next_of(r);
        char why[SHOW_WHY_TEXT_BYTES], line[SHOW_WHY_TEXT_BYTES + 512];
        (void)snprintf(line, sizeof line, "%s  %s%s%s", fields_text(r, "name"),
                       show_replica_why_text(r, why), next[0] != '\0' ? ": " : "", next);
        printf("%s- ", found == 1 ? "\n" : "");
        columns_wrap(line, 2);
        printf("\n");
    }
    json_decref(rows);
    if (found > SHOWN_MAX)
        printf("and %u more\n", found - SHOWN_MAX);
}

/* Explains why the router ignores a replica's KV-cache events, and the remedy. */
static void put_events_trouble(const json_t *e)
{
    printf("KV-cache events from %s %s", fields_text(e, "from"), fields_text(e, "state_text"));
    if (fields_equal(e, "state", "contradicts"))
        printf(": of %.0f answers, %.0f had no blocks in the events, and %.0f found fewer or more "
               "than the events say. The router tries the events again in %.0f min. Check that the "
               "feed belongs to this engine.\n",
               fields_number(e, "answers"), fields_number(e, "unmatched"),
               fields_number(e, "contradicted"), ceil(fields_number(e, "believed_in_ms") / 60000));
    else if (fields_equal(e, "state", "block_size"))
        printf(". Blocks here have %.0f tokens. Start engines with the same --block-size (SGLang: "
               "--page-size).\n",
               fields_number(e, "block_tokens"));
    else
        printf(". Make the tier publish events, too.\n");
}

/* Lists the first few replicas with useless KV-cache events. */
static void show_events_trouble(const json_t *list)
{
    enum { SHOWN_MAX = 4 };
    unsigned found = 0;
    size_t i;
    const json_t *r;
    json_array_foreach(list, i, r)
    {
        const json_t *e = json_object_get(r, "events");
        bool trouble = fields_equal(e, "state", "contradicts") ||
                       fields_equal(e, "state", "block_size") ||
                       fields_equal(e, "state", "silent_tier");
        if (!trouble || found++ >= SHOWN_MAX)
            continue;
        printf("%s- %s  ", found == 1 ? "\n" : "", fields_text(r, "name"));
        put_events_trouble(e);
    }
    if (found > SHOWN_MAX)
        printf("and %u more\n", found - SHOWN_MAX);
}

/* Returns the tokens in the replica's cache, computed from prompt bytes and the replica's bytes per
 * token. */
static double held_of(const json_t *r)
{
    double per_token = fields_number(json_object_get(r, "learned"), "bytes_per_token");
    double bytes = fields_number(json_object_get(r, "cache"), "present_bytes");
    return bytes / (per_token > 0 ? per_token : 4);
}

static const char replicas_legend[] =
    "\n"
    "HEALTH: an avoided replica is up, and gets a request only if no other replica can take it.\n"
    "WHY: why the router does not choose the replica, and for how long if known;\n"
    "checks:503: health checks fail with this status; refuses,drained: the port refuses\n"
    "connections, and an operator drained the replica;\n"
    "ranks:4: the router chooses the data-parallel ranks instead, NAME@0 and the rows below.\n"
    "MODELS: number of models that the engine lists; 2?: learned from clients' requests;\n"
    "refused: the engine answers 401 or 403, and no model is known; -: none is known.\n"
    "FROM: source at this router (gvctl sources; + if several); added: by gvctl add;\n"
    "rank: the address has a source; gone: dropped by its source; heard: named by another\n"
    "router; unnamed: no living router names it, and it disappears within 16 minutes.\n"
    "CHOSEN: by this router. REQUESTS: in flight, of all routers; OTHERS': of these, of other\n"
    "routers. QUEUE: time until the waiting prompts are computed. CONTEXT: tokens of prompt\n"
    "and answer at most; -: unknown. CACHE and HELD: tokens (50.0k: fifty thousand), the size of\n"
    "the KV cache and the part that this router believes to be filled. KNOWN BY: events: KV-cache\n"
    "events; answers: these corrected the cache size; inferred: from routed requests alone;\n"
    "events off: the label kv-events=off.\n";

/* Returns how much the replica is in trouble; 0: in full use. */
static unsigned trouble_of(const json_t *r)
{
    const char *health = show_replica_health(r);
    bool up = strcmp(health, "up") == 0;
    return strcmp(health, "down") == 0 ? 3 : !up ? 2 : fields_equal(r, "why", "rejects") ? 1 : 0;
}

/* Returns all rows, those in trouble first; owned by the caller. */
static json_t *by_trouble(const json_t *list)
{
    json_t *out = json_array(), *r;
    size_t i;
    for (int trouble = 3; trouble >= 0; trouble--) {
        json_array_foreach(list, i, r)
        {
            if (trouble_of(r) == (unsigned)trouble)
                (void)json_array_append(out, r);
        }
    }
    return out;
}

int show_replicas(const struct show *how, const json_t *list)
{
    static const struct table_column columns[] = {{"REPLICA", TABLE_CUT},
                                                  {"HEALTH", 0},
                                                  {"WHY", 0},
                                                  {"ENGINE", 0},
                                                  {"MODELS", TABLE_WIDE},
                                                  {"FROM", TABLE_WIDE},
                                                  {"CHOSEN", TABLE_RIGHT | TABLE_WIDE},
                                                  {"REQUESTS", TABLE_RIGHT},
                                                  {"OTHERS'", TABLE_RIGHT | TABLE_WIDE},
                                                  {"QUEUE s", TABLE_RIGHT},
                                                  {"PREFILL/s", TABLE_RIGHT | TABLE_WIDE},
                                                  {"CONTEXT", TABLE_RIGHT | TABLE_WIDE},
                                                  {"CACHE", TABLE_RIGHT | TABLE_WIDE},
                                                  {"HELD", TABLE_RIGHT},
                                                  {"KNOWN BY", TABLE_WIDE},
                                                  {"RESTARTS", TABLE_RIGHT | TABLE_WIDE},
                                                  {"MODEL", TABLE_CUT}};
    struct table t;
    size_t i;
    const json_t *r;
    if (!json_is_array(list))
        return ERR_SYNTAX;
    json_t *rows = by_trouble(list);
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_array_foreach(rows, i, r)
    {
        const json_t *load = json_object_get(r, "load");
        const json_t *learned = json_object_get(r, "learned");
        const json_t *cache = json_object_get(r, "cache");
        const char *health = show_replica_health(r);
        char models[16], source[24], why[SHOW_WHY_BYTES], number[SHOW_NUMBER_BYTES];
        table_row(&t, ' ');
        table_cell(&t, "%s", fields_text(r, "name"));
        table_cell(&t, "%s", health);
        table_colour(&t, show_colour(how, strcmp(health, "up") == 0));
        table_cell(&t, "%s", show_replica_why(r, why));
        table_cell(&t, "%s", fields_text(r, "engine"));
        table_cell(&t, "%s", models_of(r, models));
        table_cell(&t, "%s", source_of(r, source));
        table_cell(&t, "%.0f", fields_number(r, "chosen"));
        table_cell(&t, "%.0f",
                   fields_number(load, "requests") + fields_number(load, "requests_of_others"));
        table_cell(&t, "%.0f", fields_number(load, "requests_of_others"));
        table_cell(&t, "%.3f", fields_number(load, "queue_s"));
        table_cell(&t, "%.0f", fields_number(learned, "prefill_tokens_per_s"));
        table_cell(&t, json_is_number(json_object_get(r, "context_tokens")) ? "%.0f" : "-",
                   fields_number(r, "context_tokens"));
        table_cell(&t, "%s", show_short_number(fields_number(cache, "tokens"), number));
        table_cell(&t, "%s", show_short_number(held_of(r), number));
        table_cell(&t, "%s%s", fields_has_text(cache, "from") ? fields_text(cache, "from") : "-",
                   fields_equal(json_object_get(r, "events"), "state", "off") ? ", events off"
                                                                              : "");
        table_cell(&t, "%.0f", fields_number(r, "restarts"));
        put_model(&t, r);
    }
    table_print(&t, stdout);
    json_decref(rows);
    show_not_up(list);
    show_routers(list);
    show_refusing(list);
    show_listless(list);
    show_events_trouble(list);
    printf("%s", how->verbose ? replicas_legend : "");
    return 0;
}

/* Lists replicas removed by an operator, which are missing in the table of replicas. */
static void show_removed(const json_t *list)
{
    size_t i, j;
    const json_t *s, *name;
    bool any = false;
    json_array_foreach(list, i, s)
    {
        json_array_foreach(json_object_get(s, "removed"), j, name)
        {
            bool named = fields_has_text(s, "name");
            printf("%s%s%s%s lists %s, which an operator removed: gvctl add uses it again.\n",
                   any ? "" : "\n", fields_text(s, "kind"), named ? " " : "",
                   named ? fields_text(s, "name") : "",
                   json_string_value(name) != NULL ? json_string_value(name) : "-");
            any = true;
        }
    }
}

int show_sources(const struct show *how, const json_t *list)
{
    static const struct table_column columns[] = {{"SOURCE", 0},
                                                  {"REPLICAS", TABLE_RIGHT},
                                                  {"DRAINING", TABLE_RIGHT},
                                                  {"FAILURES", TABLE_RIGHT},
                                                  {"AGE s", TABLE_RIGHT},
                                                  {"NAME", 0}};
    struct table t;
    size_t i;
    const json_t *s;
    if (!json_is_array(list))
        return ERR_SYNTAX;
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_array_foreach(list, i, s)
    {
        char age[16] = "never";
        if (json_is_number(json_object_get(s, "age_s")))
            (void)snprintf(age, sizeof age, "%.1f", fields_number(s, "age_s"));
        table_row(&t, ' ');
        table_cell(&t, "%s", fields_text(s, "kind"));
        table_cell(&t, "%.0f", fields_number(s, "entries"));
        table_cell(&t, "%.0f", fields_number(s, "draining"));
        table_cell(&t, "%.0f", fields_number(s, "failures"));
        table_cell(&t, "%s", age);
        table_cell(&t, "%s", fields_text(s, "name"));
        bool fails = json_is_string(json_object_get(s, "error"));
        if (fails)
            table_note(&t, "%s", fields_text(s, "error"));
        else if (json_is_string(json_object_get(s, "lacks")))
            table_note(&t, "incomplete: %s", fields_text(s, "lacks"));
        if (json_is_string(json_object_get(s, "empty")) && !fails)
            table_note(&t, "empty: %s%s", fields_text(s, "empty"),
                       fields_number(s, "entries") > 0 ? "; the router keeps its last list for 30 s"
                                                       : "");
    }
    table_print(&t, stdout);
    show_removed(list);
    if (how->verbose)
        printf("\n"
               "REPLICAS: number in the source's last list. AGE: time since the last successful "
               "query;\n"
               "for settings, since the start. The line below a failing source says why; the "
               "router keeps\n"
               "its last list. The line below an empty source says why, if known.\n");
    return 0;
}
