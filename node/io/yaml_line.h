/* Line numbers in a YAML file, from 1 as people count lines. */
#ifndef NODE_IO_YAML_LINE_H
#define NODE_IO_YAML_LINE_H

#include <stdbool.h>
#include <string.h>
#include <yaml.h>

static inline unsigned yaml_line_of(yaml_mark_t mark)
{
    return (unsigned)mark.line + 1;
}

/* Returns the line of the error. libyaml notices an unterminated quotation, or a name without a
 * colon, only some lines later. For these returns the line of the beginning. */
static inline unsigned yaml_line_of_error(const yaml_parser_t *parser)
{
    const char *problem = parser->problem;
    bool begun = parser->context != NULL && problem != NULL &&
                 (strstr(problem, "could not find expected") != NULL ||
                  strstr(problem, "unexpected end of stream") != NULL);
    return yaml_line_of(begun ? parser->context_mark : parser->problem_mark);
}

#endif
