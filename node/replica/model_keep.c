#include "node/replica/model_keep.h"

#include "base/check.h"

enum {
    RATIO_KEPT = 2 * 8,
    ROW_KEPT_MAX = 2 + NODE_MODEL_NAME_MAX + 8 + 2 * RATIO_KEPT + NODE_TOKENS_KEPT,
};

/* Appends a row: { length of the name, 2 bytes | name | samples, 8 bytes | bytes per token | tokens
 * of an answer | tokens }. A row without a name is row 0. */
static int row_put(const struct node_model *row, struct buf *out)
{
    uint8_t bytes[ROW_KEPT_MAX];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u16(&w, row->name_len);
    wire_write_bytes(&w, row->name, row->name_len);
    wire_write_u64(&w, row->bytes_samples);
    node_ratio_keep(&row->bytes_per_token, &w);
    node_ratio_keep(&row->output_tokens, &w);
    node_tokens_keep(&row->tokens, &w);
    CHECK(!w.bad);
    return buf_append(out, bytes, wire_written(&w));
}

int node_models_keep(struct node_models *m, unsigned *at, struct buf *out)
{
    unsigned last = node_models_last(m), count = 0;
    for (; *at <= last && count < NODE_MODELS_KEPT; (*at)++) {
        const struct node_model *row = node_models_row_at(m, *at);
        if (row->bytes_samples == 0)
            continue;
        int err = row_put(row, out);
        if (err != ERR_OK)
            return err;
        count++;
    }
    return count > 0;
}

void node_models_recall(struct node_models *m, struct slice kept)
{
    struct wire_reader r = wire_reader_of(kept.at, kept.len);
    while (wire_left(&r) > 0) {
        struct slice name = wire_read_bytes(&r, wire_read_u16(&r));
        struct node_model *row = node_models_row_made(m, name), was;
        if (row == NULL)
            return;
        was = *row;
        was.bytes_samples = wire_read_u64(&r);
        if (!node_ratio_recall(&was.bytes_per_token, &r) ||
            !node_ratio_recall(&was.output_tokens, &r) || !node_tokens_recall(&was.tokens, &r))
            return;
        if (row->bytes_samples == 0)
            *row = was;
    }
}
