/* Loads the whole configuration in a single call: flags, environment, the YAML file they name, and
 * the check for contradictions (rules in node/settings/options.h). */
#ifndef NODE_IO_CONFIG_H
#define NODE_IO_CONFIG_H

#include "base/err.h"
#include "base/log.h"
#include "node/settings/options.h"

/* Loads the configuration into `o`, which the caller frees in any case. After an error `error` has
 * the reason. If the command line requests help, the version or the reference page, nothing else is
 * read. */
MUST_USE int io_config_load(struct node_options *o, int argc, char *const *argv,
                            char *const *environment, struct node_options_error *error);

/* Like io_config_load(), but continues after a mistake: `notes`, zeroed at first, gets a line for
 * each mistake. Returns the first error, or ERR_NOMEM, which gets no line. If all values are valid,
 * also checks for contradictions between settings. */
MUST_USE int io_config_load_all(struct node_options *o, int argc, char *const *argv,
                                char *const *environment, struct node_options_notes *notes);

/* Executes every command but RUN: prints and returns the exit status. CHECK_CONFIG prints the
 * effective configuration. */
MUST_USE int io_config_command(const struct node_options *o);

/* Logs each setting that has no effect beside the others. */
void io_config_warn(const struct node_options *o, struct log *log);

#endif
