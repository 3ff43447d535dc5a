/* Prints JSON as JSON or YAML; control characters are escaped (plain.h). */
#ifndef NODE_GVCTL_PRINT_H
#define NODE_GVCTL_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "base/slice.h"
#include "node/gvctl/show.h"

/* Prints JSON in a single line. */
void print_json_line(const json_t *value, FILE *to);
/* Prints a YAML 1.2 document, in block style. */
void print_yaml(json_t *value, FILE *to);
/* Prints YAML for the format yaml, indented JSON for others. */
void print_as(enum show_format format, json_t *value, FILE *to);
/* Prints the text as a YAML scalar, in quotes where needed. */
void print_yaml_text(const char *text, FILE *to);
/* Prints the text with escapes, and with a newline at the end. */
void print_text(struct slice text, FILE *to);

#endif
