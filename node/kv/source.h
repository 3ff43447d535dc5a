/* Reads the addresses of an engine's KV events, from the engine's answer.
 *
 * vLLM (0.32): GET /kv_event_sources, an object of ranks. SGLang (0.5.15): "kv_events" of GET
 * /server_info, with a base port to which the rank is added. Only the port of an address counts: a
 * replica's events come from the replica's own host. Only operators may name another host, with the
 * label kv-events (node/replica/labels.h).
 */
#ifndef NODE_KV_SOURCE_H
#define NODE_KV_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    KV_TOPIC_MAX = 128,
    KV_NAMED_MAX = 255,                    /* bytes of the label kv-events */
    KV_ENDPOINT_BYTES = KV_NAMED_MAX + 16, /* "tcp://", a host, a port */
};

/* A rank's source of events. */
struct kv_source {
    uint16_t rank;
    uint16_t port;
    uint16_t replay_port; /* 0: none */
    char topic[KV_TOPIC_MAX];
};

/* Reads either engine's answer. `*count`: the number of sources, at most `max`; further ones are
 * skipped. Ranks are also skipped if they publish no events, do not use ZMQ over TCP, or connect to
 * a router (vLLM connects if the endpoint has no wildcard). ERR_SYNTAX: the answer is no JSON
 * object. */
MUST_USE int kv_sources_read(struct slice json, struct kv_source *out, unsigned max,
                             unsigned *count);

/* The label kv-events: tcp://HOST:PORT?replay=PORT&topic=TEXT, listen?topic=TEXT, or off. The parts
 * after the `?` are optional. `listen`: the engine connects to kv-events-listen. `off`: routers do
 * not read the events. `host` (IPv6 in brackets) and `topic` borrow from the text. */
struct kv_named {
    struct slice host, topic;
    bool connects; /* the engine connects; `host` and `port` are not set */
    bool off;      /* the events are not read; nothing else is set */
    uint16_t port;
    uint16_t replay_port; /* 0: none */
};
/* Returns NULL, or a literal with the error and the right form; then `out` is unchanged. */
const char *kv_named_parse(struct slice text, struct kv_named *out);

#endif
