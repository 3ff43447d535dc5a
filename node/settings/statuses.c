#include "node/settings/statuses.h"

#include "base/err.h"

enum { STATUS_MIN = 100, STATUS_MAX = 599 };

static bool status_read(struct slice text, unsigned *out)
{
    uint64_t value;
    if (text.len != 3 || slice_to_u64(text, &value) != 0 || value < STATUS_MIN ||
        value > STATUS_MAX)
        return false;
    *out = (unsigned)value;
    return true;
}

static bool range_read(struct slice text, unsigned *from, unsigned *to)
{
    enum { LONE = 3, RANGE = 8 };
    if (text.len == LONE)
        return status_read(text, from) && status_read(text, to);
    return text.len == RANGE && slice_equal(slice_of(text.at + LONE, 2), SLICE("..")) &&
           status_read(slice_of(text.at, LONE), from) &&
           status_read(slice_skip(text, LONE + 2), to) && *from <= *to;
}

const char *node_statuses_parse(struct slice text, struct node_statuses *out)
{
    struct node_statuses s = {.count = 0};
    bool more = true;
    while (more) {
        more = slice_find(text, ',') < text.len;
        struct slice one = slice_trim(slice_cut(&text, ','));
        if (s.count == NODE_STATUS_RANGES_MAX)
            return "want at most 8 statuses or ranges of them";
        if (!range_read(one, &s.ranges[s.count].from, &s.ranges[s.count].to))
            return "want statuses from 100 to 599 or ranges of them, such as 200..299 or 200,204";
        s.count++;
    }
    *out = s;
    return NULL;
}

bool node_statuses_has(const struct node_statuses *s, unsigned status)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (status >= s->ranges[i].from && status <= s->ranges[i].to)
            return true;
    }
    return false;
}
