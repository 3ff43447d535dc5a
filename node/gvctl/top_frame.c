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

/* Returns "12.5", or "-" if the rate is unknown. */
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

static double mean(const json_t *counts)
{
    double streams = fields_number(counts, "first_tokens");
    return streams > 0 ? fields_number(counts, "ttft_sum_s") / streams : -1;
}

/* Returns the router's earlier counters; NULL: unknown. */
static json_t *total_before(const struct survey *before, const char *name)
{
    for (unsigned i = 0; before != NULL && i < before->router_count; i++) {
        const struct survey_router *r = &before->routers[i];
        if (strcmp(r->name, name) == 0 && r->total != NULL)
            return r->total;
    }
    return NULL;
}

/* Sums the increases of the routers reached both times. Each increase is computed per router,
 * because a restarted router begins anew. */
static json_t *all_since(const struct survey *now, const struct survey *before)
{
    json_t *sum = json_object();
    for (unsigned i = 0; i < now->router_count; i++) {
        const struct survey_router *r = &now->routers[i];
        json_t *then = total_before(before, r->name);
        if (r->total == NULL || (before != NULL && then == NULL))
            continue;
        json_t *since = survey_since(r->total, then);
        sum = survey_add(sum, since, 1);
        json_decref(since);
    }
    return sum;
}

/* Prints failures noticed by clients: first the routers' and engines' failures, then clients' own
 * mistakes. Older routers count neither. */
static void failed(const struct given *g, const struct survey *now, const json_t *since, double s,
                   FILE *to)
{
    const json_t *by = json_object_get(since, "failed");
    unsigned older = 0;
    char text[5][16];
    for (unsigned i = 0; i < now->router_count; i++)
        older += now->routers[i].told != NULL && now->routers[i].total == NULL ? 1 : 0;
    (void)fprintf(to,
                  "\n%sfailed %s/s%s: cut %s/s, 5xx %s/s, queue full %s/s; clients' own errors "
                  "%s/s",
                  show_colour(&g->show, survey_failed(since) == 0),
                  rate(survey_failed(since), s, text[0]), show_plain(&g->show),
                  rate(fields_number(by, "cut"), s, text[1]),
                  rate(fields_number(by, "status_5xx"), s, text[2]),
                  rate(fields_number(by, "queue_full"), s, text[3]),
                  rate(fields_number(since, "client_errors"), s, text[4]));
    if (older > 0)
        (void)fprintf(to, " (%u older router%s not report it)", older,
                      older == 1 ? " does" : "s do");
}

static void head(const struct given *g, const struct survey *now, const struct survey *before,
                 FILE *to)
{
    json_t *since = all_since(now, before), *sum = survey_sum(now);
    unsigned told = survey_counted(now);
    double s = told > 0 ? seconds_between(now, before) : 0, flying = 0;
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
    (void)fprintf(to, "gvctl top  %s  %s  %s%s%s%s\n", g->admin, clock,
                  show_colour(&g->show, now->ready), now->ready ? "ready" : "not ready: ",
                  now->ready ? "" : fields_text(now->readiness, "why"), show_plain(&g->show));
    (void)fprintf(to, "requests %s/s, %.0f in flight, %.0f waiting",
                  rate(fields_number(since, "requests"), s, text[0]), flying,
                  fields_number(sum, "queued"));
    if (told < now->router_count)
        (void)fprintf(to, " (counted at %u of %u router%s)", told, now->router_count,
                      fields_plural(now->router_count));
    failed(g, now, since, s, to);
    (void)fprintf(to,
                  "\n"
                  "from cache %s %%, first token %s s on average, %s s for 99 %%%s\n"
                  "\n",
                  percent(survey_share(since), text[1]), seconds(mean(since), text[2]),
                  seconds(survey_quantile(since, 0.99), text[3]),
                  before == NULL ? " (since the start)" : "");
    json_decref(since);
    json_decref(sum);
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
    table_init(&t, columns, ARRAY_LEN(columns), g->show.wide);
    for (unsigned i = 0; i < now->router_count; i++) {
        const struct survey_router *r = &now->routers[i];
        json_t *then = total_before(before, r->name);
        double over_s = then != NULL ? s : 0;
        bool fine = strcmp(r->state, "alive") == 0 || strcmp(r->state, "alone") == 0;
        char text[16];
        table_row(&t, r->self ? '*' : ' ');
        table_cell(&t, "%s", r->name);
        table_cell(&t, "%s", r->state);
        table_colour(&t, show_colour(&g->show, fine));
        table_cell(&t, "%s", fields_text(r->member, "version"));
        if (r->self)
            table_cell(&t, "-");
        else
            table_cell(&t, "%.1f", fields_number(r->member, "lag_ms"));
        if (r->total == NULL) {
            for (unsigned c = 0; c < 6; c++)
                table_cell(&t, "-");
            continue;
        }
        json_t *since = survey_since(r->total, then);
        table_cell(&t, "%s", rate(fields_number(since, "requests"), over_s, text));
        table_cell(&t, "%s", rate(survey_failed(since), over_s, text));
        if (over_s > 0)
            table_colour(&t, show_colour(&g->show, survey_failed(since) == 0));
        table_cell(&t, "%.0f", fields_number(r->total, "in_flight"));
        table_cell(&t, "%.0f", fields_number(r->total, "queued"));
        table_cell(&t, "%s", percent(survey_share(since), text));
        table_cell(&t, "%s", seconds(mean(since), text));
        json_decref(since);
    }
    table_print(&t, to);
    (void)fputc('\n', to);
}

