/* JSON as JSON or YAML; what a terminal would obey is escaped (plain.h). */
#ifndef NODE_GVCTL_PRINT_H
#define NODE_GVCTL_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "base/slice.h"
#include "node/gvctl/show.h"

/* JSON in one line. */
void print_json_line(const json_t *value, FILE *to);
/* A document of YAML 1.2, in blocks. */
void print_yaml(json_t *value, FILE *to);
/* As YAML where that is the format, else as JSON, in lines. */
void print_as(enum show_format format, json_t *value, FILE *to);
/* A YAML scalar that reads as this text, in quotes where it would be something else. */
void print_yaml_text(const char *text, FILE *to);
/* As it came but for that, with a newline at its end. */
void print_text(struct slice text, FILE *to);

#endif
