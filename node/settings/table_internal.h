/* Shared by the two halves of the option table: rows, and macros to write them. The first row of a
 * group names the group. `help` and the default must fit beside the name in 80 columns (checked by
 * tests/unit/settings/options_test.c). */
#ifndef NODE_SETTINGS_TABLE_INTERNAL_H
#define NODE_SETTINGS_TABLE_INTERNAL_H

#include "node/settings/options.h"

extern const struct node_option node_option_requests[];
extern const unsigned node_option_request_count;

/* When a change takes effect: at the next start, or while the router runs. */
enum { RESTART, LIVE };

#define FIELD(member, kind, text, when)                                                            \
    .offset = offsetof(struct node_options, member), .type = NODE_TYPE_##kind, .unit = (text),     \
    .live = (when) == LIVE
#define TIME(member, when)   FIELD(member, MS, "TIME", when)
#define SIZE(member, when)   FIELD(member, BYTES, "SIZE", when)
#define NUMBER(member, when) FIELD(member, INTEGER, "NUMBER", when)
#define SWITCH(member, when) FIELD(member, BOOL, "on|off", when)
#define TEXT(member, unit)   FIELD(member, STRING, unit, RESTART), .fallback = ""
#define PATH(member)         FIELD(member, PATH, "FILE", RESTART), .fallback = ""
#define LIST(member, unit, when)                                                                   \
    FIELD(member, LIST, unit, when), .fallback = "" /* lists start empty */
/* The names of a choice, in the order of the corresponding enum. */
#define CHOICES(...)                                                                               \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define DAY_MS 86400e3
#define GIB    1073741824.0

#endif
