/* Rows of the option table: who may call. table.c includes them. */
#ifndef NODE_SETTINGS_ACCESS_INTERNAL_H
#define NODE_SETTINGS_ACCESS_INTERNAL_H

#include "node/settings/options.h"

/* clang-format off */
#define NODE_OPTION_ROWS_ACCESS                                                                    \
    {.name = "client-keys-file",                                                                   \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(client_keys_file),                                                                      \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "Endpoints",                                                                         \
     .help = "API keys of clients: names, hashes, limits",                                         \
     .more = "With it only clients whose key is in the file are served. `gvctl key new NAME` "     \
             "makes a key and its line. The file is read anew each second; one that is wrong "     \
             "leaves the keys as they were. Clients' keys go to no engine then, and the key of "   \
             "`replica-api-key-file`, if there is one, goes with their requests. [How to use "     \
             "it](operations.md#who-may-call)."}
#define NODE_OPTION_ROWS_ADMIN_ACCESS                                                              \
    {.name = "admin-read-token-file",                                                              \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(admin_read_token_file),                                                                 \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "Endpoints",                                                                         \
     .help = "token asked of calls that only read",                                                \
     .more = "On the admin port: `Authorization: Bearer TOKEN`, this one or that of "              \
             "`admin-token-file`. Without it reading needs no token. `/healthz`, `/readyz` and "   \
             "`/metrics` never need one."},                                                        \
    {.name = "probe-listen",                                                                       \
     .type = NODE_TYPE_STRING,                                                                     \
     FIELD(probe_listen),                                                                          \
     .fallback = "",                                                                               \
     .wrong = node_allowed_address_not,                                                            \
     .unit = "HOST:PORT",                                                                          \
     .group = "Endpoints",                                                                         \
     .help = "a port for probes and /metrics alone",                                               \
     .more = "Serves `/healthz`, `/readyz` and `/metrics`, and nothing else, so that those who "   \
             "ask them need not reach the admin port, which serves them too."}
/* clang-format on */

#endif
