/* Files, words split like in a shell, and YAML as JSON; only this file uses libyaml. */
#include <stdio.h>
#include <yaml.h>

#include "base/err.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/io/read_file.h"

enum { FILE_MAX = 1 << 20, DEPTH_MAX = 64 };

bool convert_file(const char *path, struct buf *text, char *message)
{
    const struct io_file file = {.setting = "gvctl: cannot read",
                                 .path = path,
                                 .bytes_max = FILE_MAX,
                                 .long_advice = "it is above 1 MiB",
                                 .pipes = true};
    return io_file_read(&file, text, NULL, message) == 0;
}

/* --- words ----------------------------------------------------------------------------------- */

/* Handles quotes, backslashes and continued lines, as far as routers' command lines need. Variables
 * stay unexpanded. */
json_t *convert_split(struct slice text)
{
    json_t *words = json_array();
    struct buf word = {0};
    bool open = false; /* inside a word */
    char quote = '\0'; /* the open quote */
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        bool blank = quote == '\0' && (c == ' ' || c == '\t' || c == '\n' || c == '\r');
        bool escape = c == '\\' && quote != '\'' && i + 1 < text.len;
        if (c == '#' && !open) {
            i += slice_find(slice_skip(text, i), '\n');
        } else if (blank && open) {
            (void)json_array_append_new(words, json_stringn(word.at, word.len));
            buf_clear(&word);
            open = false;
        } else if (escape && text.at[i + 1] == '\n' && quote == '\0') {
            i++;
        } else if (!escape && (c == quote || (quote == '\0' && (c == '"' || c == '\'')))) {
            quote = c == quote ? '\0' : c;
            open = true;
        } else if (!blank) {
            i += escape ? 1 : 0;
            if (buf_append_char(&word, text.at[i]) != 0)
                abort();
            open = true;
        }
    }
    if (open)
        (void)json_array_append_new(words, json_stringn(word.at != NULL ? word.at : "", word.len));
    buf_free(&word);
    return words;
}

/* --- YAML ------------------------------------------------------------------------------------ */

static json_t *node_json(yaml_document_t *doc, yaml_node_t *node, unsigned depth)
{
    if (node == NULL || depth > DEPTH_MAX)
        return json_null();
    if (node->type == YAML_SCALAR_NODE)
        return json_stringn((const char *)node->data.scalar.value, node->data.scalar.length);
    if (node->type == YAML_SEQUENCE_NODE) {
        json_t *list = json_array();
        for (yaml_node_item_t *i = node->data.sequence.items.start;
             i < node->data.sequence.items.top; i++)
            (void)json_array_append_new(list,
                                        node_json(doc, yaml_document_get_node(doc, *i), depth + 1));
        return list;
    }
    json_t *map = json_object();
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top;
         p++) {
        yaml_node_t *key = yaml_document_get_node(doc, p->key);
        if (key != NULL && key->type == YAML_SCALAR_NODE)
            (void)json_object_set_new(
                map, (const char *)key->data.scalar.value,
                node_json(doc, yaml_document_get_node(doc, p->value), depth + 1));
    }
    return map;
}

json_t *convert_yaml(struct slice text)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    json_t *docs = json_array();
    bool good = true, more = text.len > 0;
    if (!more)
        return docs;
    if (yaml_parser_initialize(&parser) == 0)
        abort();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.at, text.len);
    while (more && (good = yaml_parser_load(&parser, &doc) != 0)) {
        yaml_node_t *root = yaml_document_get_root_node(&doc);
        more = root != NULL;
        if (more)
            (void)json_array_append_new(docs, node_json(&doc, root, 0));
        yaml_document_delete(&doc);
    }
    yaml_parser_delete(&parser);
    if (good)
        return docs;
    json_decref(docs);
    return NULL;
}

const json_t *convert_search(struct convert_state *c, json_t *value,
                             const json_t *(*look)(struct convert_state *c, json_t *object))
{
    const char *key;
    json_t *member;
    size_t i;
    const json_t *found = json_is_object(value) ? look(c, value) : NULL;
    json_object_foreach(value, key, member)
    {
        found = found != NULL ? found : convert_search(c, member, look);
    }
    json_array_foreach(value, i, member)
    {
        found = found != NULL ? found : convert_search(c, member, look);
    }
    return found;
}
