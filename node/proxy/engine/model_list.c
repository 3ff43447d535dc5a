#include "node/proxy/engine/model_list.h"

#include "base/check.h"
#include "base/err.h"

/* There is room. */
static struct slice text_add(struct model_list *list, struct slice text)
{
    char *at = list->text + list->text_len;
    memcpy(at, text.at, text.len);
    list->text_len += (uint32_t)text.len;
    return slice_of(at, text.len);
}

/* Adapters stand together, of one base: its name is kept once. */
static struct slice parent_add(struct model_list *list, struct slice parent)
{
    if (parent.len == 0)
        return SLICE("");
    if (list->count > 0 && slice_equal(list->parents[list->count - 1], parent))
        return list->parents[list->count - 1];
    return text_add(list, parent);
}

static int collect(void *context, struct slice id, struct slice object)
{
    struct model_list *list = context;
    char room[NODE_MODEL_ID_MAX];
    if (list->engine == NODE_ENGINE_AUTO)
        list->engine = node_models_owner(object);
    struct slice parent = node_models_parent(object, room);
    if (list->count == MODEL_LIST_MAX ||
        list->text_len + id.len + parent.len > MODEL_LIST_TEXT_MAX) {
        list->cut = true;
        return 0;
    }
    list->parents[list->count] = parent_add(list, parent);
    list->ids[list->count] = text_add(list, id);
    list->count++;
    return 0;
}

int model_list_read(struct model_list *out, struct slice json)
{
    out->count = 0;
    out->text_len = 0;
    out->cut = false;
    out->engine = NODE_ENGINE_AUTO;
    return node_models_parse(json, collect, out);
}

/* --- one merged list ------------------------------------------------------------------------- */

void model_merge_begin(struct model_merge *m, const struct hash_secret *secret, struct slice wanted)
{
    buf_init(&m->out, MODEL_LIST_BYTES_MAX);
    m->wanted = wanted;
    m->secret = secret;
    m->list.count = 0;
    m->list.text_len = 0;
    m->list.cut = false;
    memset(m->slots, 0, sizeof m->slots);
}

/* Where the id is, or would be. There is always a free slot. */
static unsigned slot_of(const struct model_merge *m, struct slice id)
{
    enum { SLOTS = ARRAY_LEN(m->slots) };
    unsigned slot = hash64(m->secret, id.at, id.len) % SLOTS;
    while (m->slots[slot] != 0 && !slice_equal(m->list.ids[m->slots[slot] - 1], id))
        slot = (slot + 1) % SLOTS;
    return slot;
}

struct slice model_merge_find(const struct model_merge *m, struct slice id)
{
    unsigned number = m->slots[slot_of(m, id)];
    if (number == 0)
        return slice_of(NULL, 0);
    return slice_of(m->out.at + m->objects[number - 1].at, m->objects[number - 1].len);
}

int model_merge_add(void *context, struct slice id, struct slice object)
{
    struct model_merge *m = context;
    if (m->wanted.at != NULL && !slice_equal(id, m->wanted))
        return 0;
    unsigned slot = slot_of(m, id);
    if (m->slots[slot] != 0)
        return 0;
    if (m->list.count == MODEL_LIST_MAX) {
        m->list.cut = true;
        return 0;
    }
    size_t before = m->out.len;
    int err = before > 0 ? buf_append_char(&m->out, ',') : 0;
    if (err == 0)
        err = buf_append_slice(&m->out, object);
    if (err != 0) {
        m->out.len = before;
        m->list.cut = true;
        return err == ERR_LIMIT ? 0 : err;
    }
    m->objects[m->list.count].at = (uint32_t)(m->out.len - object.len);
    m->objects[m->list.count].len = (uint32_t)object.len;
    m->slots[slot] = (uint16_t)(m->list.count + 1);
    return collect(&m->list, id, object);
}
