/* Parses an engine's connection to the router for publishing KV events. The protocol is ZMTP 3.0
 * (https://rfc.zeromq.org/spec/23) with mechanism NULL; the router is a SUB that listens. libzmq is
 * not used here, because it would accept any number of connections, and does not report a message's
 * connection.
 *
 * A message has three parts: a topic, a number of eight bytes in network order, and a payload.
 * Other messages are skipped (KV_ZMTP_ODD). The peer is not trusted: a connection stores only the
 * received bytes of a single message, at most KV_ZMTP_MESSAGE_MAX, and allocates nothing by an
 * announced length.
 *
 * Pure: bytes go in, messages and replies come out.
 */
#ifndef NODE_KV_ZMTP_H
#define NODE_KV_ZMTP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "node/kv/source.h"

enum {
    KV_ZMTP_MESSAGE_MAX = 16 << 20, /* bytes of a payload */
    KV_ZMTP_COMMAND_MAX = 1024,
    KV_ZMTP_GREETING = 64,
    KV_ZMTP_HEAD = 9, /* most bytes of a frame's head: flags and the length */
};

enum kv_zmtp_event {
    KV_ZMTP_MORE, /* all input was read */
    KV_ZMTP_REPLY,
    KV_ZMTP_MESSAGE,
    KV_ZMTP_ODD, /* a message without exactly these three parts has ended: topic, number, payload */
};

struct kv_zmtp {
    uint8_t state, part, flags;
    bool ready;   /* the peer has identified itself */
    bool odd;     /* the current message has other parts than topic, number, payload */
    uint8_t have; /* bytes received of `head` */
    char head[KV_ZMTP_GREETING];
    uint64_t left; /* bytes of the present frame still to come */
    size_t topic_len, number_len;
    char topic[KV_TOPIC_MAX];
    char number[8];
    struct buf body;     /* a payload, or a command */
    struct slice reply;  /* after KV_ZMTP_REPLY: bytes to send, valid until the next call */
    char reply_text[64]; /* memory for a reply to a PING */
};

void kv_zmtp_begin(struct kv_zmtp *z);
void kv_zmtp_free(struct kv_zmtp *z);
/* Returns the router's first bytes to send. */
struct slice kv_zmtp_greeting(void);
/* Reads from the front of `*in` up to the next event, and returns the event (enum kv_zmtp_event).
 * After an error the connection is unusable. ERR_SYNTAX: the peer is no PUB with ZMTP 3. ERR_LIMIT:
 * a frame is too long. ERR_NOMEM. */
MUST_USE int kv_zmtp_take(struct kv_zmtp *z, struct slice *in);
/* Returns true if the peer has identified itself and the subscription was sent. */
bool kv_zmtp_is_ready(const struct kv_zmtp *z);
/* Return the parts of a message after KV_ZMTP_MESSAGE, valid until the next call. */
struct slice kv_zmtp_topic(const struct kv_zmtp *z);
uint64_t kv_zmtp_number(const struct kv_zmtp *z);
struct slice kv_zmtp_payload(const struct kv_zmtp *z);
/* Returns the bytes of memory in use for incomplete messages. */
size_t kv_zmtp_held(const struct kv_zmtp *z);

#endif
