#include "node/gvctl/run.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/columns.h"
#include "node/gvctl/fields.h"
#include "node/gvctl/ring.h"
#include "node/route/decisions.h"

/* Returns a number, or "-" if missing. */
static const char *number_of(const json_t *o, const char *key, double unit, int digits,
                             char out[32])
{
    const json_t *value = json_object_get(o, key);
    if (!json_is_number(value))
        return "-";
    (void)snprintf(out, 32, "%.*f", digits, json_number_value(value) * unit);
    return out;
}

/* Adds the request's result if the status does not show it: "200 broken, cut". */
static const char *end_of(const json_t *outcome, char out[48])
{
    static const char *const said[] = {"cut", "queue_full", "retried"};
    char status[32];
    const char *result = "";
    if (!json_is_object(outcome))
        return "under way";
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        result = fields_equal(outcome, "result", said[i]) ? said[i] : result;
    (void)snprintf(out, 48, "%s %s%s%s", number_of(outcome, "status", 1, 0, status),
                   fields_text(outcome, "end"), result[0] != '\0' ? ", " : "", result);
    return out;
}

enum { NAME_LEAST = 21, OTHER_COLUMNS = 64 }; /* of a line without the replica's name */

/* Returns the replica in a column as wide as the longest name. */
static const char *replica_of(const struct show *how, const json_t *answer, const char *name,
                              char out[COLUMNS_TEXT_BYTES])
{
    const json_t *list = json_object_get(answer, "decisions");
    return columns_fit(
        name, columns_width(list, "choice", NAME_LEAST, how->wide ? 0 : OTHER_COLUMNS), out);
}

static void print_head(const struct show *how, const json_t *answer)
{
    bool wide = how->wide;
    char replica[COLUMNS_TEXT_BYTES];
    printf("%-12s  %s  %-7s  %6s  %6s  %7s  %s", "TIME",
           replica_of(how, answer, "REPLICA", replica), "WHY", "PROMPT", "CACHED", "FIRST s",
           wide ? "END                     " : "END");
    if (wide)
        printf("  %6s  %9s  %8s  %7s  %-12s  %s", "TOLD", "EXPECTED", "TOTAL s", "ATTEMPT", "MODEL",
               "REQUEST");
    (void)putchar('\n');
}

static void print_line(const struct show *how, const json_t *answer, const json_t *d)
{
    const json_t *outcome = json_object_get(d, "outcome");
    char text[8][48], replica[COLUMNS_TEXT_BYTES];
    printf("%-12s  %s  %-7s  %6s  %6s  %7s  ", ring_clock(d, "time_ms", "%H:%M:%S", true, text[0]),
           replica_of(how, answer, fields_text(d, "choice"), replica), fields_text(d, "why"),
           number_of(d, "prompt_tokens", 1, 0, text[1]),
           number_of(d, "cached_tokens", 1, 0, text[2]),
           number_of(outcome, "ttft_ms", 0.001, 3, text[3]));
    const char *end = end_of(outcome, text[4]);
    if (!how->wide) {
        printf("%s\n", end);
        return;
    }
    printf("%-24s  %6s  %9s  %8s  %7s  %-12s  %s\n", end,
           number_of(outcome, "cached_tokens", 1, 0, text[1]),
           number_of(d, "ttft_s", 1, 3, text[2]), number_of(outcome, "ms", 0.001, 3, text[3]),
           number_of(d, "attempt", 1, 0, text[5]), fields_text(d, "model"),
           fields_text(d, "request"));
}

static const char legend[] =
    "\n"
    "WHY: cached (no replica holds more of the prompt), cheaper (another holds more but costs\n"
    "more), cold (no replica holds any), due (slow, and had less than its speed deserves),\n"
    "only (no other could), load (no prompt) or maker (of the stored response). PROMPT and\n"
    "CACHED: predicted tokens; TOLD: cached tokens that the engine reports. FIRST: time to\n"
    "first token; EXPECTED: the prediction. END: how the attempt ended; after cut or\n"
    "queue_full the request failed, after retried another attempt followed.\n"
    "gvctl explain, and -o json here, show the costs term by term.\n";

int decisions(const struct given *g)
{
    static const struct ring ring = {.name = "decisions",
                                     .followed = "&ended=1",
                                     .most = NODE_DECISIONS_MAX,
                                     .head = print_head,
                                     .line = print_line,
                                     .legend = legend};
    return ring_show(g, &ring);
}
