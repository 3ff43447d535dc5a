/* Rows of the option table: how long clients may take, how many they may be, and balancers in
 * front. Used by table.c, which has the macros. */
#ifndef NODE_SETTINGS_CLIENTS_INTERNAL_H
#define NODE_SETTINGS_CLIENTS_INTERNAL_H

/* clang-format off */
#define NODE_OPTION_ROWS_CLIENTS                                                                   \
    {.name = "client-idle-timeout",                                                                \
     LIVE_TIME(client_idle_timeout_ms),                                                            \
     .fallback = "75s",                                                                            \
     .max = DAY_MS,                                                                                \
     .group = "Front door",                                                                        \
     .help = "kept alive between two requests",                                                    \
     .more = "Longer than that of a balancer that keeps connections "                              \
             "([which](operations.md#behind-a-load-balancer)). 0 turns it off."},                  \
    {.name = "client-head-timeout",                                                                \
     LIVE_TIME(client_head_timeout_ms),                                                            \
     .fallback = "10s",                                                                            \
     .max = DAY_MS,                                                                                \
     .group = "Front door",                                                                        \
     .help = "for a whole request head; then 408",                                                 \
     .more = "0 turns it off."},                                                                   \
    {.name = "client-body-timeout",                                                                \
     LIVE_TIME(client_body_timeout_ms),                                                            \
     .fallback = "30s",                                                                            \
     .max = DAY_MS,                                                                                \
     .group = "Front door",                                                                        \
     .help = "between two pieces of a body; then 408",                                             \
     .more = "0 turns it off."},                                                                   \
    {.name = "client-write-timeout",                                                               \
     LIVE_TIME(client_write_timeout_ms),                                                           \
     .fallback = "60s",                                                                            \
     .max = DAY_MS,                                                                                \
     .group = "Front door",                                                                        \
     .help = "for a client that does not read",                                                    \
     .more = "Who takes less than 64 KiB of what waits in that time counts as one. 0 turns it "  \
             "off."},                                                                   \
    {.name = "client-half-close",                                                                  \
     .type = NODE_TYPE_CHOICE,                                                                     \
     LIVE(client_half_close),                                                                      \
     .fallback = "gone",                                                                           \
     .choices = node_allowed_half_close,                                                           \
     .unit = "gone|answer",                                                                        \
     .group = "Front door",                                                                        \
     .help = "a client that closes its half after a request",                                      \
     .more = "`gone` frees the engine at once: a client that leaves closes its half, too. "        \
             "`answer` answers what it has sent, for clients such as `nc -N`; one that left is "   \
             "then noticed when something is written to it "                                       \
             "([half-closed clients](http.md#half-closed-clients))."},                             \
    {.name = "client-body-rate-min",                                                               \
     .type = NODE_TYPE_BYTES,                                                                      \
     LIVE(client_body_rate_min),                                                                   \
     .fallback = "1KiB",                                                                           \
     .max = GIB,                                                                                   \
     .unit = "SIZE",                                                                               \
     .group = "Front door",                                                                        \
     .help = "of a body a second, over 30 s; then 408",                                            \
     .more = "Time in which the router holds the client back does not count. 0 turns it off."},    \
    {.name = "client-body-total-timeout",                                                          \
     LIVE_TIME(client_body_total_timeout_ms),                                                      \
     .fallback = "10m",                                                                            \
     .max = DAY_MS,                                                                                \
     .group = "Front door",                                                                        \
     .help = "for a whole body; then 408",                                                         \
     .more = "Time in which the router holds the client back does not count. 0 turns it off."},    \
    {.name = "connections-per-client-max",                                                         \
     .type = NODE_TYPE_INTEGER,                                                                    \
     FIELD(connections_per_client_max),                                                            \
     .fallback = "0",                                                                              \
     .max = 1e6,                                                                                   \
     .unit = "NUMBER",                                                                             \
     .group = "Front door",                                                                        \
     .help = "of one address; more get 429; 0: no limit",                                          \
     .more = "Of IPv6 a /64 counts as one client. Behind a balancer that hides its clients all "   \
             "of them are one: leave it off there, or use proxy-protocol."},                       \
    {.name = "proxy-protocol",                                                                     \
     .type = NODE_TYPE_BOOL,                                                                       \
     FIELD(proxy_protocol),                                                                        \
     .fallback = "off",                                                                            \
     .unit = "on|off",                                                                             \
     .group = "Front door",                                                                        \
     .help = "connections begin with a PROXY header",                                              \
     .more = "Versions 1 and 2, on the client port, from a layer 4 balancer. The address in it "   \
             "is the client's from then on: in X-Forwarded-For, in logs, for limits. A "           \
             "connection without it is closed."},                                                  \
    {.name = "proxy-protocol-from",                                                                \
     .type = NODE_TYPE_LIST,                                                                       \
     FIELD(proxy_protocol_from),                                                                   \
     .fallback = "",                                                                               \
     .wrong = node_allowed_net_not,                                                                \
     .unit = "NETWORK",                                                                            \
     .group = "Front door",                                                                        \
     .help = "whose connections do; default: all",                                                 \
     .more = "Addresses or networks of balancers, `10.0.0.0/8`. Others speak for themselves: "     \
             "their connections begin with a request."},                                           \
    {.name = "reuse-port",                                                                         \
     .type = NODE_TYPE_BOOL,                                                                       \
     FIELD(reuse_port),                                                                            \
     .fallback = "off",                                                                            \
     .unit = "on|off",                                                                             \
     .group = "Front door",                                                                        \
     .help = "several routers on one client port",                                                 \
     .more = "Of one machine and one user, all of them with this setting; the kernel deals "       \
             "connections out among them (SO_REUSEPORT). Each wants an admin port, a gossip "      \
             "port and a name of its own. "                                                        \
             "[When](deployment.md#more-than-one-router-on-a-host)."}
/* clang-format on */

#endif
