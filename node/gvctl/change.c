#include "node/gvctl/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/plain.h"

#define WAIT_STEP_S 0.2

enum {
    SENTENCE_BYTES = 1024,
    WAIT_S = 600,      /* limit of --wait without --timeout */
    WAIT_QUIET = 5,    /* looks in a row without requests: reports of other routers take a moment */
    WAIT_UNKNOWN = 25, /* looks in a row without the replica: a router is restarting */
};

/* --- replicas in the router's view ------------------------------------------------------------ */

/* Returns the router's name of the replica, "https://HOST:PORT" with TLS. An older router does not
 * report the name: then returns the user's spelling, which may differ. */
static struct slice name_of(const char *argument, const json_t *answer)
{
    const char *told = json_string_value(json_object_get(answer, "replica"));
    struct slice name = slice_of_cstr(told != NULL ? told : argument != NULL ? argument : "");
    if (told != NULL)
        return name;
    if (slice_starts_with(name, SLICE("http://")))
        name = slice_skip(name, strlen("http://"));
    if (slice_ends_with(name, SLICE("/")))
        name.len--;
    return name;
}

/* True if the row is this replica or, for an address, a rank of it. */
static bool is_part(const json_t *row, struct slice name)
{
    struct slice own = slice_of_cstr(fields_text(row, "name"));
    return slice_equal(own, name) ||
           (slice_starts_with(own, name) && own.len > name.len && own.at[name.len] == '@');
}

struct load {
    bool known;
    double here, others; /* requests in flight, from the asked router and from the others */
};

static struct load load_of(const json_t *replicas, struct slice name)
{
    struct load sum = {0};
    size_t i;
    const json_t *row;
    json_array_foreach(replicas, i, row)
    {
        if (!is_part(row, name))
            continue;
        const json_t *load = json_object_get(row, "load");
        sum.known = true;
        sum.here += fields_number(load, "requests");
        sum.others += fields_number(load, "requests_of_others");
    }
    return sum;
}

static bool serves(const json_t *row, const char *model)
{
    size_t i;
    const json_t *name;
    bool taken = !fields_equal(row, "health", "up") || fields_number(row, "ranks") > 0;
    json_array_foreach(json_object_get(json_object_get(row, "models"), "names"), i, name)
    {
        if (!taken && json_is_string(name) && strcmp(json_string_value(name), model) == 0)
            return true;
    }
    return false;
}

/* Warns of each model that this replica serves and no other replica that is up. */
static void warn_of_last(const json_t *replicas, struct slice name)
{
    json_t *models = json_object(); /* name -> served by others */
    size_t i, j;
    const json_t *row, *model;
    bool others = false;
    json_array_foreach(replicas, i, row)
    {
        others = others || (!is_part(row, name) && fields_equal(row, "health", "up"));
        json_array_foreach(json_object_get(json_object_get(row, "models"), "names"), j, model)
        {
            if (is_part(row, name) && json_is_string(model))
                (void)json_object_set_new(models, json_string_value(model), json_false());
        }
    }
    const char *key;
    json_t *served;
    json_object_foreach(models, key, served)
    {
        bool any = false;
        json_array_foreach(replicas, i, row)
        {
            any = any || (!is_part(row, name) && serves(row, key));
        }
        if (!any && others)
            plain_printf(stderr,
                         "gvctl: warning: no other replica that is up serves \"%s\": from now on, "
                         "routers refuse requests for it\n",
                         key);
    }
    if (!others)
        (void)fprintf(stderr, "gvctl: warning: that was the last replica that was up: from now on, "
                              "routers refuse requests\n");
    json_decref(models);
}

/* --- sentences ------------------------------------------------------------------------------- */

static void say_load(const struct load *load, char *out, size_t size)
{
    double all = load->here + load->others;
    if (!load->known)
        (void)snprintf(out, size, "the number of requests in flight there is unknown");
    else if (all == 0)
        (void)snprintf(out, size, "nothing is in flight there");
    else
        (void)snprintf(out, size, "%.0f request%s still in flight there (%.0f from other routers)",
                       all, all == 1 ? " is" : "s are", load->others);
}

static void say_added(const char *name, const json_t *answer, char *out)
{
    if (fields_is(answer, "already"))
        (void)snprintf(out, SENTENCE_BYTES, "%s is already a replica", name);
    else if (fields_is(answer, "waits"))
        (void)snprintf(out, SENTENCE_BYTES, "%s is added but not used yet: replicas-max is reached",
                       name);
    else if (json_is_false(json_object_get(answer, "answers")))
        (void)snprintf(
            out, SENTENCE_BYTES,
            "%s is added for all routers, but %s: it gets requests once its health check succeeds",
            name, fields_text(answer, "why"));
    else
        (void)snprintf(out, SENTENCE_BYTES, "%s is added for all routers", name);
}

