/* The limits of this folder that other folders use. What happens at each: docs/limits.md.
 * Configurable limits are in struct gossip_config. */
#ifndef GOSSIP_LIMITS_H
#define GOSSIP_LIMITS_H

enum {
    GOSSIP_ROUTERS_MAX = 512,        /* routers that live at one time, this one included */
    GOSSIP_MEMBERS_MAX = 1024,       /* remembered members, dead and departed ones included */
    GOSSIP_SEEDS_MAX = 256,          /* addresses of seeds */
    GOSSIP_PLACES_MAX = 6,           /* addresses of one member */
    GOSSIP_STAMPS_MAX = 2048,        /* nodes with a remembered last stamp */
    GOSSIP_NAME_MAX = 128,           /* bytes of a node's name */
    GOSSIP_META_MAX = 256,           /* bytes of a node's metadata */
    GOSSIP_DATAGRAM_MAX = 1232,      /* UDP payload: fits the IPv6 minimum MTU of 1,280 */
    GOSSIP_DELTA_MAX = 1160,         /* bytes of one delta of an application */
    GOSSIP_MESSAGE_MAX = 131072,     /* bytes of one message, sent in parts */
    GOSSIP_MESSAGES_MAX = 1024,      /* messages at one time, sent and received; their bytes are
                                      * limited too */
    GOSSIP_CALL_REQUEST_MAX = 49152, /* bytes of a call's request */
    GOSSIP_CALL_CHUNK_MAX = 60000,   /* bytes of one chunk of a call's answer */
    GOSSIP_CALL_FEED_MAX = 131072,   /* bytes that gossip_call_feed() takes at once */
};

#endif
