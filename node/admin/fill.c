#include "node/admin/fill.h"

#include <string.h>

struct admin_fill admin_fill_begin(char *out, size_t size)
{
    out[0] = '\0';
    return (struct admin_fill){.at = out, .size = size};
}

void admin_fill_put(struct admin_fill *t, struct slice s)
{
    size_t room = t->size - 1 - t->len, n = s.len < room ? s.len : room;
    if (n > 0)
        memcpy(t->at + t->len, s.at, n);
    t->len += n;
    t->at[t->len] = '\0';
}

void admin_fill_pattern(struct admin_fill *t, const char *pattern, admin_fill_field *put,
                        void *context)
{
    size_t bracket = 0;
    bool lacks = false;
    for (const char *p = pattern; *p != '\0'; p++) {
        if (*p == '[') {
            bracket = t->len;
            lacks = false;
        } else if (*p == ']') {
            t->len = lacks ? bracket : t->len;
            t->at[t->len] = '\0';
        } else if (*p == '{') {
            size_t len = strcspn(p + 1, "}");
            lacks |= !put(context, slice_of(p + 1, len), t);
            p += len + 1;
        } else if (*p != '.' || t->len == 0 || strchr("?.", t->at[t->len - 1]) == NULL) {
            admin_fill_put(t, slice_of(p, 1)); /* no full stop after another */
        }
    }
}
