/* Changes settings while the router runs. The file of --config is read again every second
 * (node/io/watch_file.h), and on SIGHUP.
 *
 * After a change of the file all settings are loaded as at the start, with the same flags and
 * environment, so flags still override the file. After any error nothing changes, and the log has
 * the reason, with file and line. Otherwise live settings take effect (node/settings/change.h), and
 * the log names the other changed settings, which require a restart.
 *
 * A pipe (--config /dev/stdin) is read only at the start. */
#ifndef NODE_IO_RELOAD_H
#define NODE_IO_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/settings/options.h"

struct shell;
struct reload;

/* Creates shell->reload, if there is a --config file. `in_force` has the settings in force, and is
 * changed in place. All arguments are borrowed until reload_free(). ERR_NOMEM. */
MUST_USE int reload_open(struct shell *shell, struct node_options *in_force, int argc,
                         char *const *argv, char *const *environment);
/* Handles SIGHUP. Returns false if there is no file to read. Accepts NULL. */
bool reload_ask(struct reload *r);
/* Returns true until the reading requested by reload_ask() is done. */
bool reload_is_asked(const struct reload *r);
/* Returns true if the file's last text was unusable, so that earlier settings stay in force. `r` is
 * NULL if there is no file. */
bool reload_refused(const struct reload *r);
/* Returns the number of changed settings in the last usable file that require a restart. `r` is
 * NULL if there is no file. */
unsigned reload_waiting(const struct reload *r);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void reload_free(struct reload *r);

#endif
