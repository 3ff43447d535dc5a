/* Shows requests after which engines died. */
#include "node/gvctl/show_internal.h"

int show_poison(const struct show *how, const json_t *list)
{
    static const struct table_column columns[] = {{"HASH", 0},
                                                  {"STATE", 0},
                                                  {"SINCE", TABLE_RIGHT},
                                                  {"FOR", TABLE_RIGHT},
                                                  {"REFUSED", TABLE_RIGHT},
                                                  {"REPLICAS THAT DIED", 0}};
    struct table t;
    size_t i, j;
    const json_t *r, *name;
    if (!json_is_array(list))
        return ERR_SYNTAX;
    if (json_array_size(list) == 0) {
        printf("no request is refused as poison\n");
        return 0;
    }
    table_init(&t, columns, ARRAY_LEN(columns), how->wide);
    json_array_foreach(list, i, r)
    {
        char names[1024] = "";
        json_array_foreach(json_object_get(r, "replicas"), j, name)
        {
            size_t len = strlen(names);
            (void)snprintf(names + len, sizeof names - len, "%s%s", j > 0 ? " " : "",
                           json_is_string(name) ? json_string_value(name) : "-");
        }
        table_row(&t, ' ');
        table_cell(&t, "%s", fields_text(r, "hash"));
        table_cell(&t, "%s", fields_text(r, "state"));
        table_cell(&t, "%.0f s", fields_number(r, "seconds_ago"));
        table_cell(&t, "%.0f s", fields_number(r, "seconds_left"));
        table_cell(&t, "%.0f", fields_number(r, "refused"));
        table_cell(&t, "%s", names);
    }
    table_print(&t, stdout);
    return 0;
}