/* Returns how much a replica's count has risen since `before`, at the reached routers together. */
static double since_of(const json_t *now, const json_t *before, const char *replica,
                       const char *key)
{
    const json_t *then = json_object_get(json_object_get(before, "by_replica"), replica);
    return fields_number(json_object_get(json_object_get(now, "by_replica"), replica), key) -
           fields_number(then, key);
}

/* Draws how full the replica's cache is believed to be. */
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

/* True if both sums cover the same routers: otherwise the difference is no rate. */
static bool same_routers(const struct survey *now, const struct survey *before)
{
    unsigned both = 0;
    for (unsigned i = 0; i < now->router_count; i++) {
        const struct survey_router *r = &now->routers[i];
        both += r->total != NULL && total_before(before, r->name) != NULL ? 1 : 0;
    }
    return before != NULL && both == survey_counted(now) && both == survey_counted(before);
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
    json_t *sum = survey_sum(now), *then = before != NULL ? survey_sum(before) : NULL;
    struct table t;
    size_t i;
    const json_t *r;
    table_init(&t, columns, ARRAY_LEN(columns), g->show.wide);
    json_array_foreach(now->replicas, i, r)
    {
        const json_t *learned = json_object_get(r, "learned");
        const char *name = fields_text(r, "name"), *health = show_replica_health(r);
        double chosen = since_of(sum, then, name, "chosen"),
               errors = since_of(sum, then, name, "errors");
        double prompt = since_of(sum, then, name, "prompt_tokens"),
               cached = since_of(sum, then, name, "cached_tokens");
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
        table_cell(&t, "%s", percent(prompt > 0 ? cached / prompt : -1, text));
        table_cell(&t, "%s", bar(r, marks));
        table_cell(&t, "%.0f", fields_number(learned, "prefill_tokens_per_s"));
        table_cell(&t, "%.1f", fields_number(learned, "decode_step_ms"));
    }
    json_decref(sum);
    json_decref(then);
    table_print(&t, to);
    if (g->show.verbose)
        (void)fputs("\n"
                    "REQ/s of a replica: requests for which the counted routers chose it. ERR/s: "
                    "attempts that\n"
                    "failed there, even if a retry hid that from the client; FAILED/s: failures "
                    "that clients\n"
                    "noticed. WHY: as in gvctl replicas. CACHE %: share of prompt tokens from "
                    "cache since the\n"
                    "last frame. FIRST: mean time to first token.\n",
                    to);
}

void top_frame(const struct given *g, const struct survey *now, const struct survey *before,
               FILE *to)
{
    head(g, now, before, to);
    routers(g, now, before, to);
    replicas(g, now, before, to);
}
