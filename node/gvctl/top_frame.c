#include "node/gvctl/top_frame.h"

#include <string.h>
#include <time.h>

#include "base/check.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/table.h"

enum { BAR_WIDTH = 6 };

static double seconds_between(const struct survey *now, const struct survey *before)
{
    double s = before != NULL ? now->at_s - before->at_s : 0;
    return s > 0.001 ? s : 0;
}

/* "12.5", or "-" where no rate is known. */
static const char *rate(double count, double seconds, char out[16])
{
    if (seconds == 0)
        return "-";
    (void)snprintf(out, 16, count / seconds < 100 ? "%.1f" : "%.0f", count / seconds);
    return out;
}

static const char *percent(double share, char out[16])
{
    if (share < 0)
        return "-";
    (void)snprintf(out, 16, "%.1f", 100 * share);
    return out;
}

static const char *seconds(double value, char out[16])
{
    if (value < 0)
        return "-";
    (void)snprintf(out, 16, value < 10 ? "%.3f" : "%.1f", value);
    return out;
}

static double mean(const struct survey_counters *c)
{
    return c->first_tokens > 0 ? c->first_seconds / c->first_tokens : -1;
}

static const struct survey_router *router_before(const struct survey *before, const char *name)
{
    for (unsigned i = 0; before != NULL && i < before->router_count; i++) {
        const struct survey_router *r = &before->routers[i];
        if (strcmp(r->name, name) == 0 && r->reached)
            return r;
    }
    return NULL;
}

/* What the routers that were reached both times have counted since. */
static struct survey_counters all_since(const struct survey *now, const struct survey *before)
{
    struct survey since = *now;
    struct survey_router routers[SURVEY_ROUTERS_MAX + 1];
    since.routers = routers;
    since.router_count = 0;
    for (unsigned i = 0; i < now->router_count && since.router_count < ARRAY_LEN(routers); i++) {
        struct survey_router *r = &routers[since.router_count];
        const struct survey_router *then = router_before(before, now->routers[i].name);
        if (!now->routers[i].reached || (before != NULL && then == NULL))
            continue;
        *r = now->routers[i];
        if (then != NULL) /* each by itself: one that was restarted begins anew */
            r->counters = survey_since(&r->counters, &then->counters);
        since.router_count++;
    }
    return survey_sum(&since);
}

/* What clients noticed: first what is ours, then what is their own. Older routers count neither. */
static void failed(const struct given *g, const struct survey *now,
                   const struct survey_counters *since, double s, FILE *to)
{
    const double *results = since->results;
    unsigned tell = 0, older = 0;
    char text[5][16];
    for (unsigned i = 0; i < now->router_count; i++) {
        tell += now->routers[i].tells_failed ? 1 : 0;
        older += now->routers[i].reached && !now->routers[i].tells_failed ? 1 : 0;
    }
    s = tell > 0 ? s : 0;
    (void)fprintf(to,
                  "\n%sfailed %s/s%s: cut %s/s, 5xx %s/s, queue full %s/s; clients' own errors "
                  "%s/s",
                  show_colour(&g->show, survey_failed(results) == 0),
                  rate(survey_failed(results), s, text[0]), show_plain(&g->show),
                  rate(results[NODE_RESULT_CUT], s, text[1]),
                  rate(results[NODE_RESULT_STATUS_5XX], s, text[2]),
                  rate(results[NODE_RESULT_QUEUE_FULL], s, text[3]),
                  rate(results[NODE_RESULT_CLIENT_ERROR], s, text[4]));
    if (older > 0)
        (void)fprintf(to, " (%u older router%s not tell)", older, older == 1 ? " does" : "s do");
}

