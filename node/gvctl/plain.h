/* Makes text from outside safe for a terminal. Model names, request ids and much else are spelled
 * as a client, an engine or another router sent them. A terminal obeys control characters: they
 * could set the title, hide a line or type an answer. All output of gvctl passes through here:
 * parsed values for tables (ask.h), texts, JSON and YAML on printing (print.h), and sentences by
 * plain_printf(). gvctl's own escape sequences (colours, the screen of top) are printed separately.
 *
 * Control characters (C0, DEL, C1), line separators, byte order marks and characters that change
 * the direction of writing are replaced by \u001b and the like, as in JSON and YAML. A byte that is
 * no UTF-8 becomes \x9b. All else stays. */
#ifndef NODE_GVCTL_PLAIN_H
#define NODE_GVCTL_PLAIN_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

/* Escapes every text and every key in the value. Out of memory, gvctl aborts. */
void plain_json(json_t *value);

/* Keep newlines and tabs. */
void plain_write(struct slice text, FILE *to);
void plain_printf(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plain_vprintf(FILE *to, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

#endif
