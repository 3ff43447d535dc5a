/* What the files of a request's prompt share: ask.c, ask_rewrite.c. */
#ifndef TESTS_ENGINE_SIM_ASK_INTERNAL_H
#define TESTS_ENGINE_SIM_ASK_INTERNAL_H

#include "tests/engine-sim/ask.h"

/* Where in the prompt a piece belongs, in the order of rendering. */
enum section { TOOLS, SYSTEM, MESSAGES, PROMPT, SECTIONS, FIELDS, NESTED };

/* REASONING is text too, of an earlier answer of the assistant. */
enum kind { MESSAGE, TEXT, MEDIA, TOKEN, REASONING };

#endif
