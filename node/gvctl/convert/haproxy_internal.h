/* What the readers of HAProxy's configuration share. */
#ifndef NODE_GVCTL_CONVERT_HAPROXY_INTERNAL_H
#define NODE_GVCTL_CONVERT_HAPROXY_INTERNAL_H

#include <string.h>

#include "node/gvctl/convert/fork_internal.h"

static inline const char *convert_word(const json_t *words, size_t i)
{
    const char *text = json_string_value(json_array_get(words, i));
    return text != NULL ? text : "";
}

static inline bool convert_is(const json_t *words, size_t i, const char *word)
{
    return strcmp(convert_word(words, i), word) == 0;
}

/* haproxy.c: one directive, by its table. */
void convert_haproxy_line(struct convert_state *c, json_t *words);

/* haproxy_at.c: where it listens and where engines are. The words behind the directive. */
void convert_haproxy_bind(struct convert_state *c, const json_t *words);
void convert_haproxy_server(struct convert_state *c, const json_t *words);
void convert_haproxy_server_template(struct convert_state *c, const json_t *words);
void convert_haproxy_default_server(struct convert_state *c, const json_t *words);

#endif
