/* The limit on open files. A request needs up to two files, for the client's and the replica's
 * connection. At the start the router lowers connections-max if the limit is too low, because a
 * router that has no file left cannot serve well. */
#ifndef NODE_IO_FILES_H
#define NODE_IO_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "node/settings/options.h"

struct io_files {
    uint64_t max;               /* the limit of this process */
    uint64_t client_max;        /* clients' connections have lower descriptors than this */
    uint64_t connections_asked; /* connections-max from the settings */
    unsigned admin_max;         /* connections on the admin port and the probe port */
    bool is_short;              /* connections-max was lowered to fit the limit */
};

/* Raises the soft limit to the hard limit. Lowers connections-max to leave a reserve for the admin
 * port, probes, gossip, and connections to refuse. */
void io_files_fit(struct node_options *o, struct io_files *out);

#endif
