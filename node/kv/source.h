/* Where an engine publishes its KV events, as it says itself.
 *
 * vLLM (0.32): GET /kv_event_sources, an object of ranks. SGLang (0.5.15): "kv_events" of
 * GET /server_info, with a base to which the rank is added. Of an address only the port counts:
 * events of a replica come from the replica's own host, and only operators may name another one, by
 * the label kv-events (node/replica/labels.h).
 */
#ifndef NODE_KV_SOURCE_H
#define NODE_KV_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    KV_TOPIC_MAX = 128,
    KV_NAMED_MAX = 255,                    /* bytes of an operator's words */
    KV_ENDPOINT_BYTES = KV_NAMED_MAX + 16, /* "tcp://", a host, a port */
};

/* Of one rank. */
struct kv_source {
    uint16_t rank;
    uint16_t port;
    uint16_t replay_port; /* 0: there is none */
    char topic[KV_TOPIC_MAX];
};

/* Reads either answer. `count`: how many there are, at most `max`; what is more is passed over, and
 * so is a rank that publishes nothing, not by ZMQ over TCP, or to a port of ours (vLLM connects
 * where its endpoint has no wildcard). ERR_SYNTAX: it is no JSON object. */
MUST_USE int kv_sources_read(struct slice json, struct kv_source *out, unsigned max,
                             unsigned *count);

/* As an operator names it: tcp://HOST:PORT?replay=PORT&topic=TEXT, or `listen` in place of the
 * address: the engine connects to kv-events-listen. Both parts behind the `?` may be left out. Or
 * `off`: this router does not read its events.
 * `host` (IPv6 in brackets) and `topic` borrow from the text. */
struct kv_named {
    struct slice host, topic;
    bool connects; /* the engine does; no host and no port */
    bool off;      /* and nothing else */
    uint16_t port;
    uint16_t replay_port; /* 0: there is none */
};
/* NULL, or what is wrong with it and would be right (a literal); `out` is then unchanged. */
const char *kv_named_parse(struct slice text, struct kv_named *out);

#endif
