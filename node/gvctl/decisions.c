#include "node/gvctl/decisions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "node/gvctl/ask.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/print.h"

enum { FOLLOWED_MAX = 512 /* in one answer */ };

/* How far an earlier answer went. */
struct seen {
    json_int_t changed, since_ms;
};

static json_int_t whole(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *clock_of(const json_t *d, char out[32])
{
    json_int_t ms = whole(d, "time_ms");
    time_t at = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&at, &tm) == NULL)
        return "-";
    size_t n = strftime(out, 16, "%H:%M:%S", &tm);
    (void)snprintf(out + n, 32 - n, ".%03d", (int)(ms % 1000));
    return out;
}

/* A number, or "-" where nothing said it. */
static const char *number_of(const json_t *o, const char *key, double unit, int digits,
                             char out[32])
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_number(value))
        return "-";
    (void)snprintf(out, 32, "%.*f", digits, json_number_value(value) * unit);
    return out;
}

static const char *end_of(const json_t *outcome, char out[48])
{
    char status[32];
    if (!json_is_object(outcome))
        return "under way";
    (void)snprintf(out, 48, "%s %s", number_of(outcome, "status", 1, 0, status),
                   fields_text(outcome, "end"));
    return out;
}

static void print_head(const struct show *how)
{
    bool wide = how->wide || how->verbose;
    printf("%-12s  %-21s  %-7s  %6s  %6s  %7s  %s", "TIME", "REPLICA", "WHY", "PROMPT", "CACHED",
           "FIRST s", wide ? "END             " : "END");
    if (wide)
        printf("  %6s  %9s  %8s  %7s  %-12s  %s", "TOLD", "EXPECTED", "TOTAL s", "ATTEMPT", "MODEL",
               "REQUEST");
    (void)putchar('\n');
}

static void print_line(const struct show *how, const json_t *d)
{
    const json_t *outcome = json_object_get(d, "outcome");
    char text[8][48];
    printf("%-12s  %-21s  %-7s  %6s  %6s  %7s  ", clock_of(d, text[0]), fields_text(d, "choice"),
           fields_text(d, "why"), number_of(d, "prompt_tokens", 1, 0, text[1]),
           number_of(d, "cached_tokens", 1, 0, text[2]),
           number_of(outcome, "ttft_ms", 0.001, 3, text[3]));
    const char *end = end_of(outcome, text[4]);
    if (!how->wide && !how->verbose) {
        printf("%s\n", end);
        return;
    }
    printf("%-16s  %6s  %9s  %8s  %7s  %-12s  %s\n", end,
           number_of(outcome, "cached_tokens", 1, 0, text[1]),
           number_of(d, "ttft_s", 1, 3, text[2]), number_of(outcome, "ms", 0.001, 3, text[3]),
           number_of(d, "attempt", 1, 0, text[5]), fields_text(d, "model"),
           fields_text(d, "request"));
}

static const char legend[] =
    "\n"
    "WHY: cached (nobody holds more of the prompt), cheaper (another holds more and is\n"
    "busier), cold (nobody holds any), only, load (no prompt) or maker (of the stored\n"
    "response). PROMPT and CACHED are tokens as predicted, TOLD those from the cache as the\n"
    "engine reports them. FIRST: until the first token, EXPECTED: as it was predicted.\n"
    "gvctl explain, and -o json here, have the costs term by term.\n";

/* Those of an answer, each in the format that is wanted. */
static void print_all(const struct show *how, const json_t *answer)
{
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(answer, "decisions"), i, d)
    {
        if (how->format == SHOW_JSON) { /* a line each */
            (void)json_dumpf(d, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
            (void)putchar('\n');
        } else if (how->format == SHOW_YAML) {
            (void)puts("---");
            print_yaml(d, stdout);
        } else {
            print_line(how, d);
        }
    }
    (void)fflush(stdout);
}

