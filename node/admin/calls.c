#include "node/admin/calls.h"

#include <stddef.h>

const struct admin_call_row *admin_call_row(enum admin_call call)
{
    static const struct admin_call_row rows[ADMIN_CALL_COUNT] = {
#define ADMIN_CALL_ROW(name, m, p, a, handler, f, text)                                            \
    [ADMIN_CALL_##                                                                                 \
        name] = {.method = #m, .path = (p), .argument = (a), .about = (text), .flags = (f)},
        ADMIN_CALLS(ADMIN_CALL_ROW)
#undef ADMIN_CALL_ROW
    };
    return &rows[call];
}
