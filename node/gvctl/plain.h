/* Text from outside on a terminal. Names of models, ids of requests and much else are as a client,
 * an engine or another router wrote them, and a terminal obeys control characters: it would set its
 * title, hide a line or type an answer. All that gvctl prints goes through here: what is parsed for
 * a table at once (ask.h), texts, JSON and YAML as they are printed (print.h), and sentences by
 * plain_printf(). Its own escape sequences (colours, the screen of top) are printed apart.
 *
 * A character of control (C0, DEL, C1), one that turns the direction of writing, or that breaks a
 * line or marks an order of bytes reads \u001b, as JSON and YAML write it. A byte that is no UTF-8
 * reads \x9b. All else stays.
 */
#ifndef NODE_GVCTL_PLAIN_H
#define NODE_GVCTL_PLAIN_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"

/* Every text in it, and every key. Memory that is out ends gvctl. */
void plain_json(json_t *value);

/* Newlines and tabs stay. */
void plain_write(struct slice text, FILE *to);
void plain_printf(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void plain_vprintf(FILE *to, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

#endif
