/* Reads a list of replicas in YAML: a sequence of URLs, or of maps with url and labels. */
#include <stdio.h>
#include <yaml.h>

#include "base/err.h"
#include "node/io/replica_map.h"
#include "node/io/yaml_line.h"

struct reading {
    yaml_parser_t parser;
    struct replica_list *list;
    char *message;
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

/* Takes a plain value. The caller deletes `event`. */
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

static int read_map(struct reading *r, unsigned line)
{
    struct replica_map map;
    int err = replica_map_read(&r->parser, &map, line, r->message);
    if (err != ERR_OK)
        return err;
    return replica_list_add(r->list, slice_of_cstr(map.url), &map.labels, map.url_line, r->message);
}

static int read_sequence(struct reading *r)
{
    for (;;) {
        yaml_event_t event;
        struct slice url = {0};
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
