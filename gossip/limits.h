/* This folder's limits for use in other folders. What happens at each: docs/limits.md. Configurable
 * limits are in struct gossip_config. */
#ifndef GOSSIP_LIMITS_H
#define GOSSIP_LIMITS_H

enum {
    GOSSIP_ROUTERS_MAX = 512,        /* routers that live at a time, with this router */
    GOSSIP_MEMBERS_MAX = 1024,       /* remembered members, dead and departed ones included */
    GOSSIP_SEEDS_MAX = 256,          /* addresses of seeds */
    GOSSIP_PLACES_MAX = 6,           /* addresses per member */
    GOSSIP_STAMPS_MAX = 2048,        /* nodes with a remembered last stamp */
    GOSSIP_NAME_MAX = 128,           /* bytes of a node's name */
    GOSSIP_META_MAX = 256,           /* bytes of a node's metadata */
    GOSSIP_DATAGRAM_MAX = 1232,      /* UDP payload: fits the IPv6 minimum MTU of 1,280 */
    GOSSIP_DELTA_MAX = 1160,         /* bytes of an application's delta */
    GOSSIP_MESSAGE_MAX = 131072,     /* bytes of a message, sent in parts */
    GOSSIP_MESSAGES_MAX = 1024,      /* messages in transit, both ways (also limited in bytes) */
    GOSSIP_CALL_REQUEST_MAX = 49152, /* bytes of a call's request */
    GOSSIP_CALL_CHUNK_MAX = 60000,   /* bytes of a chunk of a call's answer */
    GOSSIP_CALL_FEED_MAX = 131072,   /* bytes per call of gossip_call_feed() */
};

#endif
