/* Shared by the files of the gossip's shell (node/io/gossip.h). */
#ifndef NODE_IO_GOSSIP_INTERNAL_H
#define NODE_IO_GOSSIP_INTERNAL_H

#include "base/err.h"
#include "node/io/gossip.h"
#include "node/io/lookup.h"
#include "node/io/watch_file.h"

enum {
    IO_GOSSIP_LATE_US = 50000,        /* gossip_late() is called if the loop is late by this time */
    IO_GOSSIP_LEAVE_US = 500000,      /* longest time for announcing the leave */
    IO_UDP_BUFFER_BYTES = 4 << 20,    /* socket buffer to request from the kernel, in each
                                       * direction */
    IO_UDP_DATAGRAMS = 20,            /* datagrams received at once: libuv's limit */
    IO_UDP_QUEUE_BYTES = 4 << 20,     /* limit of bytes queued while the kernel's buffer is full */
    IO_CALLS_SERVED_MAX = 64,         /* calls served at once; if more come, a call without a proven
                                       * key is closed */
    IO_CALL_CONNECT_MS = 3000,        /* caller: longest time to connect */
    IO_CALL_HANDSHAKE_MS = 10000,     /* server: longest time until the request is whole */
    IO_CALL_IDLE_MS = 15000,          /* longest time without a byte */
    IO_CALL_ROUND_BYTES = 128 * 1024, /* bytes of an answer made in a turn of the loop */
    IO_CALL_ROUND_CHUNKS = 8,         /* chunks made in a turn: even a small chunk may take long */
    IO_SEEDS_ALONE_MS = 5000,         /* interval of look-ups while no other router is reachable */
    IO_SEEDS_JOINED_MS = 30000,   /* interval of look-ups at other times: addresses may change */
    IO_SEEDS_COMPLAIN_MS = 60000, /* interval of log lines about useless names */
    IO_SEEDS_ANSWER_MS = 3000,    /* time after the start; if no router to join has answered by
                                   * then, logs a line */
    IO_SEED_ADDRESSES_MAX = 64,   /* addresses used per name */
};

struct io_call;

struct io_seed {
    struct io_gossip *gossip;
    struct node_address name;
    bool literal;
    bool asked;
    uint64_t asked_ms;
    uint64_t complained_ms;
    struct lookup lookup;
    struct gossip_address at[IO_SEED_ADDRESSES_MAX];
    unsigned count;
};

struct io_gossip_stats {
    uint64_t send_errors;  /* datagrams refused by the kernel: no route, forbidden, ... */
    uint64_t send_queued;  /* datagrams queued, because the kernel's buffer was full */
    uint64_t send_dropped; /* datagrams dropped: the queue was full, or there was no memory */
    uint64_t receive_errors;
    uint64_t calls_made, calls_failed;
    uint64_t calls_served, calls_refused; /* refused: over the limit, or without a valid key */
    uint64_t late;                        /* times the loop was late */
};

struct io_gossip {
    uv_loop_t *loop;
    const struct node_options *options;
    struct log *log;
    struct shell *shell;                  /* NULL until the start */
    struct node_replication *replication; /* borrowed; NULL until the start */
    struct gossip_keyring *keyring;
    struct io_watch key_watch;
    struct gossip_keyring fresh_keys; /* parsed, but not in use yet */
    struct io_gossip_stats stats;
    struct node_address bound; /* with the port chosen by the kernel */
    char name[GOSSIP_NAME_MAX + 1];

    uv_prepare_t prepare;
    uv_timer_t wake;
    uint64_t wake_ms;  /* time for which the timer is set */
    uint64_t armed_us; /* time at which the loop should wake; 0: no particular time */

    uv_udp_t udp;
    bool ipv6;            /* the socket is IPv6, and IPv4 peers have mapped addresses */
    uint64_t queue_bytes; /* bytes of datagrams queued in libuv */
    char *datagrams;      /* IO_UDP_DATAGRAMS buffers of 64 KiB; mostly only a page of each is
                           * touched */

    uv_tcp_t tcp;
    struct io_call *calls; /* all calls, made and served */
    struct buf call_chunk; /* scratch space within a callback */
    unsigned served;
    struct deadline_queue call_connect, call_handshake, call_idle;

    struct io_seed *seeds;
    unsigned seed_count;
    uint64_t unanswered_ms; /* next time to log that no router to join answers */

    void (*left)(struct shell *shell); /* called when all members know of the leave, or at
                                        * leave_until_us */
    uint64_t leave_until_us;
    bool leaving;
    bool stopped;
};

static inline uint64_t io_now_us(void)
{
    return uv_hrtime() / 1000;
}

/* --- addresses (gossip_udp.c) --------------------------------------------------------------- */

/* Converts the kernel's address. An IPv4-mapped IPv6 address becomes IPv4. Returns false for other
 * families. */
bool io_address_from(struct gossip_address *out, const struct sockaddr *from);
/* Converts to the kernel's form of an address, for an IPv6 socket (`ipv6`) or an IPv4 socket.
 * Returns false if the socket cannot reach such an address. */
bool io_address_to(struct sockaddr_storage *out, const struct gossip_address *to, bool ipv6);

/* --- datagrams ------------------------------------------------------------------------------ */

/* Binds the UDP socket. Returns 0 or a libuv error. */
MUST_USE int io_udp_open(struct io_gossip *g, const struct sockaddr *at);
/* Starts receiving datagrams. */
MUST_USE int io_udp_start(struct io_gossip *g);
void io_udp_send(struct io_gossip *g, const struct gossip_address *to, const uint8_t *bytes,
                 size_t len);
/* Sends a datagram from a separate port, which is closed at once. */
void io_udp_knock(struct io_gossip *g, const struct gossip_address *to, const uint8_t *bytes,
                  size_t len);

/* --- calls ---------------------------------------------------------------------------------- */

/* Binds the TCP socket for calls to the UDP socket's address. Returns 0 or a libuv error. */
MUST_USE int io_calls_open(struct io_gossip *g, const struct sockaddr *at);
MUST_USE int io_calls_start(struct io_gossip *g);
MUST_USE int io_calls_begin(struct io_gossip *g, uint32_t id, const struct gossip_address *to,
                            uint8_t kind, struct slice request);
void io_calls_tick(struct io_gossip *g, uint64_t now_ms);
void io_calls_close(struct io_gossip *g);

/* --- the key file ---------------------------------------------------------------------------- */

void io_keys_start(struct io_gossip *g);

/* --- names to join -------------------------------------------------------------------------- */

MUST_USE int io_seeds_start(struct io_gossip *g);
void io_seeds_tick(struct io_gossip *g, uint64_t now_ms);
void io_seeds_stop(struct io_gossip *g);

#endif
