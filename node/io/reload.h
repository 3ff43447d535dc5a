/* Settings that change while the router runs: the file of --config is read again every second
 * (node/io/watch_file.h), and on SIGHUP.
 *
 * If it is new all settings are made anew as at the start, from the same flags and environment, so
 * a flag stays stronger than the file. If anything is wrong nothing
 * changes, and the log says what, with file and line. Else live settings take effect
 * (node/settings/change.h), and the others are named: they wait for a restart.
 *
 * A pipe (--config /dev/stdin) is read at the start alone.
 */
#ifndef NODE_IO_RELOAD_H
#define NODE_IO_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/settings/options.h"

struct shell;
struct reload;

/* Makes shell->reload, if there is a file. `in_force` is changed in place. All is borrowed until
 * reload_free(). ERR_NOMEM. */
MUST_USE int reload_open(struct shell *shell, struct node_options *in_force, int argc,
                         char *const *argv, char *const *environment);
/* SIGHUP. False: there is no file to read. NULL: none. */
bool reload_ask(struct reload *r);
/* Whether that is still to come. */
bool reload_is_asked(const struct reload *r);
/* Whether the file as it was read last cannot be used: what was in force goes on. NULL: no file. */
bool reload_refused(const struct reload *r);
/* How many settings of the file as it was last used wait for a restart. NULL: no file. */
unsigned reload_waiting(const struct reload *r);
/* The loop has ended, or never ran. NULL is fine. */
void reload_free(struct reload *r);

#endif
