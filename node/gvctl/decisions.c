#include "node/gvctl/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/ask.h"
#include "node/gvctl/columns.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/ring.h"
#include "node/route/decisions.h"

/* Returns the number under `key`, times `unit`, as text; "-" if missing. */
static const char *number_of(const json_t *o, const char *key, double unit, int digits,
                             char out[32])
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_number(value))
        return "-";
    (void)snprintf(out, 32, "%.*f", digits, json_number_value(value) * unit);
    return out;
}

/* Returns how the attempt ended, and the request's result if that is not clear from the end: "200
 * broken, cut". */
static const char *end_of(const json_t *outcome, char out[48])
{
    static const char *const said[] = {"cut", "queue_full", "retried"};
    char status[32];
    const char *result = "";
    if (!json_is_object(outcome))
        return "under way";
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        result = fields_equal(outcome, "result", said[i]) ? said[i] : result;
    bool answered = json_is_number(json_object_get(outcome, "status"));
    (void)snprintf(out, 48, "%s%s%s%s%s",
                   answered ? number_of(outcome, "status", 1, 0, status) : "", answered ? " " : "",
                   fields_text(outcome, "end"), result[0] != '\0' ? ", " : "", result);
    for (char *c = out; *c != '\0'; c++)
        *c = (char)(*c == '_' ? ' ' : *c);
    return out;
}

enum {
    NAME_LEAST = 21,
    OTHER_COLUMNS = 59, /* columns of a line without the replica's name and WHY */
    END_WIDTH = 18,
    WHY_ROOM = 40,   /* if fewer columns are left, WHY has a separate line */
    WHY_INDENT = 14, /* indent of this line, below the replica's name */
    WHY_BYTES = 1024,
};

/* Returns the width of the replica's column, the width of the longest name. */
static unsigned replica_width(const struct show *how, const json_t *answer)
{
    const json_t *list = json_object_get(answer, "decisions");
    return columns_width(list, "choice", NAME_LEAST, how->wide ? 0 : OTHER_COLUMNS);
}

/* Prints WHY after a line of `used` columns, or below it if the terminal has no room there. */
static void print_why(const struct show *how, const char *why, unsigned used)
{
    unsigned all = columns_of_terminal();
    bool below = !how->wide && all > 0 && all < used + WHY_ROOM;
    printf("%s%*s", below ? "\n" : "", below ? WHY_INDENT : 2, "");
    if (how->wide)
        printf("%s", why);
    else
        columns_wrap(why, below ? WHY_INDENT : used + 2);
    (void)putchar('\n');
}

/* Returns the reason for a choice. An older router sends only a word. In shadow mode the text names
 * both choices. */
static const char *why_of(const json_t *d, char out[WHY_BYTES])
{
    const char *why = fields_text(d, fields_has_text(d, "why_text") ? "why_text" : "why");
    const char *own = fields_text(d, "shadow_choice");
    if (!fields_has_text(d, "shadow_choice"))
        return why;
    if (fields_equal(d, "choice", own))
        (void)snprintf(out, WHY_BYTES, "routed by plain-policy; policy would choose the same");
    else
        (void)snprintf(out, WHY_BYTES, "routed by plain-policy; policy would choose %s", own);
    return out;
}

static void print_head(const struct show *how, const json_t *answer)
{
    char replica[COLUMNS_TEXT_BYTES];
    unsigned width = replica_width(how, answer);
    printf("%-12s  %s  %6s  %6s  %7s  %-*s", "TIME", columns_fit("REPLICA", width, replica),
           "PROMPT", "CACHED", "FIRST s", END_WIDTH, "END");
    if (how->wide)
        printf("  %6s  %9s  %8s  %7s  %-12s  %-32s", "TOLD", "EXPECTED", "TOTAL s", "ATTEMPT",
               "MODEL", "REQUEST");
    print_why(how, "WHY", width + OTHER_COLUMNS);
}

static void print_line(const struct show *how, const json_t *answer, const json_t *d)
{
    const json_t *outcome = json_object_get(d, "outcome");
    char text[8][48], replica[COLUMNS_TEXT_BYTES], why[WHY_BYTES];
    unsigned width = replica_width(how, answer);
    printf("%-12s  %s  %6s  %6s  %7s  %-*s", ring_clock(d, "time_ms", "%H:%M:%S", true, text[0]),
           columns_fit(fields_text(d, "choice"), width, replica),
           number_of(d, "prompt_tokens", 1, 0, text[1]),
           number_of(d, "cached_tokens", 1, 0, text[2]),
           number_of(outcome, "ttft_ms", 0.001, 3, text[3]), END_WIDTH, end_of(outcome, text[4]));
    if (how->wide)
        printf("  %6s  %9s  %8s  %7s  %-12s  %-32s",
               number_of(outcome, "cached_tokens", 1, 0, text[1]),
               number_of(d, "ttft_s", 1, 3, text[2]), number_of(outcome, "ms", 0.001, 3, text[3]),
               number_of(d, "attempt", 1, 0, text[5]), fields_text(d, "model"),
               fields_text(d, "request"));
    print_why(how, why_of(d, why), width + OTHER_COLUMNS);
}

static const char legend[] =
    "\n"
    "PROMPT and CACHED: predicted tokens. TOLD: cached tokens that the engine reports. FIRST:\n"
    "time to first token; EXPECTED: its prediction. END: how the attempt ended. After cut or\n"
    "queue full the request failed; after retried another attempt followed. WHY: the reason\n"
    "for the choice; times in it are costs.\n"
    "gvctl explain, and gvctl decisions -o json, show each term of the costs.\n";

/* Returns the filters of the command line as a query, which the caller frees. */
static struct buf filter_of(const struct given *g)
{
    struct buf query = {0};
    char slow[24];
    (void)snprintf(slow, sizeof slow, "%" PRIu64, g->slow_ms);
    bool good = buf_append_char(&query, '?') == 0 && /* so that each filter begins with & */
                ask_query(&query, "failed", g->failed ? "1" : NULL) == 0 &&
                ask_query(&query, "slow_ms", g->slow_ms > 0 ? slow : NULL) == 0 &&
                ask_query(&query, "model", g->model) == 0 &&
                ask_query(&query, "replica", g->replica) == 0 &&
                ask_query(&query, "reason", g->reason) == 0 && buf_append_char(&query, '\0') == 0;
    if (!good)
        abort();
    return query;
}

int decisions(const struct given *g)
{
    struct buf filter = filter_of(g);
    const struct ring ring = {.name = "decisions",
                              .followed = "&ended=1",
                              .filter = filter.at + 1,
                              .most = NODE_DECISIONS_MAX,
                              .head = print_head,
                              .line = print_line,
                              .legend = legend};
    if (filter.len > RING_FILTER_MAX) {
        (void)fputs("gvctl: --model or --replica is too long\n", stderr);
        buf_free(&filter);
        return EXIT_FAILURE;
    }
    int status = ring_show(g, &ring);
    buf_free(&filter);
    return status;
}
