/* Shared by the files of a request's prompt: ask.c, ask_rewrite.c. */
#ifndef TESTS_ENGINE_SIM_ASK_INTERNAL_H
#define TESTS_ENGINE_SIM_ASK_INTERNAL_H

#include "tests/engine-sim/ask.h"

/* A piece's part of the prompt, in the order of rendering. */
enum section { TOOLS, SYSTEM, MESSAGES, PROMPT, SECTIONS, FIELDS, NESTED };

/* REASONING is the text of reasoning in an earlier answer of the assistant. */
enum kind { MESSAGE, TEXT, MEDIA, TOKEN, REASONING };

#endif
