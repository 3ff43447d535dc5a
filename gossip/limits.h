/* The limits of this room that others see. What happens at each: docs/limits.md; all that can be
 * configured is in struct gossip_config. */
#ifndef GOSSIP_LIMITS_H
#define GOSSIP_LIMITS_H

enum {
    GOSSIP_ROUTERS_MAX = 512,        /* that live at one time, this one too */
    GOSSIP_MEMBERS_MAX = 1024,       /* that are remembered: the dead and those that left too */
    GOSSIP_SEEDS_MAX = 256,          /* addresses */
    GOSSIP_PLACES_MAX = 6,           /* addresses of one member */
    GOSSIP_STAMPS_MAX = 2048,        /* nodes with a remembered last stamp */
    GOSSIP_NAME_MAX = 128,           /* bytes */
    GOSSIP_META_MAX = 256,           /* bytes */
    GOSSIP_DATAGRAM_MAX = 1232,      /* UDP payload: fits the IPv6 minimum MTU of 1,280 */
    GOSSIP_DELTA_MAX = 1160,         /* bytes of one delta of an application */
    GOSSIP_MESSAGE_MAX = 131072,     /* bytes of one message, sent in parts */
    GOSSIP_MESSAGES_MAX = 1024,      /* in all, both ways, besides their bytes */
    GOSSIP_CALL_REQUEST_MAX = 49152, /* bytes */
    GOSSIP_CALL_CHUNK_MAX = 60000,   /* bytes of one piece of an answer */
    GOSSIP_CALL_FEED_MAX = 131072,   /* bytes to feed at once */
};

#endif
