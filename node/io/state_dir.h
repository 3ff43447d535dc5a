/* The folder in which a router keeps its knowledge over a restart (setting state-dir): a file,
 * `state` (node/cluster/keep.h).
 *
 * The file is written in the background: the loop makes pieces, a fraction of a millisecond each,
 * and libuv's pool writes them. The finished file replaces its predecessor atomically (rename). It
 * contains the secret of a router that runs alone and hashes of prompts, so folder and file are
 * private to this user. An unusable file is set aside as `state.refused`. The folder is locked: it
 * belongs to a single router.
 *
 * If writing fails, the router still serves: logged once, and visible in metrics. */
#ifndef NODE_IO_STATE_DIR_H
#define NODE_IO_STATE_DIR_H

#include <stdbool.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/prometheus.h"
#include "node/node.h"

struct shell;
struct state_dir;

enum {
    /* Between two files; what was learned since is lost if the process is killed. */
    STATE_DIR_PAUSE_MS = 10000,
    /* Longer files are written less often: on average so many bytes a second. A disk sustains that
     * for years, and a MiB costs some 10 ms of the loop. */
    STATE_DIR_BYTES_S = 1 << 20,
};

/* Checks that the folder can be used, existing or not. ERR_NOT_FOUND with a message of at most
 * IO_FILE_MESSAGE bytes with the remedy. */
MUST_USE int state_dir_check(const char *path, char *message);
/* Creates the folder if missing, locks it, and reads the file. Errors are the same. `path` and
 * `log` are borrowed. */
MUST_USE int state_dir_open(struct state_dir **out, const char *path, struct log *log,
                            char *message);
/* Returns the kept secret of a router that runs alone; NULL: draw a new one. Borrowed until
 * state_dir_recall(). */
const struct hash_secret *state_dir_secret(const struct state_dir *d);
/* Loads the file's contents into the new node, and frees them. */
void state_dir_recall(struct state_dir *d, struct node *node, uint64_t now_ms);
/* Called every second. */
void state_dir_tick(struct state_dir *d, struct shell *shell);
/* Writes a last time, before the node ends; blocks. Nothing is written afterwards. */
void state_dir_stop(struct state_dir *d, struct shell *shell);
void state_dir_metrics(const struct state_dir *d, uint64_t now_ms, struct prometheus *p);
/* Called after the loop has ended. All functions accept NULL. */
void state_dir_free(struct state_dir *d);

#endif
