/* Settings that change while the router runs: the file of --config is read again every second
 * (node/io/watch_file.h), and on SIGHUP.
 *
 * A changed file causes a full load as at the start, with the same flags and environment: flags
 * still override the file. After any error nothing changes, and the log has the reason, with file
 * and line. Otherwise live settings take effect (node/settings/change.h), and the log names the
 * others, which wait for a restart.
 *
 * A pipe (--config /dev/stdin) is only read at the start. */
#ifndef NODE_IO_RELOAD_H
#define NODE_IO_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/settings/options.h"

struct shell;
struct reload;

/* Creates shell->reload, if there is a file. `in_force` is changed in place. All is borrowed until
 * reload_free(). ERR_NOMEM. */
MUST_USE int reload_open(struct shell *shell, struct node_options *in_force, int argc,
                         char *const *argv, char *const *environment);
/* Handles SIGHUP. Returns false if there is no file to read. Accepts NULL. */
bool reload_ask(struct reload *r);
/* True until that reading is done. */
bool reload_is_asked(const struct reload *r);
/* True if the last text of the file is unusable: earlier settings stay in force. NULL: no file. */
bool reload_refused(const struct reload *r);
/* Returns the number of settings in the last usable file that wait for a restart. NULL: no file. */
unsigned reload_waiting(const struct reload *r);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void reload_free(struct reload *r);

#endif
