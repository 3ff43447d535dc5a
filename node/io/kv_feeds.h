/* The sockets of all KV-event feeds of a router: the shell's part for node/kv/readers.h. libzmq's
 * threads start with the first feed. */
#ifndef NODE_IO_KV_FEEDS_H
#define NODE_IO_KV_FEEDS_H

#include "node/io/shell.h"
#include "node/kv/readers.h"

/* Borrows `shell`, which must have a node before the first call. Never returns NULL. */
const struct kv_readers_shell *io_kv_feeds_shell(struct shell *shell);
/* Closes all feeds. The loop must run before io_kv_feeds_free(). */
void io_kv_feeds_stop(struct shell *shell);
void io_kv_feeds_free(struct shell *shell);

#endif
