#include "node/settings/change.h"

#include "base/err.h"
#include "node/settings/value.h"

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

static void swap(struct node_options *a, struct node_options *b, const struct node_option *row)
{
    unsigned char *x = (unsigned char *)a + row->offset, *y = (unsigned char *)b + row->offset;
    for (size_t left = node_option_field_bytes(row); left > 0; left--, x++, y++) {
        unsigned char kept = *x;
        *x = *y;
        *y = kept;
    }
}

/* Returns `origin`, with the file's name from the settings in force, which live as long as the
 * process. */
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
    const struct node_option *row;
    bool same[NODE_OPTIONS_MAX] = {false};
    int err = 0;
    *out = (struct node_options_changes){0};
    for (unsigned i = 0; (row = node_option_at(i)) != NULL && err == 0; i++)
        err = node_option_same(in_force, fresh, row, &same[i]);
    struct buf before = {0}, now = {0};
    for (unsigned i = 0; (row = node_option_at(i)) != NULL && err == 0; i++) {
        if (!same[i] && told != NULL && differ(in_force, fresh, row, &before, &now) == 0)
            told->differs(told->context, row, buf_slice(&before), buf_slice(&now));
        if (!same[i] && row->live)
            swap(in_force, fresh, row);
        if (same[i] || row->live)
            in_force->origins[i] = origin_of(in_force, fresh->origins[i]);
        out->changed += !same[i] && row->live;
        out->waiting += !same[i] && !row->live;
    }
    int lowered =
        fresh->lowered.name == NULL ? -1 : node_option_find(slice_of_cstr(fresh->lowered.name));
    if (err == 0 && lowered >= 0 && same[lowered]) /* the configured value may differ */
        in_force->lowered = fresh->lowered;
    buf_free(&before);
    buf_free(&now);
    return err;
}
