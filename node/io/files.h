/* Open files: a request needs up to two, its client's and its replica's connection. What the system
 * allows is compared with the settings at the start, because nobody is served well at the limit. */
#ifndef NODE_IO_FILES_H
#define NODE_IO_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "node/settings/options.h"

struct io_files {
    uint64_t max;               /* the limit of this process */
    uint64_t client_max;        /* clients' connections have lower numbers than this */
    uint64_t connections_asked; /* connections-max as it was set */
    unsigned admin_max;         /* connections on the admin port and the probe port */
    bool is_short;              /* the setting was lowered */
};

/* Raises the soft limit to the hard one, and lowers connections-max to what fits with a reserve:
 * for the admin port, probes, gossip, and connections that are refused. */
void io_files_fit(struct node_options *o, struct io_files *out);

#endif
