/* Rows of the option table: where replicas are found. Used by table.c, which has the macros. */
#ifndef NODE_SETTINGS_SOURCES_INTERNAL_H
#define NODE_SETTINGS_SOURCES_INTERNAL_H

/* clang-format off */
#define NODE_OPTION_ROWS_SOURCES                                                                   \
    {.name = "replica-dns",                                                                        \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(replica_dns),                                                                           \
     .fallback = "",                                                                               \
     .wrong = node_allowed_replica_dns_not,                                                        \
     .unit = "NAME:PORT",                                                                          \
     .group = "Endpoints",                                                                         \
     .help = "each address of a DNS name is a replica",                                            \
     .more = "Looked up again and again: A and AAAA, with the search domains of "                  \
             "`/etc/resolv.conf`, and `/etc/hosts`. A name that begins with an underscore "        \
             "(`_http._tcp.engines.example`) has SRV records, which give the ports: write none. "  \
             "Labels may follow and count for all of them: `engines.internal:8000#engine=vllm`. "  \
             "[What happens when addresses go, or an answer fails]"                                \
             "(operations.md#finding-replicas)."},                                                 \
    {.name = "replica-dns-interval",                                                               \
     TIME_FIELD(replica_dns_interval_ms),                                                          \
     .fallback = "3s",                                                                             \
     .min = 100,                                                                                   \
     .max = 3600e3,                                                                                \
     .group = "Endpoints",                                                                         \
     .help = "between two lookups of replica-dns",                                                 \
     .more = "Whatever the TTL of the answers is: resolvers on the way keep to that."},            \
    {.name = "dns-server",                                                                         \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(dns_server),                                                                            \
     .fallback = "",                                                                               \
     .wrong = node_allowed_dns_server_not,                                                         \
     .unit = "IP[:PORT]",                                                                          \
     .group = "Endpoints",                                                                         \
     .help = "asked for replica-dns, instead of the system's",                                     \
     .more = "An IP address, no name: `10.0.0.10`, `10.0.0.10:5353`, `[fd00::10]`. Without a "     \
             "port, 53 is meant. Repeat it for several. A server that does not answer within 2 s " \
             "gives way to the next; after all of them each is asked once more, for 4 s. If none " \
             "answers, the replicas stay as they were. By default those of `/etc/resolv.conf` "    \
             "are asked, which is read again when it changes; its search domains count in any "    \
             "case. Other names (`replica`, `join`) are asked of the system's."},                  \
    {.name = "replica-file",                                                                       \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(replica_file),                                                                          \
     .fallback = "",                                                                               \
     .wrong = node_allowed_path_not,                                                               \
     .unit = "FILE",                                                                               \
     .group = "Endpoints",                                                                         \
     .help = "a list of replicas, read again as it changes",                                       \
     .more = "One replica a line as `replica` writes it, or a YAML sequence. It is looked at each "\
             "second, by its name: a link that is swapped is a new list. A file that is not "      \
             "understood changes nothing, and one that is not there is waited for. "               \
             "[Its format](operations.md#a-file)."},                                               \
    {.name = "replica-kubernetes",                                                                 \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(replica_kubernetes),                                                                    \
     .fallback = "",                                                                               \
     .wrong = node_allowed_replica_kubernetes_not,                                                 \
     .unit = "SERVICE",                                                                            \
     .group = "Endpoints",                                                                         \
     .help = "the ready pods of a Kubernetes service",                                             \
     .more = "`NAMESPACE/SERVICE:PORT`, for a router that runs in the cluster. The port is that "  \
             "of the pods, by its number or by its name in the service; it may be left out where " \
             "there is only one. Without a namespace the router's own is meant. Labels may follow " \
             "and count for all of them: `inference/vllm:http#engine=vllm`. The router's service " \
             "account wants a Role. [What follows from what pods do](operations.md#kubernetes)."}, \
    {.name = "kubernetes-credentials",                                                             \
     .type = NODE_TYPE_PATH,                                                                       \
     FIELD(kubernetes_credentials),                                                                \
     .fallback = "/var/run/secrets/kubernetes.io/serviceaccount",                                  \
     .unit = "FOLDER",                                                                             \
     .group = "Endpoints",                                                                         \
     .help = "token, CA and namespace for replica-kubernetes",                                     \
     .more = "The files are read for each request, so they may change while the router runs."}
/* clang-format on */

#endif
