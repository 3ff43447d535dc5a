#include "node/io/replica_map.h"

#include <stdio.h>

#include "base/err.h"
#include "node/io/yaml_line.h"

static const char want_key[] = "want url, engine, weight, model, health, cache-tokens, context, "
                               "ranks, adapters, host-header, kv-events or role";

static const char after_hash[] = "after # "; /* how mistakes in labels begin */

/* Parses the next event. Writes a syntax error to `message`. */
static int next(yaml_parser_t *parser, yaml_event_t *event, char *message)
{
    if (yaml_parser_parse(parser, event) == 1)
        return ERR_OK;
    char text[256];
    (void)snprintf(text, sizeof text, "not YAML, %s",
                   parser->problem != NULL ? parser->problem : "no valid text");
    return replica_list_fail(message, yaml_line_of_error(parser), text);
}

/* Returns true if the event is a plain value. The caller deletes `event`. */
static bool is_plain(const yaml_event_t *event, struct slice *out)
{
    if (event->type != YAML_SCALAR_EVENT || event->data.scalar.anchor != NULL)
        return false;
    *out = slice_of((const char *)event->data.scalar.value, event->data.scalar.length);
    return memchr(out->at, '\0', out->len) == NULL;
}

/* Copies a label's value and returns the copy. */
static struct slice keep(struct slice value, char *room, size_t size)
{
    (void)slice_to_cstr(value, room, size);
    return slice_of_cstr(room);
}

static void add_text(struct replica_map *map, struct slice key, struct slice value)
{
    size_t len = strlen(map->text), room = sizeof map->text - len;
    int n = snprintf(map->text + len, room, "#%.*s=%.*s", SLICE_ARG(key), SLICE_ARG(value));
    bool parts = slice_find(value, '#') < value.len || slice_find(value, ',') < value.len;
    map->has_text = map->has_text && !parts && n > 0 && (size_t)n < room;
}

/* Sets a key. Returns NULL, or the right form after a mistake. */
static const char *map_set(struct replica_map *map, struct slice key, struct slice value)
{
    char word[24];
    (void)snprintf(word, sizeof word, "%.*s ", key.len > 20 ? 20 : (int)key.len, key.at);
    if (strstr(map->seen, word) != NULL)
        return "want each key of a replica once";
    (void)strncat(map->seen, word, sizeof map->seen - strlen(map->seen) - 1);
    if (slice_equal(key, SLICE("url")))
        return slice_to_cstr(value, map->url, sizeof map->url) ? NULL : "want a shorter url";
    if (!node_labels_known(key))
        return want_key;
    const char *wrong = node_labels_set(&map->labels, key, value);
    if (wrong != NULL) /* in YAML no # comes before a key, so the words about # are left out */
        return wrong +
               (strncmp(wrong, after_hash, strlen(after_hash)) == 0 ? strlen(after_hash) : 0);
    if (slice_equal(key, SLICE("model")))
        map->labels.model = keep(value, map->model, sizeof map->model);
    if (slice_equal(key, SLICE("health")))
        map->labels.health = keep(value, map->health, sizeof map->health);
    if (slice_equal(key, SLICE("kv-events")))
        map->labels.kv_events = keep(value, map->kv_events, sizeof map->kv_events);
    add_text(map, key, value);
    return NULL;
}

/* Reads the value of a key. `bad`: a mistake was found before, which is reported instead. */
static int read_value(yaml_parser_t *parser, struct replica_map *map, struct slice key, bool *bad,
                      char *message)
{
    yaml_event_t value;
    char *told = message, ignored[REPLICA_LIST_MESSAGE];
    struct slice text;
    int err = next(parser, &value, message);
    if (err != ERR_OK)
        return err;
    unsigned line = yaml_line_of(value.start_mark);
    if (*bad)
        told = ignored;
    if (!is_plain(&value, &text)) { /* otherwise nested values would be read as keys */
        if (!*bad)
            err = replica_list_fail_at(message, line, "want one plain value", key);
        yaml_event_delete(&value);
        return err != ERR_OK ? err : ERR_SYNTAX;
    }
    if (slice_equal(key, SLICE("url")))
        map->url_line = line;
    const char *wrong = map_set(map, key, text);
    if (wrong != NULL) {
        *bad = true;
        DISCARD(replica_list_fail_at(told, line, wrong, key));
    }
    yaml_event_delete(&value);
    return ERR_OK;
}

int replica_map_read(yaml_parser_t *parser, struct replica_map *out, unsigned line, char *message)
{
    bool bad = false;
    *out = (struct replica_map){.has_text = true};
    while (!out->ended) {
        yaml_event_t key;
        struct slice name;
        int err = next(parser, &key, message);
        if (err != ERR_OK)
            return err;
        out->ended = key.type == YAML_MAPPING_END_EVENT;
        if (out->ended)
            err = ERR_OK;
        else if (is_plain(&key, &name))
            err = read_value(parser, out, name, &bad, message);
        else
            err = replica_list_fail(message, yaml_line_of(key.start_mark), want_key);
        yaml_event_delete(&key);
        if (err != ERR_OK)
            return err;
    }
    if (!bad && out->url[0] == '\0')
        return replica_list_fail(message, line, "want a url: http://HOST:PORT");
    return bad ? ERR_SYNTAX : ERR_OK;
}
