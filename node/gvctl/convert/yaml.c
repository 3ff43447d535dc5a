/* YAML as JSON; the only file here that knows libyaml. */
#include <yaml.h>

#include "node/gvctl/convert/convert_internal.h"

enum { DEPTH_MAX = 64 };

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
    bool good = true, more = true;
    if (text.len == 0)
        return docs;
    if (yaml_parser_initialize(&parser) == 0)
        abort();
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.at, text.len);
    while (good && more) {
        good = yaml_parser_load(&parser, &doc) != 0;
        if (!good)
            break;
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
