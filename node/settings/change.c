#include "node/settings/change.h"

#include "base/err.h"

static int differ(const struct node_options *a, const struct node_options *b,
                  const struct node_option *row, struct buf *before, struct buf *now)
{
    buf_clear(before);
    buf_clear(now);
    int err = node_option_format(a, row, before);
    return err == 0 ? node_option_format(b, row, now) : err;
}

int node_option_same(const struct node_options *a, const struct node_options *b,
                     const struct node_option *row, bool *same)
{
    struct buf before = {0}, now = {0};
    int err = differ(a, b, row, &before, &now);
    *same = err == 0 && slice_equal(buf_slice(&before), buf_slice(&now));
    buf_free(&before);
    buf_free(&now);
    return err;
}

static size_t field_bytes(const struct node_option *row)
{
    switch (row->type) {
    case NODE_TYPE_ADDRESS:
        return sizeof(struct node_address);
    case NODE_TYPE_BOOL:
        return sizeof(bool);
    case NODE_TYPE_INTEGER:
    case NODE_TYPE_MS:
    case NODE_TYPE_BYTES:
        return sizeof(uint64_t);
    case NODE_TYPE_FLOAT:
        return sizeof(double);
    case NODE_TYPE_CHOICE:
        return sizeof(unsigned);
    case NODE_TYPE_STRING:
    case NODE_TYPE_PATH:
        return sizeof(char *);
    case NODE_TYPE_LIST:
        return sizeof(struct node_strings);
    }
    return 0;
}

static void swap(struct node_options *a, struct node_options *b, const struct node_option *row)
{
    unsigned char *x = (unsigned char *)a + row->offset, *y = (unsigned char *)b + row->offset;
    for (size_t left = field_bytes(row); left > 0; left--, x++, y++) {
        unsigned char kept = *x;
        *x = *y;
        *y = kept;
    }
}

/* The name of the file is in force as long as the process, that of the fresh settings is not. */
static struct node_option_origin origin_of(const struct node_options *in_force,
                                           struct node_option_origin origin)
{
    if (origin.source == NODE_SOURCE_FILE)
        origin.file = in_force->config;
    return origin;
}

int node_options_change(struct node_options *in_force, struct node_options *fresh,
                        const struct node_options_told *told, struct node_options_changes *out)
{
    unsigned count;
    const struct node_option *rows = node_option_table(&count);
    bool same[NODE_OPTIONS_MAX];
    int err = 0;
    *out = (struct node_options_changes){0};
    for (unsigned i = 0; i < count && err == 0; i++)
        err = node_option_same(in_force, fresh, &rows[i], &same[i]);
    struct buf before = {0}, now = {0};
    for (unsigned i = 0; i < count && err == 0; i++) {
        if (!same[i] && told != NULL && differ(in_force, fresh, &rows[i], &before, &now) == 0)
            told->differs(told->context, &rows[i], buf_slice(&before), buf_slice(&now));
        if (!same[i] && rows[i].live)
            swap(in_force, fresh, &rows[i]);
        if (same[i] || rows[i].live)
            in_force->origins[i] = origin_of(in_force, fresh->origins[i]);
        out->changed += !same[i] && rows[i].live;
        out->waiting += !same[i] && !rows[i].live;
    }
    buf_free(&before);
    buf_free(&now);
    return err;
}
