/* Shared by the files of a request's prompt: ask.c, ask_rewrite.c. */
#ifndef TESTS_ENGINE_SIM_ASK_INTERNAL_H
#define TESTS_ENGINE_SIM_ASK_INTERNAL_H

#include "tests/engine-sim/ask.h"

/* The part of the prompt that a piece belongs to, in the order of rendering. */
enum section { TOOLS, SYSTEM, MESSAGES, PROMPT, SECTIONS, FIELDS, NESTED };

/* REASONING is text too, of an earlier answer of the assistant. */
enum kind { MESSAGE, TEXT, MEDIA, TOKEN, REASONING };

#endif
