#include "node/proxy/client/upload.h"

void upload_begin(struct upload *u, struct deadline_queue *list, uint64_t now_ms)
{
    u->since_ms = u->last_ms = now_ms;
    u->held_ms = 0;
    u->rate = u->pace = u->pace_before = (struct upload_window){.since_ms = now_ms};
    deadline_set(list, &u->total, now_ms);
}

bool upload_add(struct upload *u, uint64_t bytes, uint64_t rate_min, uint64_t now_ms)
{
    uint64_t paced_ms = now_ms - u->pace.since_ms, rated_ms = now_ms - u->rate.since_ms;
    u->last_ms = now_ms;
    u->pace.bytes += bytes;
    u->rate.bytes += bytes;
    if (paced_ms >= UPLOAD_PACE_MS) {
        u->pace_before = u->pace;
        u->pace = (struct upload_window){.since_ms = now_ms};
    }
    if (rated_ms < UPLOAD_RATE_MS)
        return true;
    bool good = u->rate.bytes >= rate_min * rated_ms / 1000;
    u->rate = (struct upload_window){.since_ms = now_ms};
    return good;
}

void upload_shift(struct upload *u, uint64_t by_ms)
{
    u->since_ms += by_ms;
    u->last_ms += by_ms;
    u->rate.since_ms += by_ms;
    u->pace.since_ms += by_ms;
    u->pace_before.since_ms += by_ms;
}

void upload_hold(struct upload *u, bool held, uint64_t now_ms)
{
    if (held) {
        u->held_ms = now_ms;
    } else if (u->held_ms != 0) {
        upload_shift(u, now_ms - u->held_ms);
        u->held_ms = 0;
    }
}

uint64_t upload_takes_ms(const struct upload *u, uint64_t bytes, uint64_t now_ms)
{
    uint64_t until_ms = u->held_ms != 0 ? u->held_ms : now_ms;
    uint64_t elapsed_ms = until_ms - u->pace_before.since_ms;
    double came = (double)(u->pace.bytes + u->pace_before.bytes) + 1;
    double takes = (double)bytes * (double)elapsed_ms / came;
    return takes < 1e15 ? (uint64_t)takes : (uint64_t)1e15;
}
