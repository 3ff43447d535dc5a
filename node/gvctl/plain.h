/* Makes text from outside safe for a terminal. Model names, request ids and much else come
 * unchanged from clients, engines and other routers. Control characters in such text could set the
 * terminal's title, hide a line or type an answer. All output of gvctl passes through here: parsed
 * values for tables (ask.h), texts, JSON and YAML on printing (print.h), and sentences by
 * plain_printf(). gvctl's own escape sequences (colours, the screen of top) are printed separately.
 *
 * Control characters (C0, DEL, C1), line separators, byte order marks and characters for the
 * direction of writing are replaced by \u001b and the like, as in JSON and YAML. A byte outside
 * UTF-8 becomes \x9b. All other characters stay. */
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

/* Print the text, with harmful characters replaced; newlines and tabs stay. */
void plain_write(struct slice text, FILE *to);
void plain_printf(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plain_vprintf(FILE *to, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

#endif
