#include "node/io/config_yaml.h"

#include <stdio.h>
#include <yaml.h>

#include "base/err.h"
#include "node/io/replica_map.h"
#include "node/io/yaml_line.h"

/* State of a parse. A setting starts with a key; a sequence sets the key once per item. */
struct reading {
    yaml_parser_t parser;
    struct node_options *options;
    struct node_options_error *error;
    const char *file;
    bool seen[NODE_OPTIONS_MAX];
};

static int fail(struct reading *r, unsigned line, const char *text)
{
    (void)snprintf(r->error->text, sizeof r->error->text, "bad file %s:%u: %s", r->file, line,
                   text);
    return ERR_SYNTAX;
}

static int fail_syntax(struct reading *r)
{
    const char *problem = r->parser.problem != NULL ? r->parser.problem : "no valid YAML";
    char text[256];
    (void)snprintf(text, sizeof text, "not YAML, %s", problem);
    return fail(r, yaml_line_of_error(&r->parser), text);
}

static struct slice scalar_of(const yaml_event_t *event)
{
    return slice_of((const char *)event->data.scalar.value, event->data.scalar.length);
}

/* Sets a setting to a scalar, which must not have an anchor. `name` and `value` are borrowed for
 * the call. */
static int set(struct reading *r, struct slice name, const yaml_event_t *value)
{
    struct node_option_origin origin = {
        .source = NODE_SOURCE_FILE,
        .file = r->file,
        .line = yaml_line_of(value->start_mark),
    };
    if (value->data.scalar.anchor != NULL)
        return fail(r, origin.line, "want no anchors");
    return node_options_note(
        r->options, r->error,
        node_options_set(r->options, name, scalar_of(value), origin, r->error));
}

static int next(struct reading *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) == 1 ? 0 : fail_syntax(r);
}

/* Reads a mapping of url and labels under `replica`, like the text URL#LABEL=VALUE... */
static int read_replica(struct reading *r, unsigned line)
{
    struct replica_map map;
    char wrong[REPLICA_LIST_MESSAGE];
    struct node_option_origin origin = {.source = NODE_SOURCE_FILE, .file = r->file, .line = line};
    int err = replica_map_read(&r->parser, &map, line, wrong);
    if (err == 0 && !map.has_text)
        err = replica_list_fail(wrong, line,
                                "want no # and no comma in a replica's values, or the replica in a "
                                "replica-file");
    if (err != 0) {
        (void)snprintf(r->error->text, sizeof r->error->text, "bad file %s:%s", r->file, wrong);
        return map.ended ? node_options_note(r->options, r->error, err) : err;
    }
    struct buf text = {0};
    origin.line = map.url_line;
    err = buf_printf(&text, "%s%s", map.url, map.text);
    if (err != 0)
        (void)snprintf(r->error->text, sizeof r->error->text, "%s", err_text(err));
    else
        err = node_options_note(
            r->options, r->error,
            node_options_set(r->options, SLICE("replica"), buf_slice(&text), origin, r->error));
    buf_free(&text);
    return err;
}

static int read_sequence(struct reading *r, struct slice name, unsigned line)
{
    unsigned items = 0;
    for (;;) {
        yaml_event_t event;
        int err = next(r, &event);
        if (err != 0)
            return err;
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        bool maps = event.type == YAML_MAPPING_START_EVENT &&
                    event.data.mapping_start.anchor == NULL && slice_equal(name, SLICE("replica"));
        if (event.type == YAML_SCALAR_EVENT)
            err = set(r, name, &event);
        else if (maps)
            err = read_replica(r, yaml_line_of(event.start_mark));
        else if (!end)
            err = fail(r, yaml_line_of(event.start_mark), "want plain values in a sequence");
        yaml_event_delete(&event);
        if (err != 0)
            return err;
        if (end)
            return items > 0 ? 0 : fail(r, line, "want at least one value in a sequence");
        items++;
    }
}

/* Reads an entry NAME: MODEL under model-alias, like the text NAME=MODEL. */
static int set_named(struct reading *r, struct slice setting, const yaml_event_t *key,
                     const yaml_event_t *value)
{
    struct buf entry = {0};
    struct node_option_origin origin = {
        .source = NODE_SOURCE_FILE, .file = r->file, .line = yaml_line_of(value->start_mark)};
    int err = buf_append_slice(&entry, scalar_of(key));
    if (err == 0)
        err = buf_append_char(&entry, '=');
    if (err == 0)
        err = buf_append_slice(&entry, scalar_of(value));
    if (err != 0)
        (void)snprintf(r->error->text, sizeof r->error->text, "%s", err_text(err));
    else
        err = node_options_note(
            r->options, r->error,
            node_options_set(r->options, setting, buf_slice(&entry), origin, r->error));
    buf_free(&entry);
    return err;
}

static int read_named(struct reading *r, struct slice setting, unsigned line)
{
    static const char want[] = "want NAME: MODEL, such as gpt-4o: llama-70b:90,llama-70b-v2:10";
    unsigned items = 0;
    for (;; items++) {
        yaml_event_t key, value;
        int err = next(r, &key);
        if (err != 0)
            return err;
        bool end = key.type == YAML_MAPPING_END_EVENT;
        bool plain = key.type == YAML_SCALAR_EVENT && key.data.scalar.anchor == NULL;
        if (!end && plain && (err = next(r, &value)) == 0) {
            plain = value.type == YAML_SCALAR_EVENT && value.data.scalar.anchor == NULL;
            if (plain)
                err = set_named(r, setting, &key, &value);
            yaml_event_delete(&value);
        }
        if (err == 0 && !end && !plain)
            err = fail(r, yaml_line_of(key.start_mark), want);
        yaml_event_delete(&key);
        if (err != 0)
            return err;
        if (end)
            return items > 0 ? 0 : fail(r, line, want);
    }
}

