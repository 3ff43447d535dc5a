/* A question and the streamed answer over one TCP connection, sealed like all traffic. For
 * transfers too large for datagrams (a snapshot for a joining node, an operator's question to all
 * nodes).
 *
 * Noise_NNpsk0 (gossip/noise.h) over length-prefixed messages: the client sends a hello and then,
 * in the first sealed message, the kind of call and the request. The server answers in sealed
 * chunks of at most GOSSIP_CALL_CHUNK_MAX bytes and a sealed end mark. A server sends nothing
 * before the client has proved the key, and closes the connection if the proof fails. A replay of a
 * client's bytes gets the 50 bytes of a welcome and no more: the server's ephemeral key is fresh,
 * so the recorded request does not open.
 *
 * A request names the client's protocol versions (gossip/version.h). If the server speaks none of
 * them, or does not know the kind of call, it refuses the call and says why.
 *
 * Limits come before memory: a server buffers a hello (54 bytes) until the key is proved, then a
 * request. The shell limits the duration and the number of calls.
 *
 * Pure: bytes come in, and bytes to send collect in `out`; the shell writes and consumes them. The
 * server makes the next chunk only when `out` is short, so memory is bounded at both ends.
 */
#ifndef GOSSIP_CALL_H
#define GOSSIP_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "gossip/keyring.h"
#include "gossip/limits.h"
#include "gossip/version.h"

enum {
    GOSSIP_CALL_OUT_HIGH = 262144, /* while more bytes than this wait to be sent, no chunk is
                                    * made */
};

enum gossip_call_step {
    GOSSIP_CALL_WAIT,    /* feed more bytes */
    GOSSIP_CALL_REQUEST, /* server: `kind` and `chunk` hold the request */
    GOSSIP_CALL_CHUNK,   /* client: `chunk` is the next piece of the answer; call again */
    GOSSIP_CALL_DONE,    /* client: the answer is complete */
    GOSSIP_CALL_REFUSED, /* server: refused the request, because no version is common */
};

struct gossip_call;

/* Begins a call as a client. gossip_call_out() has the first bytes at once. ERR_NOMEM, ERR_LIMIT.
 * `random`: 32 fresh random bytes. `speaks`: this side's protocol versions. */
MUST_USE int gossip_call_open(struct gossip_call **out, const struct gossip_keyring *keyring,
                              struct gossip_versions speaks, const uint8_t random[32], uint8_t kind,
                              struct slice request);
/* Begins a call as a server, for an accepted connection. The keyring is copied. */
MUST_USE int gossip_call_accept(struct gossip_call **out, const struct gossip_keyring *keyring,
                                struct gossip_versions speaks, const uint8_t random[32]);
void gossip_call_free(struct gossip_call *c);

/* Takes bytes from the connection, at most GOSSIP_CALL_FEED_MAX; then call step() until the step is
 * WAIT. `chunk` is borrowed until the next feed() or step(). ERR_DENIED, ERR_SYNTAX, ERR_LIMIT:
 * close the connection, say nothing. ERR_VERSION, ERR_UNSUPPORTED: the server refused the request.
 * If the connection closes before DONE, the call has failed: the answer is incomplete. */
MUST_USE int gossip_call_feed(struct gossip_call *c, struct slice bytes);
MUST_USE int gossip_call_step(struct gossip_call *c, enum gossip_call_step *step, uint8_t *kind,
                              struct slice *chunk);

/* For a server. wants() says whether the call takes another chunk now: then pass at most
 * GOSSIP_CALL_CHUNK_MAX bytes (CHECKed) to answer(), or call end(). ERR_FULL: the call takes no
 * chunk now. ERR_CLOSED: there is no request, or the request was answered. ERR_NOMEM, ERR_LIMIT. */
bool gossip_call_wants(const struct gossip_call *c);
MUST_USE int gossip_call_answer(struct gossip_call *c, struct slice chunk);
MUST_USE int gossip_call_end(struct gossip_call *c);
/* Refuses the request instead of answering. `why`: ERR_VERSION or ERR_UNSUPPORTED, the result of
 * the client's step(). */
MUST_USE int gossip_call_refuse(struct gossip_call *c, int why);

/* Bytes to write to the connection. The caller consumes written bytes. */
struct buf *gossip_call_out(struct gossip_call *c);

#endif
