/* Reads a replica written as a YAML mapping of url and labels. Such mappings may be in a
 * --replica-file, and in the setting `replica`. */
#ifndef NODE_IO_REPLICA_MAP_H
#define NODE_IO_REPLICA_MAP_H

#include <yaml.h>

#include "node/io/replica_list.h"

/* The replica. Has copies of the values, because a YAML event is freed before the next is read. */
struct replica_map {
    struct node_labels labels;  /* borrows from this struct */
    char url[NODE_VALUE_BYTES]; /* not checked yet */
    unsigned url_line;
    char text[NODE_VALUE_BYTES]; /* the labels as they follow a URL: "#engine=vllm#weight=2" */
    bool has_text;               /* false: a value has a '#' or a comma, or the labels are too
                                  * long */
    char model[NODE_MODEL_ID_MAX + 1];
    char health[NODE_HEALTH_PATH_MAX + 1];
    char kv_events[KV_NAMED_MAX + 1];
    char seen[128]; /* keys seen, each followed by a space */
    bool ended;     /* the mapping was read to the end, maybe with a mistake */
};

/* Reads the rest of a mapping that began at `line`. ERR_SYNTAX with the first mistake as
 * "LINE: a correct form (here: KEY)". */
MUST_USE int replica_map_read(yaml_parser_t *parser, struct replica_map *out, unsigned line,
                              char *message);

#endif
