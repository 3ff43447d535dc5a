/* Helpers shared by all tables. */
#include "node/gvctl/show_internal.h"

const char *show_format_text(enum show_format format)
{
    static const char *const names[] = {
        [SHOW_TABLE] = "table", [SHOW_JSON] = "json", [SHOW_YAML] = "yaml", [SHOW_NAME] = "name"};
    return names[format];
}

const char *show_colour(const struct show *how, bool is_good)
{
    return !how->colour ? "" : is_good ? "\033[32m" : "\033[31m";
}

const char *show_plain(const struct show *how)
{
    return how->colour ? "\033[0m" : "";
}

const char *show_how_long(double s, char out[SHOW_TIME_BYTES])
{
    s = s > 0 ? s : 0;
    if (s < 90)
        (void)snprintf(out, SHOW_TIME_BYTES, "%.0f s", s);
    else if (s < 5400)
        (void)snprintf(out, SHOW_TIME_BYTES, "%.0f min", s / 60);
    else if (s < 172800)
        (void)snprintf(out, SHOW_TIME_BYTES, "%.0f h", s / 3600);
    else
        (void)snprintf(out, SHOW_TIME_BYTES, "%.0f days", s / 86400);
    return out;
}

const char *show_short_number(double n, char out[SHOW_NUMBER_BYTES])
{
    static const char units[] = " kMGTP";
    unsigned u = 0;
    while (n >= 9999.5 && u + 2 < sizeof units) {
        n /= 1000;
        u++;
    }
    (void)snprintf(out, SHOW_NUMBER_BYTES, u > 0 && n < 100 ? "%.1f%c" : "%.0f%c", n, units[u]);
    if (u == 0)
        out[strlen(out) - 1] = '\0';
    return out;
}

int show_names(const json_t *answer)
{
    const json_t *list = json_is_array(answer) ? answer : json_object_get(answer, "members");
    size_t i;
    const json_t *row;
    if (!json_is_array(list))
        return ERR_SYNTAX;
    json_array_foreach(list, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        const char *hash = json_string_value(json_object_get(row, "hash"));
        if (name == NULL && hash == NULL)
            return ERR_SYNTAX;
        (void)puts(name != NULL ? name : hash);
    }
    return 0;
}
