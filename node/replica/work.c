#include "node/replica/work.h"

#include "node/replica/scrape_internal.h"

_Static_assert(NODE_WORK_TOLD == NODE_WORK_SIGNS - 1, "the last row");
_Static_assert(NODE_WORK_SIGNS <= 32, "a bit for each row");

static bool counter_moved(struct node_work_seen *seen, unsigned i, double now)
{
    if (now > seen->most[i]) {
        seen->most[i] = now;
        seen->lower[i] = 0;
        return true;
    }
    seen->lower[i] = now < seen->most[i] ? (uint8_t)(seen->lower[i] + 1) : 0;
    if (seen->lower[i] == NODE_WORK_LOWER_MAX) {
        seen->most[i] = now;
        seen->lower[i] = 0;
    }
    return false;
}

bool node_work_take(struct node_work_seen *seen, const struct node_work_reading *now)
{
    static const uint32_t told = UINT32_C(1) << NODE_WORK_TOLD;
    bool first = (seen->known & ~told) == 0, moved = false;
    for (unsigned i = 0; i < NODE_WORK_SIGNS; i++) {
        double value = now->value[i];
        uint32_t bit = UINT32_C(1) << i;
        if (value < 0)
            continue;
        if ((seen->known & bit) == 0) { /* some series are missing until their first event */
            moved |= !first && i != NODE_WORK_TOLD && value > 0;
            seen->most[i] = value;
            seen->known |= bit;
        } else if ((node_scrape_rows[i].sign & GAUGE) != 0) {
            moved |= value != seen->most[i];
            seen->most[i] = value;
        } else {
            moved |= counter_moved(seen, i, value);
        }
    }
    return moved;
}

void node_work_told_anew(struct node_work_seen *seen)
{
    seen->known &= ~(UINT32_C(1) << NODE_WORK_TOLD);
    seen->lower[NODE_WORK_TOLD] = 0;
}

bool node_work_tells_steps(const struct node_work_reading *w)
{
    for (unsigned i = 0; i < NODE_WORK_SIGNS; i++)
        if ((node_scrape_rows[i].sign & STEP) != 0 && w->value[i] >= 0)
            return true;
    return false;
}
