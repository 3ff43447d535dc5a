/* The sockets of a KV-event feed, by libzmq: a subscription, and replays on request.
 *
 * The engine binds two endpoints, with a port for each rank: for the subscription and for replays
 * (`endpoint` and `replay_endpoint` of vLLM; SGLang has both too). An ended subscription is opened
 * again, with growing delays. A message has a topic, a number of eight bytes in network order, and
 * a payload. Other messages are counted and dropped. In a replay the last part is the payload,
 * after the number; a topic may come first (vLLM from 0.25) or not (SGLang).
 *
 * The sender is not trusted, so there are limits: a message has at most IO_KV_MESSAGE_MAX bytes,
 * and at most IO_KV_QUEUED messages wait in this process; further ones wait at the engine. A turn
 * of the loop reads at most IO_KV_AT_ONCE messages, and at most about IO_KV_BYTES_AT_ONCE bytes.
 * node/kv interprets the messages. */
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

/* Called from the loop, never before a call of this header has returned. Slices are valid during
 * the call. */
struct io_kv_feed_user {
    void (*connected)(void *context); /* the subscription is open, for the first time or again */
    void (*lost)(void *context);      /* the subscription ended or could not be opened; another try
                                       * follows */
    void (*live)(void *context, uint64_t number, struct slice payload);
    void (*replayed)(void *context, uint64_t number, struct slice payload);
    void (*replay_ended)(void *context);
    void *context;
};

struct io_kv_feed_stats {
    uint64_t connects, messages, bytes, malformed;
};

struct io_kv_feed;

/* Creates the context shared by all feeds of a process; pass `zmq` to io_kv_feed_open().
 * ERR_NOMEM. */
MUST_USE int io_kv_open(void **zmq);
/* Call when all feeds are closed and the loop has run once more. */
void io_kv_close(void *zmq);

/* Opens a feed. Endpoints are "tcp://host:port". If `endpoint` is empty, there is no subscription,
 * only replays; if `replay` is empty, there are no replays. `user` is borrowed. ERR_SYNTAX: libzmq
 * does not accept an endpoint. ERR_NOMEM: there is no memory or no file left. */
MUST_USE int io_kv_feed_open(struct io_kv_feed **out, uv_loop_t *loop, void *zmq,
                             struct slice endpoint, struct slice replay, struct slice topic,
                             const struct io_kv_feed_user *user);
/* Stops all callbacks. Memory is freed after the loop has run. */
void io_kv_feed_close(struct io_kv_feed *f);
/* Requests messages from the number `from` on, replacing an earlier request. ERR_NOMEM. */
MUST_USE int io_kv_feed_replay(struct io_kv_feed *f, uint64_t from);

struct io_kv_feed_stats io_kv_feed_stats(const struct io_kv_feed *f);

#endif
