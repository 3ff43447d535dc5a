#include "crdt/window.h"

#include "base/check.h"

void crdt_window_set(struct crdt_window *w, uint32_t now, uint32_t floor)
{
    CHECK(now >= w->now && floor >= w->floor);
    w->now = now;
    w->floor = floor;
    w->newest = (uint16_t)((now + 1) & CRDT_GENERATION_MASK);
    w->limit = floor > now + 1 ? 0 : (uint16_t)(now + 2 - floor);
}
