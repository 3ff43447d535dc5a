/* Requests in flight, and those that wait. */
#include "node/gvctl/show_internal.h"

/* "12 of 65536 (requests-max)"; a limit of 0 is none. */
static void show_of(const json_t *o, const char *now, const char *max, const char *setting)
{
    printf("%.0f", show_number(o, now));
    if (show_number(o, max) > 0)
        printf(" of %.0f", show_number(o, max));
    printf(" (%s)", setting);
}

static void show_totals(const json_t *o)
{
    printf("in flight  ");
    show_of(o, "requests_in_flight", "requests_max", "requests-max");
    if (show_number(o, "replica_requests_max") > 0)
        printf(", at one replica %.0f at most (replica-requests-max)",
               show_number(o, "replica_requests_max"));
    printf("\nwaiting    ");
    show_of(o, "queue_length", "queue_max", "queue-max");
    if (show_number(o, "queue_timeout_ms") > 0)
        printf(", for %g s at most (queue-timeout)", show_number(o, "queue_timeout_ms") / 1000);
    printf("\nso far     %.0f served after a wait, %.0f refused by a full queue, %.0f after "
           "queue-timeout\n",
           show_number(o, "queue_served"), show_number(o, "queue_full"),
           show_number(o, "queue_timeouts"));
}

int show_queue(struct slice text)
{
    json_t *o = show_parse_object(text);
    const json_t *list = json_object_get(o, "waiting");
    if (!json_is_array(list)) {
        json_decref(o);
        return ERR_SYNTAX;
    }
    show_totals(o);
    size_t i;
    const json_t *w;
    if (json_array_size(list) > 0)
        printf("\n%-40s %8s %10s  %s\n", "MODEL", "REQUESTS", "LONGEST s", "WAIT FOR");
    json_array_foreach(list, i, w)
    {
        const char *model = show_text(w, "model");
        printf("%-40s %8.0f %10.1f  %s\n", model[0] != '\0' ? model : "-",
               show_number(w, "requests"), show_number(w, "longest_ms") / 1000,
               show_text(w, "for"));
    }
    json_decref(o);
    return 0;
}