static void head(const struct given *g, const struct survey *now, const struct survey *before,
                 FILE *to)
{
    struct survey_counters since = all_since(now, before);
    double s = seconds_between(now, before), flying = 0, waiting = 0;
    unsigned reached = 0;
    char clock[16] = "", text[4][16];
    time_t wall = time(NULL);
    struct tm tm;
    if (localtime_r(&wall, &tm) != NULL)
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &tm);
    size_t k;
    const json_t *r;
    json_array_foreach(now->replicas, k, r)
    {
        flying += survey_in_flight(r);
    }
    for (unsigned i = 0; i < now->router_count; i++) {
        waiting += now->routers[i].queue_length;
        reached += now->routers[i].reached ? 1 : 0;
    }
    (void)fprintf(
        to, "gvctl top  %s  %s  %s%s%s%s\n", g->admin, clock, show_colour(&g->show, now->ready),
        now->ready ? "ready" : "not ready: ", now->ready ? "" : now->why_not, show_plain(&g->show));
    (void)fprintf(to, "requests %s/s, %.0f in flight, %.0f waiting",
                  rate(since.requests, s, text[0]), flying, waiting);
    if (reached < now->router_count)
        (void)fprintf(to, " (counted at %u of %u router%s)", reached, now->router_count,
                      fields_plural(now->router_count));
    failed(g, now, &since, s, to);
    (void)fprintf(to, "\nfrom cache %s %%, first token %s s on average, %s s for 99 %%%s\n\n",
                  percent(survey_share(&since), text[1]), seconds(mean(&since), text[2]),
                  seconds(survey_quantile(&since, 0.99), text[3]),
                  before == NULL ? " (since the start)" : "");
}

static void routers(const struct given *g, const struct survey *now, const struct survey *before,
                    FILE *to)
{
    static const struct table_column columns[] = {
        {"ROUTER", 0},
        {"STATE", 0},
        {"VERSION", TABLE_WIDE},
        {"LAG ms", TABLE_RIGHT},
        {"REQ/s", TABLE_RIGHT},
        {"FAILED/s", TABLE_RIGHT},
        {"IN FLIGHT", TABLE_RIGHT},
        {"WAITING", TABLE_RIGHT},
        {"CACHE %", TABLE_RIGHT},
        {"FIRST s", TABLE_RIGHT},
    };
    double s = seconds_between(now, before);
    struct table t;
    table_init(&t, columns, ARRAY_LEN(columns), g->show.wide || g->show.verbose);
    for (unsigned i = 0; i < now->router_count; i++) {
        const struct survey_router *r = &now->routers[i];
        const struct survey_router *then = router_before(before, r->name);
        struct survey_counters since =
            then != NULL ? survey_since(&r->counters, &then->counters) : r->counters;
        bool fine = strcmp(r->state, "alive") == 0 || strcmp(r->state, "alone") == 0;
        char text[16];
        table_row(&t, r->self ? '*' : ' ');
        table_cell(&t, "%s", r->name);
        table_cell(&t, "%s", r->state);
        table_colour(&t, show_colour(&g->show, fine));
        table_cell(&t, "%s", r->version);
        if (r->self)
            table_cell(&t, "-");
        else
            table_cell(&t, "%.1f", r->lag_ms);
        if (!r->reached) {
            for (unsigned c = 0; c < 6; c++)
                table_cell(&t, "-");
            continue;
        }
        table_cell(&t, "%s", rate(since.requests, then != NULL ? s : 0, text));
        double failed_s = then != NULL && r->tells_failed && then->tells_failed ? s : 0;
        table_cell(&t, "%s", rate(survey_failed(since.results), failed_s, text));
        if (failed_s > 0)
            table_colour(&t, show_colour(&g->show, survey_failed(since.results) == 0));
        table_cell(&t, "%.0f", r->in_flight);
        table_cell(&t, "%.0f", r->queue_length);
        table_cell(&t, "%s", percent(survey_share(&since), text));
        table_cell(&t, "%s", seconds(mean(&since), text));
    }
    table_print(&t, to);
    (void)fputc('\n', to);
}

/* What all that were reached counted of a replica; `s` may be NULL. */
static double answered(const struct survey *s, const char *replica, enum survey_answered which)
{
    const json_t *sums = s != NULL ? json_object_get(s->answered, replica) : NULL;
    return json_number_value(json_array_get(sums, which));
}

/* The share of a replica's prompts that came from its cache since `before`. */
static double hit_rate(const struct survey *now, const struct survey *before, const char *replica)
{
    double prompt =
        answered(now, replica, SURVEY_PROMPT) - answered(before, replica, SURVEY_PROMPT);
    double cached =
        answered(now, replica, SURVEY_CACHED) - answered(before, replica, SURVEY_CACHED);
    return prompt > 0 ? cached / prompt : -1;
}

