/* The sockets of one KV-event feed, by libzmq: a subscription, and replays that are asked for.
 *
 * The engine binds both (vLLM `endpoint` and `replay_endpoint`, a port of each rank; SGLang the
 * same). A subscription that ends is opened again, later each time. A message has a topic, a number
 * of eight bytes in network order, and a payload. Others are counted and dropped. Of a replay the
 * last part is the payload and the one before it the number, whether a topic stands in front (vLLM
 * from 0.25) or not (SGLang).
 *
 * Strangers may send here, so all is bounded: IO_KV_MESSAGE_MAX bytes a message, IO_KV_QUEUED that
 * wait in this process (more wait at the engine), IO_KV_AT_ONCE that are read in one turn of the
 * loop, or as many as have IO_KV_BYTES_AT_ONCE. What the messages mean is node/kv's.
 */
#ifndef NODE_IO_KV_FEED_H
#define NODE_IO_KV_FEED_H

#include <uv.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    IO_KV_MESSAGE_MAX = 16 << 20,
    IO_KV_QUEUED = 16,
    IO_KV_AT_ONCE = 64,
    IO_KV_BYTES_AT_ONCE = 1 << 20, /* some 5 ms of work */
    IO_KV_ENDPOINT_MAX = 320,      /* "tcp://", a host, a port */
    IO_KV_TOPIC_MAX = 256,
};

/* Called from the loop, never from within a call of this header. Slices are valid for the call. */
struct io_kv_feed_user {
    void (*connected)(void *context); /* the subscription is open, for the first time or again */
    void (*lost)(void *context);      /* it ended, or could not be opened: it is opened anew */
    void (*live)(void *context, uint64_t number, struct slice payload);
    void (*replayed)(void *context, uint64_t number, struct slice payload);
    void (*replay_ended)(void *context);
    void *context;
};

struct io_kv_feed_stats {
    uint64_t connects, messages, bytes, malformed;
};

struct io_kv_feed;

/* All feeds of a process share one; `zmq` is for io_kv_feed_open(). ERR_NOMEM. */
MUST_USE int io_kv_open(void **zmq);
/* All feeds are closed, and the loop has run since. */
void io_kv_close(void *zmq);

/* Endpoints as "tcp://host:port"; an empty one: nothing is subscribed to, and replays can be asked
 * for; an empty `replay`: there is none. `user` is borrowed.
 * ERR_SYNTAX if libzmq does not take an endpoint; ERR_NOMEM, also for want of files. */
MUST_USE int io_kv_feed_open(struct io_kv_feed **out, uv_loop_t *loop, void *zmq,
                             struct slice endpoint, struct slice replay, struct slice topic,
                             const struct io_kv_feed_user *user);
/* Nothing is called from now on. Memory goes when the loop has run. */
void io_kv_feed_close(struct io_kv_feed *f);
/* Asks for messages from that number on; one that was asked for before is given up. ERR_NOMEM. */
MUST_USE int io_kv_feed_replay(struct io_kv_feed *f, uint64_t from);

struct io_kv_feed_stats io_kv_feed_stats(const struct io_kv_feed *f);

#endif
