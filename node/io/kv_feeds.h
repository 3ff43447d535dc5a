/* The sockets of all KV-event feeds of a router: what node/kv/readers.h asks of the shell. libzmq,
 * and its threads, begin with the first feed. */
#ifndef NODE_IO_KV_FEEDS_H
#define NODE_IO_KV_FEEDS_H

#include "node/io/shell.h"
#include "node/kv/readers.h"

/* Borrowed: `shell`, whose node is set before the first call. Never NULL. */
const struct kv_readers_shell *io_kv_feeds_shell(struct shell *shell);
/* Closes all. Then the loop has to run, before what is left is freed. */
void io_kv_feeds_stop(struct shell *shell);
void io_kv_feeds_free(struct shell *shell);

#endif
