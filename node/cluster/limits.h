/* The limits of this folder, and assertions that limits of crdt/ and gossip/ fit each other.
 * docs/limits.md says what happens at each limit. */
#ifndef NODE_CLUSTER_LIMITS_H
#define NODE_CLUSTER_LIMITS_H

#include "base/chain.h"
#include "base/version.h"
#include "crdt/limits.h"
#include "gossip/limits.h"

enum {
    NODE_MESSAGE_HEAD = 10,                 /* bytes of the head in front of a message of crdt/ */
    NODE_CALLS_MAX = 64,                    /* calls to other routers, in flight */
    NODE_CALLS_SERVED_MAX = 64,             /* calls of other routers, in flight */
    NODE_ASKS_MAX = 4,                      /* questions to all routers, in flight */
    NODE_ANSWER_BYTES_MAX = 4 << 20,        /* bytes of a router's answer to a question to all
                                             * members */
    NODE_ANSWERS_BYTES_MAX = 64 << 20,      /* bytes of all answers to a question together */
    NODE_JOIN_KEPT_BYTES_MAX = 8 << 20,     /* bytes of deltas kept while a snapshot arrives */
    NODE_STRANGERS_MAX = 16,                /* logged addresses of other clusters */
    NODE_CLOCKS_MAX = 16,                   /* routers whose clocks are compared */
    NODE_REQUEST_TEXT_MAX = 4096,           /* bytes of a text in a packed request */
    NODE_REQUEST_POINT_MAX = 8 + 5 + 1 + 3, /* bytes per checkpoint in a packed request */
    NODE_ADMIN_MAX = 96,                    /* bytes of a router's admin address */
    NODE_VERSION_MAX = 32,
    NODE_POLICY_MAX = 24,
    NODE_DETAIL_MAX = 160,
    NODE_ADDRESS_MAX = 64,
};

_Static_assert((int)GOSSIP_ROUTERS_MAX == (int)CRDT_ROUTERS_MAX, "one limit of routers");
_Static_assert((int)GOSSIP_DELTA_MAX >= (int)CRDT_DELTA_MIN, "a delta has room for any record");
_Static_assert((int)GOSSIP_DELTA_MAX >= (int)CRDT_SUMMARY_MAX + NODE_MESSAGE_HEAD,
               "a summary is one part of a message");
_Static_assert((int)GOSSIP_MESSAGE_MAX >= (int)CRDT_MESSAGE_MAX + NODE_MESSAGE_HEAD,
               "a message of anti-entropy is a message with a head");
_Static_assert((int)GOSSIP_CALL_CHUNK_MAX >= (int)CRDT_CHUNK_MAX, "a snapshot is served by a call");
_Static_assert(3 * NODE_REQUEST_TEXT_MAX + CHAIN_POINTS_MAX * NODE_REQUEST_POINT_MAX + 128 <=
                   (int)GOSSIP_CALL_REQUEST_MAX,
               "any request can be explained by another router");
_Static_assert((int)VERSION_BYTES <= (int)NODE_VERSION_MAX, "the version fits");
/* A node's metadata: admin, version, policy and numbers, each with a tag and a length. */
_Static_assert(NODE_ADMIN_MAX + NODE_VERSION_MAX + NODE_POLICY_MAX + 8 * 8 + 11 * 2 <=
                   (int)GOSSIP_META_MAX,
               "what a router says of itself fits");

#endif
