/* Messages between applications, cut into parts; missing parts are asked for and sent again.
 *
 *     sender                                    receiver
 *     PART 0 1 2 3 ... in small bursts  ---->   puts them together
 *              <---- RESEND what is missing     when nothing came for a few milliseconds
 *     PART those                        ---->
 *              <---- RESEND done                whole: delivered once
 *
 * A sender that gets no RESEND after its last part sends that part again, with a back-off. All
 * waits follow the measured round trip (trip.h), so that nothing is sent twice while its answer is
 * still on the way. A message that makes no progress for a second and eight round trips is given up
 * at both ends, and any message after 20 seconds: no peer can keep memory here by asking again and
 * again.
 *
 * All messages together, both ways, hold at most `bytes_max` bytes, and those that come from one
 * peer a quarter of it (but one message at least). What exceeds that is not taken, and the sender
 * tries again until it gives up.
 *
 * It knows no sessions: its owner sends the frames that run() gives out.
 */
#ifndef GOSSIP_MESSAGE_H
#define GOSSIP_MESSAGE_H

#include "base/buf.h"
#include "base/err.h"
#include "gossip/frame.h"
#include "gossip/trip.h"

enum {
    GOSSIP_PARTS_MAX = (GOSSIP_MESSAGE_MAX + GOSSIP_PART_BYTES - 1) / GOSSIP_PART_BYTES,
    GOSSIP_PART_WORDS = (GOSSIP_PARTS_MAX + 63) / 64,
};

/* Which messages of a peer were delivered: all older ones count as delivered. */
struct gossip_delivered {
    uint64_t epoch, newest;
    uint64_t before; /* bit n: newest - 1 - n */
};

struct gossip_message; /* one on its way, out or in */

struct gossip_messages {
    struct gossip_message *first_out, *first_in;
    uint64_t bytes_max, bytes_used;
    unsigned count;
    uint64_t due_us;
};

/* The owner's functions for messages. */
struct gossip_message_io {
    void *context;
    /* Sends one frame of parts (or RESEND) to the peer. False: not now (no budget); try later. */
    bool (*part)(void *context, uint64_t peer, const struct gossip_frame_part *part, bool again);
    bool (*resend)(void *context, uint64_t peer, const struct gossip_frame_resend *resend);
    struct gossip_trip (*trip)(void *context, uint64_t peer);
    /* A message that was sent once was confirmed after so long. */
    void (*measured)(void *context, uint64_t peer, uint64_t us);
    void (*failed)(void *context, uint64_t peer);
};

void gossip_messages_init(struct gossip_messages *m, uint64_t bytes_max);
void gossip_messages_free(struct gossip_messages *m);

/* ERR_RANGE (empty), ERR_LIMIT, ERR_FULL, ERR_NOMEM. Nothing is sent before run(). `epoch` is this
 * node's, `id` rises by one with each message to this peer, `vector` is this node's digest now. */
MUST_USE int gossip_messages_send(struct gossip_messages *m, uint64_t peer, uint64_t epoch,
                                  uint64_t id, uint64_t vector, struct slice bytes,
                                  uint64_t now_us);
/* A part came in. 1: the message is whole: `out` owns its bytes, `vector` is the sender's digest;
 * 0: it is not, or was before; ERR_FULL: no room. */
MUST_USE int gossip_messages_part(struct gossip_messages *m, const struct gossip_message_io *io,
                                  uint64_t peer, struct gossip_delivered *delivered,
                                  const struct gossip_frame_part *part, uint64_t now_us,
                                  struct buf *out);
void gossip_messages_resend(struct gossip_messages *m, const struct gossip_message_io *io,
                            uint64_t peer, const struct gossip_frame_resend *f, uint64_t now_us);
/* Sends what is due; the next time is m->due_us. */
void gossip_messages_run(struct gossip_messages *m, const struct gossip_message_io *io,
                         uint64_t now_us);
void gossip_messages_check(const struct gossip_messages *m);

#endif