static void say_undrained(const char *name, const json_t *answer, char *out)
{
    const json_t *by = json_object_get(answer, "drained_by");
    char who[256] = "";
    size_t i;
    const json_t *source;
    json_array_foreach(by, i, source)
    {
        size_t len = strlen(who);
        (void)snprintf(who + len, sizeof who - len, "%s%s", i > 0 ? ", " : "",
                       json_is_string(source) ? json_string_value(source) : "-");
    }
    if (json_is_string(by))
        (void)snprintf(out, SENTENCE_BYTES, "%s still drains: %s", name, json_string_value(by));
    else if (who[0] != '\0')
        (void)snprintf(out, SENTENCE_BYTES, "%s still drains because its source says so (%s)", name,
                       who);
    else if (fields_has_text(answer, "still_out"))
        (void)snprintf(out, SENTENCE_BYTES,
                       "%s no longer drains, but gets no requests yet: it is %s", name,
                       fields_text(answer, "still_out"));
    else
        (void)snprintf(out, SENTENCE_BYTES, "%s gets requests again, from all routers", name);
}

/* Says how many caches are empty now, and the errors of the remaining replicas. */
static void say_reset(const json_t *answer, char out[SENTENCE_BYTES])
{
    const json_t *rows = json_object_get(answer, "replicas"), *row;
    size_t i, good = 0, asked = 0;
    json_array_foreach(rows, i, row)
    {
        asked += !fields_has_text(row, "left_out");
        good += (int)fields_number(row, "status") / 100 == 2;
    }
    (void)snprintf(out, SENTENCE_BYTES, "%zu of %zu %s", good, asked,
                   asked == 1 ? "replica emptied its cache" : "replicas emptied their caches");
    json_array_foreach(rows, i, row)
    {
        size_t len = strlen(out);
        unsigned status = (unsigned)fields_number(row, "status");
        bool told = fields_has_text(row, "error") || fields_has_text(row, "answer");
        const char *why = fields_text(row, fields_has_text(row, "error") ? "error" : "answer");
        if (fields_has_text(row, "left_out"))
            (void)snprintf(out + len, SENTENCE_BYTES - len, "\n%s: not asked, %s",
                           fields_text(row, "replica"), fields_text(row, "left_out"));
        else if (status / 100 != 2)
            (void)snprintf(out + len, SENTENCE_BYTES - len, "\n%s: %u%s%.100s",
                           fields_text(row, "replica"), status, told ? ", " : "", told ? why : "");
    }
}

static void say(const struct command *c, const char *argument, const json_t *answer,
                const struct load *load, char out[SENTENCE_BYTES])
{
    struct slice name = name_of(argument, answer);
    char who[256], runs[160];
    (void)snprintf(who, sizeof who, "%.*s", SLICE_ARG(name));
    say_load(load, runs, sizeof runs);
    switch (c->call) {
    case ADMIN_CALL_DRAIN:
        (void)snprintf(out, SENTENCE_BYTES, "%s drains: no router sends it new requests; %s", who,
                       runs);
        break;
    case ADMIN_CALL_UNDRAIN:
        say_undrained(who, answer, out);
        break;
    case ADMIN_CALL_ADD:
        say_added(who, answer, out);
        break;
    case ADMIN_CALL_REMOVE:
        if (fields_is(answer, "already"))
            (void)snprintf(out, SENTENCE_BYTES, "%s was already removed", who);
        else
            (void)snprintf(out, SENTENCE_BYTES, "%s is removed for all routers; %s", who, runs);
        break;
    case ADMIN_CALL_RESET_CACHE:
        say_reset(answer, out);
        break;
    case ADMIN_CALL_FORGET:
        (void)snprintf(out, SENTENCE_BYTES,
                       "request %s is no longer refused: all routers serve it again", argument);
        break;
    case ADMIN_CALL_MEMBER_FORGET:
        (void)snprintf(out, SENTENCE_BYTES, "router %s is no longer shown", argument);
        break;
    case ADMIN_CALL_LOG_LEVEL:
        (void)snprintf(out, SENTENCE_BYTES, "the log level is %s until the next start", argument);
        break;
    default:
        (void)snprintf(out, SENTENCE_BYTES, "%s: done", c->name);
    }
}

/* --- drain --wait ---------------------------------------------------------------------------- */

static json_t *replicas_of(const struct given *g)
{
    return ask_json(g, ADMIN_CALL_REPLICAS, true);
}

/* Looks at the requests in flight. Returns the number of looks in a row without any: 0 if
 * unknown. */
static unsigned look(const struct given *g, struct slice name, struct load *load, unsigned quiet,
                     unsigned *unknown)
{
    json_t *replicas = replicas_of(g);
    if (replicas == NULL)
        return 0; /* the router may be restarting: keep waiting */
    *load = load_of(replicas, name);
    *unknown = load->known ? 0 : *unknown + 1;
    json_decref(replicas);
    return load->known && load->here + load->others == 0 ? quiet + 1 : 0;
}

