/* Converts the admin port's plain-text answers to JSON. */
#ifndef NODE_GVCTL_PARSE_H
#define NODE_GVCTL_PARSE_H

#include <jansson.h>

#include "base/slice.h"

/* /metrics: [{"name": ..., "labels": {...}, "value": ...}]. NULL: another format. */
json_t *parse_metrics(struct slice text);
/* /config: {"listen": {"value": ..., "from": ...}}; a list's value is an array. */
json_t *parse_config(struct slice text);
/* /healthz: {"alive": true}. */
json_t *parse_alive(struct slice text);
/* /readyz, requested as JSON (?format=json). */
json_t *parse_ready(struct slice text);

#endif
