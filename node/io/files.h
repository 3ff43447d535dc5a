/* Open files: a request needs up to two, for the client's and the replica's connection. At the
 * start the system's limit is compared with the settings, because nobody is served well at the
 * limit. */
#ifndef NODE_IO_FILES_H
#define NODE_IO_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "node/settings/options.h"

struct io_files {
    uint64_t max;               /* the limit of this process */
    uint64_t client_max;        /* clients' connections have lower descriptors than this */
    uint64_t connections_asked; /* connections-max as configured */
    unsigned admin_max;         /* connections on the admin port and the probe port */
    bool is_short;              /* the setting was lowered */
};

/* Raises the soft limit to the hard one. Lowers connections-max to the number that fits beside a
 * reserve for the admin port, probes, gossip, and connections to refuse. */
void io_files_fit(struct node_options *o, struct io_files *out);

#endif
