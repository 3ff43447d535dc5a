#include "tests/engine-sim/kv_sockets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "base/check.h"
#include "base/hash.h"

enum {
    HWM = 100000, /* vLLM's limit of messages waiting for a slow reader; more are dropped */
    NUMBER = 8,   /* bytes */
    ASKER_MAX = 255,
    TRIES = 100, /* tries to find consecutive ports */
    PICKED_FIRST = 10000,
    PICKED_LAST = 32000,
    PORT_MAX = 65535,
};

struct router {
    uv_poll_t poll; /* first */
    struct sim_kv_sockets *of;
    unsigned rank;
    void *zmq;
    char asker[ASKER_MAX]; /* identity of the subscriber to answer */
    size_t asker_len;
};

struct sim_kv_sockets {
    uv_loop_t *loop;
    struct sim_publisher *publisher;
    struct sim_kv_carrier carrier;
    char host[64];
    unsigned ranks;
    void *zmq; /* libzmq's context; NULL: nothing is open */
    void *publish[SIM_RANKS_MAX];
    struct router *routers[SIM_RANKS_MAX]; /* NULL: none */
};

/* --- messages -------------------------------------------------------------------------------- */

static void put(void *zmq, struct slice part, bool more)
{
    (void)zmq_send(zmq, part.at, part.len, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0));
}

static void put_message(const struct sim_kv_sockets *s, void *zmq, bool topic, uint64_t number,
                        struct slice payload)
{
    char bytes[NUMBER];
    for (unsigned i = 0; i < NUMBER; i++)
        bytes[i] = (char)(number >> (56 - 8 * i));
    if (topic && number == UINT64_MAX)
        put(zmq, SLICE(""), true);
    else if (topic)
        put(zmq, slice_of_cstr(sim_publisher_config(s->publisher)->topic), true);
    put(zmq, slice_of(bytes, NUMBER), true);
    put(zmq, payload, false);
}

static void do_send(void *context, unsigned rank, uint64_t number, struct slice payload)
{
    struct sim_kv_sockets *s = context;
    if (s->publish[rank] != NULL)
        put_message(s, s->publish[rank], true, number, payload);
}

static void answer(void *context, uint64_t number, struct slice payload)
{
    struct router *r = context;
    const char *form = sim_publisher_config(r->of->publisher)->form;
    put(r->zmq, slice_of(r->asker, r->asker_len), true);
    put(r->zmq, SLICE(""), true);
    put_message(r->of, r->zmq, sim_kv_form_has_topic(form), number, payload);
}

/* Takes a message of three parts: the sender, an empty part, a number of any length. Other messages
 * get no answer. False: no message. */
static bool take(struct router *r)
{
    char part[ASKER_MAX];
    unsigned count = 0;
    bool well = true, more = true;
    uint64_t from = 0;
    for (; more; count++) {
        int len = zmq_recv(r->zmq, part, sizeof part, ZMQ_DONTWAIT);
        int rest = 0;
        size_t size = sizeof rest;
        if (len < 0)
            return false;
        CHECK(zmq_getsockopt(r->zmq, ZMQ_RCVMORE, &rest, &size) == 0);
        more = rest != 0;
        well &= len <= ASKER_MAX && (count != 1 || len == 0);
        if (count == 0 && well) {
            memcpy(r->asker, part, (size_t)len);
            r->asker_len = (size_t)len;
        }
        for (int i = 0; count == 2 && well && i < len; i++)
            from = from << 8 | (unsigned char)part[i];
    }
    if (well && count == 3 && sim_publisher_replay(r->of->publisher, r->rank, from, answer, r))
        answer(r, UINT64_MAX, SLICE(""));
    return true;
}

/* The descriptor signals changes only, so this reads everything. */
static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct router *r = (struct router *)poll;
    (void)status, (void)events;
    while (r->zmq != NULL && take(r))
        ;
}

/* --- life ------------------------------------------------------------------------------------ */

static void on_closed(uv_handle_t *handle)
{
    free(handle); /* the handle is the first member of struct router */
}

/* When this returns, the ports are free. */
static void close_all(struct sim_kv_sockets *s)
{
    for (unsigned i = 0; i < s->ranks; i++) {
        struct router *r = s->routers[i];
        if (s->publish[i] != NULL)
            CHECK(zmq_close(s->publish[i]) == 0);
        s->publish[i] = NULL;
        if (r == NULL)
            continue;
        uv_close((uv_handle_t *)&r->poll, on_closed); /* polls no more from now on */
        CHECK(zmq_close(r->zmq) == 0);
        r->zmq = NULL;
        s->routers[i] = NULL;
    }
    if (s->zmq != NULL)
        CHECK(zmq_ctx_term(s->zmq) == 0);
    s->zmq = NULL;
}

static void set(void *zmq, int option, int value)
{
    CHECK(zmq_setsockopt(zmq, option, &value, sizeof value) == 0);
}