/* Waits until no router has requests in flight at the replica, in WAIT_QUIET looks in a row. */
static int wait_for(const struct given *g, struct slice name)
{
    unsigned limit_s = g->timeout_s > 0 ? g->timeout_s : WAIT_S;
    double end = call_seconds() + limit_s;
    bool terminal = isatty(STDERR_FILENO) != 0;
    struct load load = {0};
    unsigned quiet = 0, unknown = 0;
    while (quiet < WAIT_QUIET && unknown < WAIT_UNKNOWN && call_seconds() < end) {
        quiet = look(g, name, &load, quiet, &unknown);
        if (terminal)
            (void)fprintf(stderr, "\r\033[K%.*s: %.0f in flight, %.0f of them from other routers",
                          SLICE_ARG(name), load.here + load.others, load.others);
        if (quiet < WAIT_QUIET)
            call_pause(WAIT_STEP_S);
    }
    (void)fprintf(stderr, "%s", terminal ? "\r\033[K" : "");
    if (quiet < WAIT_QUIET && unknown > 0)
        (void)fprintf(stderr,
                      "gvctl: the router at --admin has no replica %.*s: the number of requests in "
                      "flight there is unknown\n",
                      SLICE_ARG(name));
    else if (quiet < WAIT_QUIET)
        (void)fprintf(stderr,
                      "gvctl: gave up after %u s: %.0f in flight at %.*s, %.0f of them "
                      "from other routers; it still drains\n",
                      limit_s, load.here + load.others, SLICE_ARG(name), load.others);
    return quiet < WAIT_QUIET ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* Makes the call; with --wait repeats it while the router joins the cluster. Returns the HTTP
 * status, or call_admin()'s result after a failure. */
static int call_of(const struct given *g, const struct command *c, const char *argument,
                   struct buf *out)
{
    double end = call_seconds() + (g->timeout_s > 0 ? g->timeout_s : WAIT_S);
    for (;;) {
        buf_clear(out);
        int status = ask_command(g, c, argument, (struct slice){0}, out);
        if (status != 503 || !g->wait || call_seconds() >= end)
            return status;
        call_pause(WAIT_STEP_S);
    }
}

/* True if the asked router has a member with this name. */
static bool is_router(const struct given *g, const char *name)
{
    json_t *answer = ask_json(g, ADMIN_CALL_MEMBERS, true);
    size_t i;
    const json_t *m;
    bool is = false;
    json_array_foreach(json_object_get(answer, "members"), i, m)
    {
        is = is || fields_equal(m, "name", name);
    }
    json_decref(answer);
    return is;
}

/* Explains a refusal with 400 or 404. A router is drained by a signal to the process, not by
 * name. */
static void hint(const struct given *g, const struct command *c, const char *argument, int answer)
{
    bool out = c->call == ADMIN_CALL_DRAIN || c->call == ADMIN_CALL_REMOVE;
    bool of_replica = out || c->call == ADMIN_CALL_UNDRAIN;
    if (out && is_router(g, argument))
        plain_printf(stderr,
                     "       %s is a router. Stop it with SIGTERM (systemctl stop grapevine); it "
                     "then drains by itself.\n",
                     argument);
    else if (of_replica && answer == 400)
        (void)fputs("       Give HOST:PORT of a replica; gvctl replicas lists them.\n", stderr);
}

int change(const struct given *g, const struct command *c, const char *argument)
{
    bool of_replica = c->call == ADMIN_CALL_DRAIN || c->call == ADMIN_CALL_REMOVE;
    bool table = g->show.format == SHOW_TABLE;
    json_t *before = of_replica && (table || g->wait) ? replicas_of(g) : NULL;
    struct buf out = {0};
    int status = EXIT_FAILURE;
    int answer = call_of(g, c, argument, &out);
    json_t *said = json_loadb(out.at, out.len, JSON_DECODE_ANY, NULL);
    /* Some replicas succeeded and some failed: the answer has a row for each. */
    bool partly = answer > 200 && c->call == ADMIN_CALL_RESET_CACHE &&
                  json_is_array(json_object_get(said, "replicas"));
    if (answer == 200 || partly) {
        char sentence[SENTENCE_BYTES];
        plain_json(said); /* the JSON output is printed from the raw answer */
        struct slice name = name_of(argument, said);
        struct load load = load_of(before, name);
        if (of_replica && load.known)
            warn_of_last(before, name);
        status = g->wait ? wait_for(g, name) : EXIT_SUCCESS;
        if (status == EXIT_SUCCESS && g->wait)
            load = (struct load){.known = true};
        say(c, argument, said, &load, sentence);
        if (status == EXIT_SUCCESS)
            status = ask_show(g, c, buf_slice(&out), sentence);
        if (partly)
            status = EXIT_FAILURE;
    } else if (answer > 0) {
        ask_error(answer, buf_slice(&out));
        if (answer == 400 || answer == 404)
            hint(g, c, argument, answer);
    }
    json_decref(said);
    json_decref(before);
    buf_free(&out);
    return status;
}