/* The answer, or NULL: it failed (`status`), or is something else. */
static json_t *ask_for(const struct given *g, const char *target, bool quiet, int *status)
{
    struct buf out;
    buf_init(&out, 0);
    struct call call = {.method = "GET",
                        .target = target,
                        .token = g->token,
                        .trust = g->trust,
                        .timeout_s = g->timeout_s > 0 ? g->timeout_s : ASK_TIMEOUT_S,
                        .quiet = quiet};
    *status = call_admin(g->admin, &call, &out);
    json_t *answer = *status == 200 ? json_loadb(out.at, out.len, 0, NULL) : NULL;
    bool good = json_is_array(json_object_get(answer, "decisions"));
    if (*status == 404)
        (void)fprintf(stderr, "gvctl: that router keeps no decisions: it is older (404)\n");
    else if (*status > 0 && *status != 200 && !quiet)
        ask_error(*status, buf_slice(&out));
    else if (*status == 200 && !good)
        ask_other(g);
    else if (good && g->show.format == SHOW_JSON && !g->follow)
        print_text(buf_slice(&out), stdout);
    buf_free(&out);
    if (good)
        return answer;
    json_decref(answer);
    return NULL;
}

static int show_last(const struct given *g)
{
    char target[64] = "/decisions";
    int status;
    if (g->last > 0)
        (void)snprintf(target, sizeof target, "/decisions?n=%u", g->last);
    json_t *answer = ask_for(g, target, false, &status);
    bool table = g->show.format == SHOW_TABLE || g->show.format == SHOW_NAME;
    if (answer == NULL)
        return EXIT_FAILURE;
    if (table) {
        print_head(&g->show);
        print_all(&g->show, answer);
        printf("%s", g->show.verbose ? legend : "");
    } else if (g->show.format == SHOW_YAML) {
        print_yaml(answer, stdout);
    }
    json_decref(answer);
    return EXIT_SUCCESS;
}

static void pause_for(unsigned seconds)
{
    struct timespec t = {.tv_sec = seconds};
    (void)nanosleep(&t, NULL);
}

/* Those that have ended since, until there are no more at the moment. False: it cannot be asked. */
static bool follow_once(const struct given *g, struct seen *seen, bool quiet, int *status)
{
    size_t n = FOLLOWED_MAX;
    while (n == FOLLOWED_MAX) {
        char target[96];
        (void)snprintf(target, sizeof target, "/decisions?n=%d&ended=1&changed=%lld", FOLLOWED_MAX,
                       (long long)seen->changed);
        json_t *answer = ask_for(g, target, quiet, status);
        if (answer == NULL)
            return false;
        json_int_t since = whole(answer, "since_ms");
        bool anew = seen->since_ms != 0 && since != seen->since_ms;
        n = anew ? FOLLOWED_MAX : json_array_size(json_object_get(answer, "decisions"));
        if (!anew)
            print_all(&g->show, answer);
        seen->changed = anew ? 0 : whole(answer, "changed");
        seen->since_ms = since;
        json_decref(answer);
    }
    return true;
}

/* The last ones first, then what ends. */
static int follow(const struct given *g)
{
    struct seen seen = {0};
    int status;
    json_t *answer = ask_for(g, "/decisions?n=1", false, &status);
    if (answer == NULL)
        return EXIT_FAILURE;
    seen.since_ms = whole(answer, "since_ms");
    json_decref(answer);
    if (g->show.format == SHOW_TABLE || g->show.format == SHOW_NAME)
        print_head(&g->show);
    bool reached = true;
    for (;;) {
        bool good = follow_once(g, &seen, true, &status);
        if (!good && status >= 200 && status != 503)
            return EXIT_FAILURE;
        if (reached && !good)
            (void)fprintf(stderr, "gvctl: %s cannot be reached; it is asked again\n", g->admin);
        reached = good;
        pause_for(g->interval_s > 0 ? g->interval_s : 1);
    }
}

int decisions(const struct given *g)
{
    return g->follow ? follow(g) : show_last(g);
}
