/* The whole configuration in one call: flags, environment, the YAML file that they name, and the
 * check for contradictions (node/settings/options.h has the rules).
 */
#ifndef NODE_IO_CONFIG_H
#define NODE_IO_CONFIG_H

#include "base/err.h"
#include "node/settings/options.h"

/* Initialises `o`, which the caller frees in any case. If the command line asks for help, the
 * version or the reference page, nothing else is read. */
MUST_USE int io_config_load(struct node_options *o, int argc, char *const *argv,
                            char *const *environment, struct node_options_error *error);

/* The same, but a mistake does not end it: `notes`, zeroes at first, gets a line for each. Returns
 * the first one, or ERR_NOMEM, which is not noted. Contradictions between settings are looked for
 * once all values are right. */
MUST_USE int io_config_load_all(struct node_options *o, int argc, char *const *argv,
                                char *const *environment, struct node_options_notes *notes);

/* Carries out every command but RUN: prints and returns the exit status. CHECK_CONFIG prints the
 * effective configuration. */
MUST_USE int io_config_command(const struct node_options *o);

#endif
