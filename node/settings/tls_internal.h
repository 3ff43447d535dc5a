/* Rows of the option table: TLS. Used by table.c, which has the macros. */
#ifndef NODE_SETTINGS_TLS_INTERNAL_H
#define NODE_SETTINGS_TLS_INTERNAL_H

/* clang-format off */
#define NODE_OPTION_ROWS_TLS                                                                       \
    {.name = "tls-cert",                                                                           \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(tls_cert),                                                                              \
     .fallback = "",                                                                               \
     .wrong = node_allowed_path_not,                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "certificate for clients; repeat for each",                                           \
     .more = "The client port then speaks TLS 1.2 and 1.3 and nothing else. A PEM file with the "  \
             "certificate, then those between it and the CA. Of several the one whose names have " \
             "the name that the client asks for is shown, and the first one if none has. The "     \
             "files are read anew each second: [TLS](tls.md)."},                                   \
    {.name = "tls-key",                                                                            \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(tls_key),                                                                               \
     .fallback = "",                                                                               \
     .wrong = node_allowed_path_not,                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "its private key; in the order of tls-cert",                                          \
     .more = "PEM, not encrypted. Without any, each tls-cert has its key in the same file."},      \
    {.name = "tls-ticket-key-file",                                                                \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(tls_ticket_key_file),                                                                   \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "keys of session tickets, shared by routers",                                         \
     .more = "One key a line, 80 random bytes in base64: [how to make and change them]"  \
             "(tls.md#session-tickets). The first seals, all of them open. Without it each router " \
             "makes its own up, and a client that comes back to another router pays for a whole "  \
             "handshake."},                                                                        \
    {.name = "tls-handshake-timeout",                                                              \
     TIME_FIELD(tls_handshake_timeout_ms),                                                         \
     .fallback = "10s",                                                                            \
     .min = 100,                                                                                   \
     .max = 600e3,                                                                                 \
     .group = "TLS",                                                                               \
     .help = "for a client's whole handshake",                                                     \
     .more = "Of the client port and the admin port. Towards replicas it is a part of "            \
             "upstream-connect-timeout."},                                                         \
    {.name = "replica-ca-file",                                                                    \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(replica_ca_file),                                                                       \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "CAs of https replicas; default: the system's",                                       \
     .more = "PEM, any number of certificates. One of a replica itself does too. It is read anew " \
             "each second; those of the system are read once."},                                   \
    {.name = "replica-cert",                                                                       \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(replica_cert),                                                                          \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "certificate that is shown to https replicas",                                        \
     .more = "For engines, or proxies before them, that ask for one (mutual TLS)."},               \
    {.name = "replica-key",                                                                        \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(replica_key),                                                                           \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "its private key"},                                                                   \
    {.name = "replica-tls-name",                                                                   \
     .type = NODE_TYPE_STRING,                                                                     \
     FIELD(replica_tls_name),                                                                      \
     .fallback = "",                                                                               \
     .wrong = node_allowed_tls_name_not,                                                           \
     .unit = "NAME",                                                                               \
     .group = "TLS",                                                                               \
     .help = "name in the certificates of replicas",                                               \
     .more = "Asked for and checked instead of the host of each https replica: for replicas that " \
             "are known by their addresses, which their certificates do not have (replica-dns, "   \
             "replica-kubernetes)."},                                                              \
    {.name = "admin-tls-cert",                                                                     \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(admin_tls_cert),                                                                        \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "certificate of the admin port",                                                      \
     .more = "It then speaks TLS alone, to probes and Prometheus too. gvctl: `--admin "            \
             "https://HOST:PORT --ca-file FILE`."},                                                \
    {.name = "admin-tls-key",                                                                      \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(admin_tls_key),                                                                         \
     .fallback = "",                                                                               \
     .unit = "FILE",                                                                               \
     .group = "TLS",                                                                               \
     .help = "its private key"}
/* clang-format on */

#endif
