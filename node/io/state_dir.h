/* The folder in which a router keeps what it knows over a restart (setting state-dir): one file,
 * `state` (node/cluster/keep.h).
 *
 * It is written in the background: pieces are made on the loop, a fraction of a millisecond each,
 * and written by libuv's pool; then it takes the place of the one before at once (rename). It holds
 * the secret of a router alone and hashes of prompts, so folder and file are this user's alone. A
 * file that cannot be used is set aside as `state.refused`. The folder is locked: it is of one
 * router.
 *
 * Where it cannot be written the router serves on: once logged, and in metrics.
 */
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
    /* Longer ones are rarer: on average so many bytes are written in a second. A disk takes as
     * much for years, and a MiB costs some 10 ms of the loop. */
    STATE_DIR_BYTES_S = 1 << 20,
};

/* Whether the folder can be used, made or not. ERR_NOT_FOUND with a message of at most
 * IO_FILE_MESSAGE bytes that says what to do. */
MUST_USE int state_dir_check(const char *path, char *message);
/* Makes it if need be, locks it, and reads the file. Errors are the same. `path` and `log` are
 * borrowed. */
MUST_USE int state_dir_open(struct state_dir **out, const char *path, struct log *log,
                            char *message);
/* The secret of a router alone, as it was; NULL: draw one. Borrowed until state_dir_recall(). */
const struct hash_secret *state_dir_secret(const struct state_dir *d);
/* The node, which is new, knows what the file says, which is let go. */
void state_dir_recall(struct state_dir *d, struct node *node, uint64_t now_ms);
/* Every second. */
void state_dir_tick(struct state_dir *d, struct shell *shell);
/* A last time, before the node ends; blocks. Nothing is written afterwards. */
void state_dir_stop(struct state_dir *d, struct shell *shell);
void state_dir_metrics(const struct state_dir *d, uint64_t now_ms, struct prometheus *p);
/* The loop has ended. All may have NULL. */
void state_dir_free(struct state_dir *d);

#endif