/* Binds *port; if 0, a port picked by the kernel, which is then set. */
static int bind_at(const struct sim_kv_sockets *s, void *zmq, unsigned *port)
{
    char endpoint[96], bound[96];
    size_t size = sizeof bound;
    if (*port > PORT_MAX)
        return EADDRNOTAVAIL;
    (void)snprintf(endpoint, sizeof endpoint, *port == 0 ? "tcp://%s:*" : "tcp://%s:%u", s->host,
                   *port);
    if (zmq_bind(zmq, endpoint) != 0)
        return zmq_errno();
    CHECK(zmq_getsockopt(zmq, ZMQ_LAST_ENDPOINT, bound, &size) == 0);
    *port = (unsigned)strtoul(strrchr(bound, ':') + 1, NULL, 10);
    return 0;
}

/* If vLLM's endpoint names a host, each rank adds the rank's number to the port. */
static int connect_at(void *zmq, const char *endpoint, unsigned rank)
{
    const char *colon = strrchr(endpoint, ':');
    char at[320];
    (void)snprintf(at, sizeof at, "%.*s:%lu", (int)(colon - endpoint), endpoint,
                   strtoul(colon + 1, NULL, 10) + rank);
    return zmq_connect(zmq, at) == 0 ? 0 : zmq_errno();
}

static void *socket_of(struct sim_kv_sockets *s, int type)
{
    void *zmq = zmq_socket(s->zmq, type);
    CHECK(zmq != NULL);
    set(zmq, ZMQ_LINGER, 0);
    /* A replay arrives complete, even at a slow reader. */
    set(zmq, ZMQ_SNDHWM, type == ZMQ_PUB ? HWM : 0);
    return zmq;
}

static int router_open(struct sim_kv_sockets *s, unsigned rank, unsigned *port)
{
    uv_os_sock_t descriptor;
    size_t size = sizeof descriptor;
    struct router *r = calloc(1, sizeof *r);
    CHECK(r != NULL);
    r->of = s;
    r->rank = rank;
    r->zmq = socket_of(s, ZMQ_ROUTER);
    CHECK(zmq_getsockopt(r->zmq, ZMQ_FD, &descriptor, &size) == 0);
    CHECK(uv_poll_init_socket(s->loop, &r->poll, descriptor) == 0);
    CHECK(uv_poll_start(&r->poll, UV_READABLE, on_poll) == 0);
    s->routers[rank] = r;
    int err = bind_at(s, r->zmq, port);
    on_poll(&r->poll, 0, 0); /* messages signalled before the poll began */
    return err;
}

/* Opens the sockets of all ranks, from these ports on. */
static int open_from(struct sim_kv_sockets *s, bool answers, unsigned *port, unsigned *again)
{
    const struct sim_kv_config *config = sim_publisher_config(s->publisher);
    int err = 0;
    s->zmq = zmq_ctx_new();
    CHECK(s->zmq != NULL);
    for (unsigned i = 0; i < s->ranks && err == 0; i++) {
        unsigned at = *port + i, again_at = *again + i;
        s->publish[i] = socket_of(s, ZMQ_PUB);
        err = config->connect != NULL
                  ? connect_at(s->publish[i], config->connect, config->first + i)
                  : bind_at(s, s->publish[i], i == 0 ? port : &at);
        if (err == 0 && answers)
            err = router_open(s, i, i == 0 ? again : &again_at);
    }
    if (err != 0)
        close_all(s);
    return err;
}

/* For a single rank the kernel picks the port. Several ranks need consecutive ports: the search is
 * outside the kernel's range for outgoing connections. */
static unsigned port_try(const struct sim_kv_sockets *s, unsigned port, unsigned try)
{
    if (port != 0 || s->ranks == 1)
        return port;
    uint64_t chance = hash_mix(uv_hrtime() + try);
    return PICKED_FIRST + (unsigned)(chance % (PICKED_LAST - PICKED_FIRST));
}

static int open_all(struct sim_kv_sockets *s)
{
    const struct sim_kv_config *config = sim_publisher_config(s->publisher);
    bool picks = config->port == 0 || (config->answers_again && config->again == 0);
    int err = EADDRINUSE;
    for (unsigned i = 0; i < (picks ? TRIES : 1) && err != 0; i++) {
        unsigned port = port_try(s, config->port, i), again = port_try(s, config->again, TRIES + i);
        err = open_from(s, config->answers_again, &port, &again);
        if (err == 0)
            sim_publisher_ports(s->publisher, port, config->answers_again ? again : 0);
    }
    return err;
}

static void do_listen(void *context, bool on)
{
    struct sim_kv_sockets *s = context;
    close_all(s);
    if (on)
        CHECK(open_all(s) == 0);
}

int sim_kv_sockets_open(struct sim_kv_sockets **out, uv_loop_t *loop, struct sim_publisher *p,
                        const char *host)
{
    struct sim_kv_sockets *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->loop = loop;
    s->publisher = p;
    s->ranks = sim_publisher_ranks(p);
    s->carrier = (struct sim_kv_carrier){do_send, do_listen, s};
    (void)snprintf(s->host, sizeof s->host, "%s", host);
    int err = open_all(s);
    if (err != 0) {
        free(s);
        return err;
    }
    sim_publisher_carry(p, &s->carrier);
    *out = s;
    return 0;
}

void sim_kv_sockets_close(struct sim_kv_sockets *s)
{
    if (s == NULL)
        return;
    close_all(s);
    sim_publisher_carry(s->publisher, NULL);
    free(s);
}
