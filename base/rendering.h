/* A rendering: how a model's engines transform prompts from a kind of client. It covers only the
 * changes that decide which prompts share a prefix (docs/adr/0051). A plain value of 1 byte.
 *
 * Zero is the client's prompt without the parts that vLLM is known to drop. All other values are
 * learned from an engine, or built in for a kind of engine.
 */
#ifndef BASE_RENDERING_H
#define BASE_RENDERING_H

#include <stdbool.h>
#include <stdint.h>

enum rendering_lead {
    RENDERING_LEAD_ALL,      /* all of the leading text counts */
    RENDERING_LEAD_NO_LINE,  /* the first line of the leading text does not count */
    RENDERING_LEAD_NO_BLOCK, /* neither the first line nor the rest of the first block counts */
    RENDERING_LEADS,
};

struct rendering {
    uint8_t lead : 2;          /* enum rendering_lead */
    uint8_t no_arguments : 1;  /* arguments of the chat template do not count */
    uint8_t tools_sorted : 1;  /* the order of tools does not count */
    uint8_t tools_after : 1;   /* tools come after the system text */
    uint8_t counts_header : 1; /* Claude Code's billing header counts like any other text */
    uint8_t late_first : 1;    /* late system messages are moved before all other messages */
};

enum { RENDERING_CODES = 128 }; /* rendering_code() returns less than this */

static inline uint8_t rendering_code(struct rendering r)
{
    return (uint8_t)(r.lead | r.no_arguments << 2 | r.tools_sorted << 3 | r.tools_after << 4 |
                     r.counts_header << 5 | r.late_first << 6);
}

static inline struct rendering rendering_of(uint8_t code)
{
    return (struct rendering){.lead = code & 3u,
                              .no_arguments = code >> 2 & 1u,
                              .tools_sorted = code >> 3 & 1u,
                              .tools_after = code >> 4 & 1u,
                              .counts_header = code >> 5 & 1u,
                              .late_first = code >> 6 & 1u};
}

#endif
