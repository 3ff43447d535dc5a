/* The live view: GET /live is a stream of server-sent events (WHATWG HTML, section 9.2) for a page
 * (docs/page.md) or a terminal.
 *
 *   hello   once: a snapshot of all replicas, the last minutes of figures, the last decisions and
 *           events
 *   snap    each second, and after an event: the routers, the contacts between them, whether they
 *           agree, some of the replicas, figures
 *   news    twice a second, if there are any: decisions, ends of earlier decisions, events
 *
 * The text of an event is made once and written to all viewers. A viewer with unread earlier text
 * is skipped. `frame`, which rises by 1 with each snap, reveals the gap: /decisions and /events
 * have the missing parts, and replicas come again in turn (node/route/brief.h). Without viewers,
 * only the figures of each second are made.
 *
 * At most LIVE_DECISIONS_MAX decisions are shown at a time, the last ones. */
#ifndef NODE_ADMIN_LIVE_H
#define NODE_ADMIN_LIVE_H

#include "node/admin/admin_internal.h"

enum {
    LIVE_VIEWERS_MAX = 128, /* beyond this number: 503 */
    LIVE_EVERY_MS = 500,    /* between two looks for news; every second look makes a snapshot */
    LIVE_DECISIONS_MAX = 8, /* decisions in a `news` */
    LIVE_EVENTS_MAX = 16,   /* events in a `news`; the next one has the rest */
    /* Replicas in a snapshot: those with a changed standing, then the others in turn. A hundred
     * viewers of a thousand replicas cost about 1 % of a core (tests/bench/viewers.py). */
    LIVE_REPLICAS_MAX = 256,
    LIVE_HELLO_REPLICAS = 1024, /* replicas in a hello: the default of replicas-max; more come in
                                 * turn */
    LIVE_SHOWN = 128,           /* shown decisions that may still end */
    LIVE_HELLO_DECISIONS = 32,
    LIVE_HELLO_EVENTS = 64,
    LIVE_TEXT_BYTES_MAX = 2048 * 1024, /* bytes of an event's text; a longer text is not sent */
    /* Bytes of the routers' own reports in a text. If they need more, the lists of heard routers
     * are left out. */
    LIVE_NODES_BYTES_MAX = 256 * 1024,
    LIVE_SHIFT_MS = 130,           /* delay of digest requests while changes are on the way */
    LIVE_ASK_TIMEOUT_US = 1500000, /* time for all routers to send digests */
    LIVE_MOVING_MS = 10000,        /* digests equal so lately differ only by changes on the way */
};

struct admin_figures;
struct admin_live;

/* ERR_NOMEM. */
MUST_USE int admin_live_create(struct admin_live **out, struct admin *admin);
void admin_live_destroy(struct admin_live *live);
/* Called every few milliseconds. */
void admin_live_tick(struct admin_live *live, uint64_t now_ms);
/* Ends all streams. */
void admin_live_stop(struct admin_live *live);
/* Returns the figures of each of the last seconds. */
const struct admin_figures *admin_live_figures(const struct admin_live *live);
/* State of the routers' agreement, from the last time a viewer caused a comparison. */
enum admin_agree {
    LIVE_AGREE_UNKNOWN,
    LIVE_AGREE_EQUAL,
    LIVE_AGREE_DIFFER,
    LIVE_AGREE_INCOMPARABLE,
};
enum admin_agree admin_live_agree(const struct admin_live *live, uint64_t now_ms);
/* Returns the number of viewers. */
unsigned admin_live_viewers(const struct admin_live *live);

#endif
