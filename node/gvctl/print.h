/* JSON as JSON or YAML; what a terminal would obey is escaped (plain.h). */
#ifndef NODE_GVCTL_PRINT_H
#define NODE_GVCTL_PRINT_H

#include <jansson.h>
#include <stdio.h>

#include "base/slice.h"

/* In lines, as people read it. */
void print_json(const json_t *value, FILE *to);
/* In one. */
void print_json_line(const json_t *value, FILE *to);
/* A document of YAML 1.2, in blocks. */
void print_yaml(json_t *value, FILE *to);
/* A YAML scalar that reads as this text, in quotes where it would be something else. */
void print_yaml_text(const char *text, FILE *to);
/* As it came but for that, with a newline at its end. */
void print_text(struct slice text, FILE *to);

#endif
