/* Rows of the option table: how the process ends. table.c includes them. */
#ifndef NODE_SETTINGS_STOP_INTERNAL_H
#define NODE_SETTINGS_STOP_INTERNAL_H

#include "node/settings/options.h"

/* clang-format off */
#define NODE_OPTION_ROWS_STOP                                                                      \
    {.name = "drain-delay",                                                                        \
     LIVE_TIME(drain_delay_ms),                                                                    \
     .fallback = "5s",                                                                             \
     .max = DAY_MS,                                                                                \
     .group = "Operation",                                                                         \
     .help = "still serves after SIGTERM, not ready",                                              \
     .more = "Longer than load balancers take to see `/readyz` fail. SIGINT (Ctrl-C) skips it, a " \
             "second SIGTERM ends it. 0 turns it off."},                                           \
    {.name = "drain-timeout",                                                                      \
     LIVE_TIME(drain_timeout_ms),                                                                  \
     .fallback = "5m",                                                                             \
     .max = DAY_MS,                                                                                \
     .group = "Operation",                                                                         \
     .help = "for open requests after drain-delay",                                                \
     .more = "As long as the longest answers. What stops the process must wait as long "           \
             "([Stop](operations.md#stop))."},                                                     \
    {.name = "core-dumps",                                                                         \
     .type = NODE_TYPE_BOOL,                                                                       \
     FIELD(core_dumps),                                                                            \
     .fallback = "off",                                                                            \
     .unit = "on|off",                                                                             \
     .group = "Operation",                                                                         \
     .help = "leave a core when the process crashes",                                              \
     .more = "A core holds prompts and keys. Off, no other process of the same user can read the " \
             "router's memory, or attach a debugger, either."}
/* clang-format on */

#endif
