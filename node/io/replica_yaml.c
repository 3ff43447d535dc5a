/* Reads a list of replicas in YAML: a sequence of URLs, or of maps with url and labels. */
#include <stdio.h>
#include <yaml.h>

#include "base/err.h"
#include "node/io/replica_list.h"
#include "node/io/yaml_line.h"

struct reading {
    yaml_parser_t parser;
    struct replica_list *list;
    char *message;
};

/* Owned copies of a map's values: an event ends with the next. */
struct map {
    struct node_labels labels;
    char url[NODE_VALUE_BYTES];
    char model[NODE_MODEL_ID_MAX + 1];
    char health[NODE_HEALTH_PATH_MAX + 1];
    char kv_events[KV_NAMED_MAX + 1];
    char seen[128]; /* keys seen, each followed by a space */
};

static int next(struct reading *r, yaml_event_t *event)
{
    if (yaml_parser_parse(&r->parser, event) == 1)
        return ERR_OK;
    char text[256];
    (void)snprintf(text, sizeof text, "not YAML, %s",
                   r->parser.problem != NULL ? r->parser.problem : "no valid text");
    return replica_list_fail(r->message, yaml_line_of_error(&r->parser), text);
}

/* Takes a plain value; the caller deletes `event`. */
static int take_scalar(struct reading *r, const yaml_event_t *event, const char *want,
                       struct slice *out)
{
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.anchor != NULL)
        return replica_list_fail(r->message, yaml_line_of(event->start_mark), want);
    *out = slice_of((const char *)event->data.scalar.value, event->data.scalar.length);
    return memchr(out->at, '\0', out->len) == NULL
               ? ERR_OK
               : replica_list_fail(r->message, yaml_line_of(event->start_mark), want);
}

static const char *map_set(struct map *map, struct slice key, struct slice value)
{
    char word[24];
    (void)snprintf(word, sizeof word, "%.*s ", key.len > 20 ? 20 : (int)key.len, key.at);
    if (strstr(map->seen, word) != NULL)
        return "want each key of a replica once";
    (void)strncat(map->seen, word, sizeof map->seen - strlen(map->seen) - 1);
    if (slice_equal(key, SLICE("url")))
        return slice_to_cstr(value, map->url, sizeof map->url) ? NULL : "want a shorter url";
    const char *wrong = node_labels_set(&map->labels, key, value);
    if (wrong == NULL && slice_equal(key, SLICE("model"))) {
        (void)slice_to_cstr(value, map->model, sizeof map->model);
        map->labels.model = slice_of_cstr(map->model);
    }
    if (wrong == NULL && slice_equal(key, SLICE("health"))) {
        (void)slice_to_cstr(value, map->health, sizeof map->health);
        map->labels.health = slice_of_cstr(map->health);
    }
    if (wrong == NULL && slice_equal(key, SLICE("kv-events"))) {
        (void)slice_to_cstr(value, map->kv_events, sizeof map->kv_events);
        map->labels.kv_events = slice_of_cstr(map->kv_events);
    }
    return wrong;
}

static int read_map(struct reading *r, unsigned line)
{
    struct map map = {0};
    for (;;) {
        yaml_event_t key, value;
        struct slice name, text;
        int err = next(r, &key);
        if (err != ERR_OK)
            return err;
        if (key.type == YAML_MAPPING_END_EVENT) {
            yaml_event_delete(&key);
            break;
        }
        err = take_scalar(r, &key,
                          "want url, engine, weight, model, health, cache-tokens, ranks, "
                          "adapters or role",
                          &name);
        if (err == ERR_OK && (err = next(r, &value)) == ERR_OK) {
            err = take_scalar(r, &value, "want one plain value", &text);
            const char *wrong = err == ERR_OK ? map_set(&map, name, text) : NULL;
            if (wrong != NULL)
                err = replica_list_fail_at(r->message, yaml_line_of(value.start_mark), wrong, name);
            yaml_event_delete(&value);
        }
        yaml_event_delete(&key);
        if (err != ERR_OK)
            return err;
    }
    if (map.url[0] == '\0')
        return replica_list_fail(r->message, line, "want a url: http://HOST:PORT");
    return replica_list_add(r->list, slice_of_cstr(map.url), &map.labels, line, r->message);
}

static int read_sequence(struct reading *r)
{
    for (;;) {
        yaml_event_t event;
        struct slice url;
        int err = next(r, &event);
        if (err != ERR_OK)
            return err;
        unsigned line = yaml_line_of(event.start_mark);
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        if (event.type == YAML_MAPPING_START_EVENT && event.data.mapping_start.anchor == NULL)
            err = read_map(r, line);
        else if (!end)
            err = take_scalar(r, &event, "want http://HOST:PORT, or a map with a url", &url);
        if (event.type == YAML_SCALAR_EVENT && err == ERR_OK)
            err = replica_list_add(r->list, url, NULL, line, r->message);
        yaml_event_delete(&event);
        if (err != ERR_OK || end)
            return err;
    }
}

static int read_stream(struct reading *r)
{
    for (unsigned documents = 0;;) {
        yaml_event_t event;
        int err = next(r, &event);
        if (err != ERR_OK)
            return err;
        bool end = event.type == YAML_STREAM_END_EVENT;
        unsigned line = yaml_line_of(event.start_mark);
        bool empty = event.type == YAML_SCALAR_EVENT && event.data.scalar.length == 0;
        if (event.type == YAML_DOCUMENT_START_EVENT && documents++ > 0)
            err = replica_list_fail(r->message, line, "want one document only");
        else if (event.type == YAML_SEQUENCE_START_EVENT)
            err = read_sequence(r);
        else if (event.type == YAML_MAPPING_START_EVENT || event.type == YAML_ALIAS_EVENT ||
                 (event.type == YAML_SCALAR_EVENT && !empty))
            err = replica_list_fail(r->message, line, "want a sequence of replicas");
        yaml_event_delete(&event);
        if (err != ERR_OK || end)
            return err;
    }
}

int replica_yaml_read(struct slice text, struct replica_list *list, char *message)
{
    struct reading r = {.list = list, .message = message};
    if (yaml_parser_initialize(&r.parser) == 0) {
        (void)snprintf(message, REPLICA_LIST_MESSAGE, "out of memory");
        return ERR_NOMEM;
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.at, text.len);
    int err = read_stream(&r);
    yaml_parser_delete(&r.parser);
    return err;
}
