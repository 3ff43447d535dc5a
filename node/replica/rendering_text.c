#include "node/replica/renderings.h"

#include <stdio.h>

#include "base/check.h"

const char *node_rendering_text(struct rendering rendering, char *out, size_t size)
{
    const char *const parts[] = {
        rendering.lead == RENDERING_LEAD_NO_LINE    ? "the first line does not count"
        : rendering.lead == RENDERING_LEAD_NO_BLOCK ? "the first block of text does not count"
                                                    : NULL,
        rendering.no_arguments ? "template arguments do not count" : NULL,
        rendering.tools_sorted ? "the order of tools does not count" : NULL,
        rendering.tools_after ? "tools come after the system text" : NULL,
        rendering.counts_header ? "Claude Code's billing header counts" : NULL,
        rendering.late_first ? "later system messages come first" : NULL,
    };
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i] == NULL || len >= size)
            continue;
        int n = snprintf(out + len, size - len, "%s%s", len > 0 ? "; " : "", parts[i]);
        len += n > 0 ? (size_t)n : 0;
    }
    return out;
}