/* Notes a key. A duplicate key is an error, because choosing between the values would be a
 * guess. */
static int note_key(struct reading *r, struct slice name, unsigned line)
{
    int index = node_option_find(name);
    if (index < 0)
        return 0; /* node_options_set() reports the error */
    if (r->seen[index]) {
        char text[128];
        (void)snprintf(text, sizeof text, "want %.*s only once", SLICE_ARG(name));
        return fail(r, line, text);
    }
    r->seen[index] = true;
    return 0;
}

static int is_list(struct slice name)
{
    int index = node_option_find(name);
    return index >= 0 && node_option_at((unsigned)index)->type == NODE_TYPE_LIST;
}

static int read_setting(struct reading *r, const yaml_event_t *key)
{
    struct slice name = scalar_of(key);
    yaml_event_t value;
    int err = note_key(r, name, yaml_line_of(key->start_mark));
    if (err == 0)
        err = next(r, &value);
    if (err != 0)
        return err;
    unsigned line = yaml_line_of(value.start_mark);
    if (value.type == YAML_SCALAR_EVENT)
        err = set(r, name, &value);
    else if (value.type == YAML_SEQUENCE_START_EVENT &&
             (is_list(name) || node_option_find(name) < 0))
        err = read_sequence(r, name, line);
    else if (value.type == YAML_MAPPING_START_EVENT && slice_equal(name, SLICE("model-alias")))
        err = read_named(r, name, line);
    else
        err = fail(r, line,
                   value.type == YAML_SEQUENCE_START_EVENT ? "want one value, not a sequence"
                   : slice_equal(name, SLICE("replica"))
                       ? "want a sequence of replicas: - url: http://HOST:PORT"
                       : "want name: value, not nested");
    yaml_event_delete(&value);
    return err;
}

static int read_mapping(struct reading *r)
{
    for (;;) {
        yaml_event_t event;
        int err = next(r, &event);
        if (err != 0)
            return err;
        bool end = event.type == YAML_MAPPING_END_EVENT;
        if (event.type == YAML_SCALAR_EVENT)
            err = read_setting(r, &event);
        else if (!end)
            err = fail(r, yaml_line_of(event.start_mark), "want the name of a setting");
        yaml_event_delete(&event);
        if (err != 0 || end)
            return err;
    }
}

/* Reads the document. A file without content, or with only comments, sets nothing. */
static int read_stream(struct reading *r)
{
    for (unsigned documents = 0;;) {
        yaml_event_t event;
        int err = next(r, &event);
        if (err != 0)
            return err;
        bool end = event.type == YAML_STREAM_END_EVENT;
        if (event.type == YAML_DOCUMENT_START_EVENT && documents++ > 0)
            err = fail(r, yaml_line_of(event.start_mark), "want one document only");
        else if (event.type == YAML_MAPPING_START_EVENT)
            err = read_mapping(r);
        else if (event.type == YAML_SCALAR_EVENT && event.data.scalar.length == 0)
            err = 0; /* "---" alone */
        else if (event.type == YAML_SCALAR_EVENT || event.type == YAML_SEQUENCE_START_EVENT ||
                 event.type == YAML_ALIAS_EVENT)
            err = fail(r, yaml_line_of(event.start_mark), "want lines of name: value");
        yaml_event_delete(&event);
        if (err != 0 || end)
            return err;
    }
}

int io_config_yaml_parse(struct node_options *o, struct slice text, const char *file,
                         struct node_options_error *error)
{
    if (text.len == 0) /* an empty file sets nothing; libyaml takes no NULL */
        return 0;
    struct reading r = {.options = o, .error = error, .file = file};
    if (yaml_parser_initialize(&r.parser) == 0) {
        (void)snprintf(error->text, sizeof error->text, "out of memory while reading %s", file);
        return ERR_NOMEM;
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text.at, text.len);
    int err = read_stream(&r);
    yaml_parser_delete(&r.parser);
    return err;
}

struct io_file io_config_file(const char *path)
{
    return (struct io_file){
        .setting = "bad setting config =",
        .path = path,
        .bytes_max = IO_CONFIG_FILE_BYTES_MAX,
        .long_advice = "want at most 1048576 bytes",
    };
}
_Static_assert((int)IO_CONFIG_FILE_BYTES_MAX == 1048576, "as the message says");
_Static_assert((int)IO_FILE_MESSAGE <= (int)NODE_ERROR_BYTES, "its messages must fit");

int io_config_yaml_load(struct node_options *o, const char *path, struct node_options_error *error)
{
    struct io_file file = io_config_file(path);
    struct buf text = {0};
    file.pipes = true;
    int err = io_file_read(&file, &text, NULL, error->text);
    if (err == 0)
        err = io_config_yaml_parse(o, buf_slice(&text), path, error);
    buf_free(&text);
    return err;
}
