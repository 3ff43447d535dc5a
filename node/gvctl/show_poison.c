/* Requests after which engines died. */
#include "node/gvctl/show_internal.h"

static void show_request(const json_t *r)
{
    size_t i;
    const json_t *name;
    printf("%-16s  %-7s  %7.0f s  %7.0f s  %7.0f ", show_text(r, "hash"), show_text(r, "state"),
           show_number(r, "seconds_ago"), show_number(r, "seconds_left"),
           show_number(r, "refused"));
    json_array_foreach(json_object_get(r, "replicas"), i, name)
    {
        printf(" %s", json_string_value(name));
    }
    printf("\n");
}

int show_poison(struct slice text)
{
    size_t i;
    json_t *r, *list = show_parse(text);
    if (!json_is_array(list)) {
        json_decref(list);
        return ERR_SYNTAX;
    }
    if (json_array_size(list) == 0)
        printf("no engine died after a request that is remembered\n");
    else
        printf("%-16s  %-7s  %9s  %9s  %7s  %s\n", "hash", "state", "since", "for", "refused",
               "replicas that died");
    json_array_foreach(list, i, r)
    {
        show_request(r);
    }
    json_decref(list);
    return 0;
}
