/* The gossip's shell: the UDP socket, the TCP port for calls, the names of the routers to join, the
 * key file, and the clock that drives node/cluster/replication.h.
 *
 *   gossip.c        start, clock, leave and close
 *   gossip_udp.c    datagrams, and addresses as the kernel has them
 *   gossip_calls.c  calls: streamed answers over TCP, both sides
 *   gossip_seeds.c  the names of --join, looked up repeatedly
 *   gossip_keys.c   the key file, watched, and SIGHUP
 *
 * Changes of the shared state are sent once in each turn of the loop, before the loop sleeps. So a
 * change leaves in the same turn, and a burst of requests shares packets.
 *
 * Without peers there is no gossip (shell->gossip is NULL). */
#ifndef NODE_IO_GOSSIP_H
#define NODE_IO_GOSSIP_H

#include "base/deadline.h"
#include "base/err.h"
#include "gossip/keyring.h"
#include "node/io/read_file.h"
#include "node/io/shell.h"

struct io_gossip;

/* Reads the key file named in the options, or takes the keys of --insecure-gossip. After an error
 * `message` (IO_FILE_MESSAGE bytes) is the reason. Warns if others may read the file. */
MUST_USE int io_gossip_keys_load(struct gossip_keyring *out, const struct node_options *options,
                                 struct log *log, char *message);

/* Opens both sockets and sets the router's name, which may contain the port. `*out` is NULL if the
 * options do not ask for gossip. `keyring` is borrowed, and changes when the key file does. Logs
 * errors. ERR_UNREACHABLE, ERR_NOMEM. */
MUST_USE int io_gossip_open(struct io_gossip **out, uv_loop_t *loop,
                            const struct node_options *options, struct gossip_keyring *keyring,
                            struct log *log);
const char *io_gossip_name(const struct io_gossip *g);
/* Puts keys, name and address into the configuration, and the sending functions into `io`. Logs
 * errors. ERR_UNREACHABLE. */
MUST_USE int io_gossip_config(struct io_gossip *g, struct node_config *config,
                              struct node_replication_io *io);
/* Begins to join the cluster, if shell->gossip exists. Called after the other ports are open. Logs
 * errors. ERR_UNREACHABLE, ERR_NOMEM. */
MUST_USE int io_gossip_start(struct shell *shell);

/* Called by the shell's tick. */
void io_gossip_tick(struct shell *shell);
/* Returns true if calls with time limits are open, so that the tick is needed soon. */
bool io_gossip_waits(const struct shell *shell);
/* Asks for the key file to be read again. Returns false if there is no key file to read again. */
bool io_gossip_ask(struct shell *shell);
/* Returns true until the files requested by io_gossip_ask() are read. */
bool io_gossip_is_asked(const struct shell *shell);
/* Announces to the other routers that this router drains. */
void io_gossip_draining(struct shell *shell);
/* Announces that this router leaves. Calls `done` when all members know, or after
 * IO_GOSSIP_LEAVE_US; at once if there is nothing to leave. */
void io_gossip_leave(struct shell *shell, void (*done)(struct shell *shell));
/* Called after the loop has ended. io_gossip_stop() closes handles; then the loop must run once
 * more before io_gossip_free(). */
void io_gossip_stop(struct shell *shell);
void io_gossip_free(struct shell *shell);

/* Writes metrics of the sockets and the replication. */
void io_gossip_metrics(const struct shell *shell, struct prometheus *p);

#endif
