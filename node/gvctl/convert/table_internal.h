/* How rows of tables are written, and what several of them say. */
#ifndef NODE_GVCTL_CONVERT_TABLE_INTERNAL_H
#define NODE_GVCTL_CONVERT_TABLE_INTERNAL_H

#include "node/gvctl/convert/convert_internal.h"

#define ROW(names, as, settings, note)                                                             \
    {                                                                                              \
        names, CONVERT_##as, settings, note                                                        \
    }
#define NEEDLESS(names, note) ROW(names, NEEDLESS, NULL, note)
#define MISSING(names, note)  ROW(names, MISSING, NULL, note)

/* Levels of logs in the words of Python, Rust and Go. */
#define LEVELS(flag)                                                                               \
    ROW(flag "=", TEXT, "log-level", NULL), ROW(flag " INFO", FIXED, "log-level: info", NULL),     \
        ROW(flag " warning, " flag " WARNING", FIXED, "log-level: warn", NULL),                    \
        ROW(flag " critical, " flag " fatal, " flag " ERROR", FIXED, "log-level: error", NULL),    \
        ROW(flag " trace, " flag " DEBUG", FIXED, "log-level: debug", NULL)

#define NOTE_PD                                                                                    \
    "prefill and decode on engines of their own are not supported: each engine does both"
#define NOTE_CODE "the router runs no code of others"

#endif
