/* The folder for a router's knowledge over a restart (setting state-dir). The folder has the file
 * `state` (node/cluster/keep.h).
 *
 * The file is written in the background: the loop makes pieces, each in a fraction of a
 * millisecond, and libuv's pool writes them. The finished file replaces the previous file
 * atomically (rename). The file has hashes of prompts and, without peers, the router's secret, so
 * folder and file are private to this user. An unusable file is renamed to `state.refused`. A lock
 * on the folder prevents use by two routers.
 *
 * If writing fails, the router still serves. The failure is logged once, and shown by metrics. */
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
    /* Interval of files. A killed process loses everything learned since the last file. */
    STATE_DIR_PAUSE_MS = 10000,
    /* Most bytes a second on average, so larger files are written less often. A disk sustains this
     * for years, and a MiB costs some 10 ms of the loop. */
    STATE_DIR_BYTES_S = 1 << 20,
};

/* Checks that the folder can be used or created. ERR_NOT_FOUND with a message of at most
 * IO_FILE_MESSAGE bytes, including the remedy. */
MUST_USE int state_dir_check(const char *path, char *message);
/* Creates the folder if missing, locks it, and reads the file. Errors as state_dir_check(). `path`
 * and `log` are borrowed. */
MUST_USE int state_dir_open(struct state_dir **out, const char *path, struct log *log,
                            char *message);
/* Returns the saved secret of a router without peers, valid until state_dir_recall(). NULL: there
 * is none, and the caller makes a new secret. */
const struct hash_secret *state_dir_secret(const struct state_dir *d);
/* Loads the file's contents into the new node, and frees them. */
void state_dir_recall(struct state_dir *d, struct node *node, uint64_t now_ms);
/* Called every second. */
void state_dir_tick(struct state_dir *d, struct shell *shell);
/* Writes the file a last time, before the node ends. Blocks. Nothing is written afterwards. */
void state_dir_stop(struct state_dir *d, struct shell *shell);
void state_dir_metrics(const struct state_dir *d, uint64_t now_ms, struct prometheus *p);
/* Called after the loop has ended. All functions accept NULL. */
void state_dir_free(struct state_dir *d);

#endif