/* How full its cache is believed to be. */
static const char *bar(const json_t *replica, char out[BAR_WIDTH + 1])
{
    const json_t *cache = json_object_get(replica, "cache");
    double per_token = fields_number(json_object_get(replica, "learned"), "bytes_per_token");
    double size = fields_number(cache, "tokens") * (per_token > 0 ? per_token : 4);
    double full = size > 0 ? fields_number(cache, "present_bytes") / size : 0;
    int marks = (int)(full * BAR_WIDTH + 0.5);
    marks = marks > BAR_WIDTH ? BAR_WIDTH : marks;
    for (int i = 0; i < BAR_WIDTH; i++)
        out[i] = i < marks ? '#' : '.';
    out[BAR_WIDTH] = '\0';
    return out;
}

/* Whether the same routers were counted both times: sums of others say no rate. */
static bool same_routers(const struct survey *now, const struct survey *before)
{
    unsigned here = 0, both = 0, then = 0;
    for (unsigned i = 0; i < now->router_count; i++) {
        const struct survey_router *r = &now->routers[i];
        here += r->reached ? 1 : 0;
        both += r->reached && router_before(before, r->name) != NULL ? 1 : 0;
    }
    for (unsigned i = 0; before != NULL && i < before->router_count; i++)
        then += before->routers[i].reached ? 1 : 0;
    return both == here && both == then;
}

static void replicas(const struct given *g, const struct survey *now, const struct survey *before,
                     FILE *to)
{
    static const struct table_column columns[] = {
        {"REPLICA", 0},
        {"HEALTH", 0},
        {"WHY", 0},
        {"IN FLIGHT", TABLE_RIGHT},
        {"QUEUE s", TABLE_RIGHT},
        {"REQ/s", TABLE_RIGHT},
        {"ERR/s", TABLE_RIGHT},
        {"CACHE %", TABLE_RIGHT},
        {"FILLED", 0},
        {"PREFILL/s", TABLE_RIGHT | TABLE_WIDE},
        {"STEP ms", TABLE_RIGHT | TABLE_WIDE},
    };
    double s = same_routers(now, before) ? seconds_between(now, before) : 0;
    struct table t;
    size_t i;
    const json_t *r;
    table_init(&t, columns, ARRAY_LEN(columns), g->show.wide || g->show.verbose);
    json_array_foreach(now->replicas, i, r)
    {
        const json_t *learned = json_object_get(r, "learned");
        const char *name = fields_text(r, "name"), *health = show_replica_health(r);
        double chosen = answered(now, name, SURVEY_CHOSEN) - answered(before, name, SURVEY_CHOSEN);
        double errors = answered(now, name, SURVEY_ERRORS) - answered(before, name, SURVEY_ERRORS);
        char text[16], marks[BAR_WIDTH + 1], why[SHOW_WHY_BYTES];
        table_row(&t, ' ');
        table_cell(&t, "%s", name);
        table_cell(&t, "%s", health);
        table_colour(&t, show_colour(&g->show, strcmp(health, "up") == 0));
        table_cell(&t, "%s", show_replica_why(r, why));
        table_cell(&t, "%.0f", survey_in_flight(r));
        table_cell(&t, "%.3f", fields_number(json_object_get(r, "load"), "queue_s"));
        table_cell(&t, "%s", rate(chosen > 0 ? chosen : 0, s, text));
        table_cell(&t, "%s", rate(errors > 0 ? errors : 0, s, text));
        table_cell(&t, "%s", percent(hit_rate(now, before, name), text));
        table_cell(&t, "%s", bar(r, marks));
        table_cell(&t, "%.0f", fields_number(learned, "prefill_tokens_per_s"));
        table_cell(&t, "%.1f", fields_number(learned, "decode_step_ms"));
    }
    table_print(&t, to);
    if (g->show.verbose)
        (void)fputs(
            "\nREQ/s of a replica: those that all routers that are counted chose it for. "
            "ERR/s: attempts\nthat went wrong there, also where a retry hid it from the client; "
            "FAILED/s has what clients\nnoticed. WHY: gvctl replicas. CACHE %: of prompts' tokens "
            "that were answered since the last\nframe. FIRST: time to the first token, on "
            "average.\n",
            to);
}

void top_frame(const struct given *g, const struct survey *now, const struct survey *before,
               FILE *to)
{
    head(g, now, before, to);
    routers(g, now, before, to);
    replicas(g, now, before, to);
}
