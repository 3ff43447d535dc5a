/* Refuses clients' use of fields by which engines address each other (http/engine_field.h). */
#include <stdio.h>

#include "http/engine_field.h"
#include "node/proxy/exchange/exchange_internal.h"

static bool is_open(const struct exchange *x)
{
    return x->proxy->config.options->engine_fields == NODE_PATHS_PASS;
}

static bool refuse(struct exchange *x, struct slice field, const char *text)
{
    unsigned status = exchange_because(x, REFUSED_ENGINE_FIELD);
    if (x->now.upstream != NULL) /* the body streams through */
        exchange_refuse(x->client, status, text);
    else
        exchange_answer_error(x, status, field, "%s", text);
    return true;
}

static bool refuse_field(struct exchange *x, struct slice field)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "`%.*s` is a field that engines use among themselves. Clients may not send it: "
                   "leave it out. (Setting: engine-fields.)",
                   SLICE_ARG(field));
    return refuse(x, field, text);
}

/* Refuses a request id. `found`: the part that introduces an engine's address; NULL: the id was too
 * long to examine. */
static bool refuse_id(struct exchange *x, struct slice field, const char *found)
{
    char text[192];
    if (found != NULL)
        (void)snprintf(text, sizeof text,
                       "`%.*s` contains `%s`, with which engines send each other addresses: use an "
                       "id without it. (Setting: engine-fields.)",
                       SLICE_ARG(field), found);
    else
        (void)snprintf(text, sizeof text,
                       "`%.*s` is longer than %d bytes: use a shorter id. (Setting: "
                       "engine-fields.)",
                       SLICE_ARG(field), HTTP_SKIM_SCRATCH);
    return refuse(x, field, text);
}

bool exchange_engine_fields_refuse_head(struct exchange *x, const struct http_head *head)
{
    struct slice id = http_head_get(head, HTTP_X_REQUEST_ID);
    if (is_open(x))
        return false;
    if (http_head_has(head, HTTP_ENGINE_HEADER)) {
        for (unsigned i = 0; i < head->field_count; i++)
            if (head->fields[i].id == HTTP_ENGINE_HEADER && head->fields[i].value.len > 0)
                return refuse_field(x, head->fields[i].name);
    }
    const char *found = id.len > 0 ? http_engine_id_find(id) : NULL;
    return found != NULL && refuse_id(x, SLICE("x-request-id"), found);
}

bool exchange_engine_fields_refuse_body(struct exchange *x)
{
    const char *field = x->skim.engine_field;
    if (is_open(x))
        return false;
    if (field == NULL && x->skimming && x->request.body->complete && !x->skim.understood)
        field = http_engine_field_suspect(x->request.body);
    if (field == NULL)
        return false;
    struct slice name = slice_of_cstr(field), id = SLICE("request_id");
    const char *found = http_engine_id_find(name);
    return found != NULL || slice_equal(name, id) ? refuse_id(x, id, found) : refuse_field(x, name);
}
