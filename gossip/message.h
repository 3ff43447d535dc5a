/* Messages between applications, cut into parts; missing parts are requested and sent again.
 *
 *     sender                                    receiver
 *     PART 0 1 2 3 ... in small bursts  ---->   puts them together
 *              <---- RESEND what is missing     when nothing came for a few milliseconds
 *     PART those                        ---->
 *              <---- RESEND done                whole: delivered once
 *
 * If no RESEND comes after the last part, the sender sends that part again, with a back-off. All
 * waits follow the measured round trip (trip.h), so that nothing is sent twice while the answer is
 * still on the way. A message without progress for a second and eight round trips is given up at
 * both ends. Any message is given up after 20 s, so no peer can hold memory by requesting parts
 * again and again.
 *
 * All messages together, both ways, hold at most `bytes_max` bytes, and messages received from a
 * single peer at most a quarter as much, but at least 1 message. A message beyond these limits is
 * not accepted, and the sender tries again until it gives up.
 *
 * This file knows no sessions: the owner sends the frames made by gossip_messages_run().
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

/* Records which of a peer's last messages were delivered. All older messages count as delivered. */
struct gossip_delivered {
    uint64_t epoch, newest;
    uint64_t before; /* bit n: message newest - 1 - n was delivered */
};

struct gossip_message; /* a message in transit, sent or received */

struct gossip_messages {
    struct gossip_message *first_out, *first_in;
    uint64_t bytes_max, bytes_used;
    unsigned count;
    uint64_t due_us;
};

/* The owner's functions for messages. */
struct gossip_message_io {
    void *context;
    /* part() and resend() send a frame to the peer. False: no budget now, try later. */
    bool (*part)(void *context, uint64_t peer, const struct gossip_frame_part *part, bool again);
    bool (*resend)(void *context, uint64_t peer, const struct gossip_frame_resend *resend);
    struct gossip_trip (*trip)(void *context, uint64_t peer);
    /* A message was confirmed after `us`, and each part was sent only once. */
    void (*measured)(void *context, uint64_t peer, uint64_t us);
    void (*failed)(void *context, uint64_t peer);
};

void gossip_messages_init(struct gossip_messages *m, uint64_t bytes_max);
void gossip_messages_free(struct gossip_messages *m);

/* Queues a message; gossip_messages_run() sends it. ERR_RANGE (`bytes` is empty), ERR_LIMIT,
 * ERR_FULL, ERR_NOMEM. `epoch`: this node's epoch. `id`: the id of the last message to this peer,
 * plus 1. `vector`: digest of this node's vector now. */
MUST_USE int gossip_messages_send(struct gossip_messages *m, uint64_t peer, uint64_t epoch,
                                  uint64_t id, uint64_t vector, struct slice bytes,
                                  uint64_t now_us);
/* Takes a part. 1: the message is complete, and `out` owns the message's bytes; 0: the message is
 * incomplete, or was delivered before; ERR_SYNTAX: the part contradicts an earlier part; ERR_FULL,
 * ERR_NOMEM: no room. */
MUST_USE int gossip_messages_part(struct gossip_messages *m, const struct gossip_message_io *io,
                                  uint64_t peer, struct gossip_delivered *delivered,
                                  const struct gossip_frame_part *part, uint64_t now_us,
                                  struct buf *out);
void gossip_messages_resend(struct gossip_messages *m, const struct gossip_message_io *io,
                            uint64_t peer, const struct gossip_frame_resend *f, uint64_t now_us);
/* Sends everything due. m->due_us is the time of the next call. */
void gossip_messages_run(struct gossip_messages *m, const struct gossip_message_io *io,
                         uint64_t now_us);
void gossip_messages_check(const struct gossip_messages *m);

#endif
