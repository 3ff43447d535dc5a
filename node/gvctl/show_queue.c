/* Shows requests in flight and waiting requests. */
#include "node/gvctl/show_internal.h"

/* Prints "12 of 65536 (requests-max)"; a limit of 0 means none. */
static void show_of(const json_t *o, const char *now, const char *max, const char *setting)
{
    printf("%.0f", fields_number(o, now));
    if (fields_number(o, max) > 0)
        printf(" of %.0f", fields_number(o, max));
    printf(" (%s)", setting);
}

static void show_totals(const json_t *o)
{
    printf("in flight  ");
    show_of(o, "requests_in_flight", "requests_max", "requests-max");
    if (fields_number(o, "replica_requests_max") > 0)
        printf(", at most %.0f at one replica (replica-requests-max)",
               fields_number(o, "replica_requests_max"));
    printf("\nwaiting    ");
    show_of(o, "queue_length", "queue_max", "queue-max");
    if (fields_number(o, "queue_timeout_ms") > 0)
        printf(", for at most %g s (queue-timeout)", fields_number(o, "queue_timeout_ms") / 1000);
    printf("\nso far     %.0f served after a wait, %.0f refused because the queue was full, %.0f "
           "timed out (queue-timeout)\n",
           fields_number(o, "queue_served"), fields_number(o, "queue_full"),
           fields_number(o, "queue_timeouts"));
}

int show_queue(const struct show *how, const json_t *o)
{
    static const struct table_column columns[] = {
        {"MODEL", 0}, {"REQUESTS", TABLE_RIGHT}, {"LONGEST s", TABLE_RIGHT}, {"WAIT FOR", 0}};
    const json_t *list = json_object_get(o, "waiting");
    struct table t;
    size_t i;
    const json_t *w;
    if (!json_is_array(list))
        return ERR_SYNTAX;
    show_totals(o);
    if (json_array_size(list) == 0)
        return 0;
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_array_foreach(list, i, w)
    {
        const char *model = fields_text(w, "model");
        table_row(&t, ' ');
        table_cell(&t, "%s", model[0] != '\0' ? model : "-");
        table_cell(&t, "%.0f", fields_number(w, "requests"));
        table_cell(&t, "%.1f", fields_number(w, "longest_ms") / 1000);
        table_cell(&t, "%s", fields_text(w, "for"));
    }
    printf("\n");
    table_print(&t, stdout);
    return 0;
}
