/* Reads settings from YAML: a flat mapping of setting names to scalars or sequences of scalars. A
 * replica may be a mapping (node/io/replica_map.h), and model-alias must be a mapping.
 *
 *   listen: 0.0.0.0:8080
 *   replica: [http://10.0.0.1:8000, {url: http://10.0.0.2:8000}]
 *
 * Duplicate keys, other nested mappings, anchors, aliases and a second document are errors, each
 * reported with file and line. */
#ifndef NODE_IO_CONFIG_YAML_H
#define NODE_IO_CONFIG_YAML_H

#include "base/err.h"
#include "node/io/read_file.h"
#include "node/settings/options.h"

enum { IO_CONFIG_FILE_BYTES_MAX = 1 << 20 };

/* Sets the settings of `text` in `o`. `file` is the file's name for messages, and must outlive `o`.
 * After an error `error` has the reason. */
MUST_USE int io_config_yaml_parse(struct node_options *o, struct slice text, const char *file,
                                  struct node_options_error *error);

/* Returns the description of the --config file for repeated reading, which requires a regular file.
 * (io_config_yaml_load() can also read a pipe, once.) */
struct io_file io_config_file(const char *path);
/* Reads the file and parses it. */
MUST_USE int io_config_yaml_load(struct node_options *o, const char *path,
                                 struct node_options_error *error);

#endif
