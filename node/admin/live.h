/* What happens, as it happens: GET /live is a stream of server-sent events (WHATWG HTML, section
 * 9.2), for a page (docs/page.md) or a terminal.
 *
 *   hello   once: a snapshot, the last minutes of figures, the last decisions and events
 *   snap    each second, and when something happened: the routers and whom they hear, whether they
 *           agree, replicas, figures
 *   news    twice a second, if there are any: decisions, how those that were shown ended, events
 *
 * The text of an event is made once, and written to all viewers. A viewer that has not read what it
 * got before gets nothing this time: `frame`, which counts up in each snap, shows it that it missed
 * something, and /decisions and /events have that. With nobody looking nothing is made but the
 * figures of each second.
 *
 * Of decisions at most LIVE_DECISIONS_MAX are shown at a time, the last ones.
 */
#ifndef NODE_ADMIN_LIVE_H
#define NODE_ADMIN_LIVE_H

#include "node/admin/admin_internal.h"

enum {
    LIVE_VIEWERS_MAX = 128,  /* then 503 */
    LIVE_EVERY_MS = 500,     /* between two looks for news; a snapshot is made every other time */
    LIVE_DECISIONS_MAX = 8,  /* in one text */
    LIVE_EVENTS_MAX = 16,    /* in one text; the rest comes with the next */
    LIVE_REPLICAS_MAX = 128, /* in a snapshot, those that take no requests first; counts are of all,
                              * and /replicas has them */
    LIVE_SHOWN = 128,        /* decisions that were shown, and whose end will be */
    LIVE_HELLO_DECISIONS = 32,
    LIVE_HELLO_EVENTS = 64,
    LIVE_TEXT_BYTES_MAX = 1024 * 1024, /* of one text; a greater one is not sent */
    /* Of that, what routers say of themselves. Where it is more, whom each hears is left out. */
    LIVE_NODES_BYTES_MAX = 256 * 1024,
    LIVE_SHIFT_MS = 130, /* digests are asked for so much later while something is on its way */
    LIVE_ASK_TIMEOUT_US = 1500000, /* for the digests of all routers */
    LIVE_MOVING_MS = 10000, /* digests that were equal so lately differ by what is on its way */
};

struct admin_figures;
struct admin_live;

/* ERR_NOMEM. */
MUST_USE int admin_live_create(struct admin_live **out, struct admin *admin);
void admin_live_destroy(struct admin_live *live);
/* Every few milliseconds. */
void admin_live_tick(struct admin_live *live, uint64_t now_ms);
/* Ends all streams. */
void admin_live_stop(struct admin_live *live);
/* What was done in each of the last seconds. */
const struct admin_figures *admin_live_figures(const struct admin_live *live);
/* Whether the routers hold the same, as far as a viewer had it asked lately. */
enum admin_agree {
    LIVE_AGREE_UNKNOWN,
    LIVE_AGREE_EQUAL,
    LIVE_AGREE_DIFFER,
    LIVE_AGREE_INCOMPARABLE,
};
enum admin_agree admin_live_agree(const struct admin_live *live, uint64_t now_ms);
/* How many look. */
unsigned admin_live_viewers(const struct admin_live *live);

#endif
