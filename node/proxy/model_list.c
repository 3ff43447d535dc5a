#include "node/proxy/model_list.h"

#include "base/err.h"

static int collect(void *context, struct slice id, struct slice object)
{
    struct model_list *list = context;
    if (list->engine == NODE_ENGINE_AUTO)
        list->engine = node_models_owner(object);
    if (list->count == MODEL_LIST_MAX) {
        list->cut = true;
        return 0;
    }
    char *text = list->text[list->count];
    memcpy(text, id.at, id.len);
    list->ids[list->count++] = slice_of(text, id.len);
    return 0;
}

int model_list_read(struct model_list *out, struct slice json)
{
    out->count = 0;
    out->cut = false;
    out->engine = NODE_ENGINE_AUTO;
    return node_models_parse(json, collect, out);
}

/* --- one merged list ------------------------------------------------------------------------- */

void model_merge_begin(struct model_merge *m, struct slice wanted)
{
    buf_init(&m->out, MODEL_LIST_BYTES_MAX);
    m->wanted = wanted;
    m->list.count = 0;
}

int model_merge_add(void *context, struct slice id, struct slice object)
{
    struct model_merge *m = context;
    if ((m->wanted.at != NULL && !slice_equal(id, m->wanted)) || m->list.count == MODEL_LIST_MAX)
        return 0;
    for (unsigned i = 0; i < m->list.count; i++) {
        if (slice_equal(m->list.ids[i], id))
            return 0;
    }
    size_t before = m->out.len;
    int err = before > 0 ? buf_append_char(&m->out, ',') : 0;
    if (err == 0)
        err = buf_append_slice(&m->out, object);
    if (err != 0) {
        m->out.len = before;
        return err == ERR_LIMIT ? 0 : err;
    }
    return collect(&m->list, id, object);
}
