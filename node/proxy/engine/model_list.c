#include "node/proxy/engine/model_list.h"

#include "base/check.h"
#include "base/err.h"

/* Copies the text. The caller has checked that there is space. */
static struct slice text_add(struct model_list *list, struct slice text)
{
    char *at = list->text + list->text_len;
    memcpy(at, text.at, text.len);
    list->text_len += (uint32_t)text.len;
    return slice_of(at, text.len);
}

/* Copies the parent's name. A base's adapters are listed together, so the name is stored once. */
static struct slice parent_add(struct model_list *list, struct slice parent)
{
    if (parent.len == 0)
        return SLICE("");
    if (list->count > 0 && slice_equal(list->parents[list->count - 1], parent))
        return list->parents[list->count - 1];
    return text_add(list, parent);
}

static int collect(void *context, const struct node_listed *model)
{
    struct model_list *list = context;
    if (list->engine == NODE_ENGINE_AUTO)
        list->engine = model->engine;
    if (list->count == MODEL_LIST_MAX ||
        list->text_len + model->id.len + model->parent.len > MODEL_LIST_TEXT_MAX) {
        list->cut = true;
        return 0;
    }
    list->parents[list->count] = parent_add(list, model->parent);
    list->ids[list->count] = text_add(list, model->id);
    list->contexts[list->count] = model->context_tokens;
    list->count++;
    return 0;
}

static void list_clear(struct model_list *list)
{
    list->count = 0;
    list->text_len = 0;
    list->cut = false;
    list->engine = NODE_ENGINE_AUTO;
}

int model_list_read(struct model_list *out, struct slice json)
{
    list_clear(out);
    return node_models_parse(json, collect, out);
}

uint32_t model_list_context(const struct model_list *list)
{
    uint32_t context = 0;
    for (unsigned i = 0; i < list->count; i++) {
        if (list->contexts[i] == 0)
            continue;
        if (context > 0 && list->contexts[i] != context)
            return 0;
        context = list->contexts[i];
    }
    return context;
}

/* --- a merged list -------------------------------------------------------------------------- */

void model_merge_begin(struct model_merge *m, const struct hash_secret *secret, struct slice wanted)
{
    buf_init(&m->out, MODEL_LIST_BYTES_MAX);
    m->wanted = wanted;
    m->secret = secret;
    list_clear(&m->list);
    memset(m->slots, 0, sizeof m->slots);
}

/* Returns the id's slot, or the free slot for a new id. There is always a free slot. */
static unsigned slot_of(const struct model_merge *m, struct slice id)
{
    enum { SLOTS = ARRAY_LEN(m->slots) };
    unsigned slot = hash64(m->secret, id.at, id.len) % SLOTS;
    while (m->slots[slot] != 0 && !slice_equal(m->list.ids[m->slots[slot] - 1], id))
        slot = (slot + 1) % SLOTS;
    return slot;
}

bool model_merge_number(const struct model_merge *m, struct slice id, unsigned *number)
{
    unsigned found = m->slots[slot_of(m, id)];
    if (found > 0)
        *number = found - 1;
    return found > 0;
}

struct slice model_merge_find(const struct model_merge *m, struct slice id)
{
    unsigned number;
    if (!model_merge_number(m, id, &number))
        return slice_of(NULL, 0);
    return slice_of(m->out.at + m->objects[number].at, m->objects[number].len);
}

/* Stores a model's JSON object. ERR_NOMEM; ERR_LIMIT: the list would be too large. */
static int object_put(struct model_merge *m, unsigned number, struct slice object)
{
    int err = buf_append_slice(&m->out, object);
    if (err != 0)
        return err;
    m->objects[number].at = (uint32_t)(m->out.len - object.len);
    m->objects[number].len = (uint32_t)object.len;
    return 0;
}

int model_merge_add(void *context, const struct node_listed *model)
{
    struct model_merge *m = context;
    if (m->wanted.at != NULL && !slice_equal(model->id, m->wanted))
        return 0;
    unsigned slot = slot_of(m, model->id);
    bool known = m->slots[slot] != 0;
    unsigned number = known ? m->slots[slot] - 1u : m->list.count;
    if (known && model->context_tokens <= m->list.contexts[number])
        return 0;
    int err = number < MODEL_LIST_MAX ? object_put(m, number, model->object) : ERR_LIMIT;
    if (err != 0) { /* the list stays unchanged */
        m->list.cut |= !known;
        return err == ERR_LIMIT ? 0 : err;
    }
    if (known) {
        m->list.contexts[number] = model->context_tokens;
        return 0;
    }
    m->slots[slot] = (uint16_t)(number + 1);
    return collect(&m->list, model);
}
