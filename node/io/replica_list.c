#include "node/io/replica_list.h"

#include "base/err.h"

/* Returns the line without surrounding white space and without comment. */
static struct slice line_of(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool begins = i == 0 || text.at[i - 1] == ' ' || text.at[i - 1] == '\t';
        if (text.at[i] == '#' && begins)
            text.len = i;
    }
    if (slice_ends_with(text, SLICE("\r")))
        text.len--;
    return slice_trim(text);
}

static bool is_yaml(struct slice text)
{
    while (text.len > 0) {
        struct slice line = line_of(slice_cut(&text, '\n'));
        if (line.len > 0)
            return line.at[0] == '-' || line.at[0] == '[';
    }
    return false;
}

static int lines_read(struct slice text, struct replica_list *list, char *message)
{
    int err = ERR_OK;
    for (unsigned number = 1; text.len > 0 && err == ERR_OK; number++) {
        struct slice line = line_of(slice_cut(&text, '\n'));
        if (slice_find(line, ' ') < line.len || slice_find(line, '\t') < line.len)
            err = replica_list_fail(message, number, "want one replica a line");
        else if (line.len > 0)
            err = replica_list_add(list, line, NULL, number, message);
    }
    return err;
}

int replica_list_parse(struct slice text, struct replica_list *out, char *message)
{
    *out = (struct replica_list){0};
    message[0] = '\0';
    if (slice_starts_with(text, SLICE("\xef\xbb\xbf"))) /* a byte order mark */
        text = slice_skip(text, 3);
    int err =
        is_yaml(text) ? replica_yaml_read(text, out, message) : lines_read(text, out, message);
    if (err != ERR_OK) {
        replica_list_free(out);
        return err;
    }
    for (unsigned i = 0; i < out->count; i++) { /* the texts stay in place from now on */
        out->entries[i].name = slice_of_cstr(out->texts[i].name);
        out->entries[i].labels.model = slice_of_cstr(out->texts[i].model);
        out->entries[i].labels.health = slice_of_cstr(out->texts[i].health);
        out->entries[i].labels.kv_events = slice_of_cstr(out->texts[i].kv_events);
    }
    return ERR_OK;
}
