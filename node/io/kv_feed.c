#include "node/io/kv_feed.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zmq.h>

#include "base/check.h"

enum {
    PARTS_MAX = 4, /* most parts of a message: in a replay, an empty part, a topic, the number and
                    * the payload */
    RETRY_MS = 100,
    RETRY_MAX_MS = 5000,  /* a connection open for this long resets the delay */
    HEARTBEAT_MS = 10000, /* a connection or attempt ends after this time without an answer */
    ENDED = ZMQ_EVENT_CLOSED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
            ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH,
};

/* A libzmq socket in the loop. The descriptor signals changes, not states. So messages are read
 * until none is left, also after each call that may have changed the state. */
struct socket {
    struct io_kv_feed *feed;
    void *zmq;
    uv_poll_t poll;
    void (*message)(struct io_kv_feed *f, const struct slice *parts, unsigned count);
};

struct io_kv_feed {
    uv_loop_t *loop;
    void *context; /* libzmq's context */
    const struct io_kv_feed_user *user;
    struct socket *subscription, *monitor, *replay; /* NULL: closed */
    uv_idle_t again;                                /* active while messages wait to be read */
    uv_timer_t retry;                               /* opens the next subscription */
    uint64_t retry_ms, connected_ms;                /* present delay; time of the last success */
    bool ended;                                     /* the subscription has ended, and a retry is
                                                     * planned */
    bool closed;
    unsigned open; /* number of handles still used by libuv */
    char endpoint[IO_KV_ENDPOINT_MAX], replay_endpoint[IO_KV_ENDPOINT_MAX];
    struct slice topic; /* a slice of topic_bytes */
    char topic_bytes[IO_KV_TOPIC_MAX];
    struct io_kv_feed_stats stats;
};

/* --- libzmq's calls --------------------------------------------------------------------------- */

/* Repeats a call interrupted by a signal before any effect. */
#define AGAIN(rc, call)                                                                            \
    do                                                                                             \
        (rc) = (call);                                                                             \
    while ((rc) < 0 && zmq_errno() == EINTR)

static int receive_part(void *zmq, zmq_msg_t *part)
{
    int rc;
    AGAIN(rc, zmq_msg_recv(part, zmq, ZMQ_DONTWAIT));
    return rc;
}

static int send_part(void *zmq, const void *bytes, size_t len, int more)
{
    int rc;
    AGAIN(rc, zmq_send(zmq, bytes, len, more | ZMQ_DONTWAIT));
    return rc;
}

static int connect_to(void *zmq, const char *endpoint)
{
    int rc;
    AGAIN(rc, zmq_connect(zmq, endpoint));
    return rc;
}

static int monitor_at(void *zmq, const char *endpoint, int events)
{
    int rc;
    AGAIN(rc, zmq_socket_monitor(zmq, endpoint, events));
    return rc;
}

static int set_bytes(void *zmq, int option, const void *value, size_t len)
{
    int rc;
    AGAIN(rc, zmq_setsockopt(zmq, option, value, len));
    return rc;
}

static int set(void *zmq, int option, int value)
{
    return set_bytes(zmq, option, &value, sizeof value);
}

static int get_bytes(void *zmq, int option, void *value, size_t *len)
{
    int rc;
    AGAIN(rc, zmq_getsockopt(zmq, option, value, len));
    return rc;
}

/* --- messages -------------------------------------------------------------------------------- */

static bool number_of(struct slice part, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < part.len && i < 8; i++)
        *number = *number << 8 | (unsigned char)part.at[i];
    return part.len == 8;
}

static void on_live(struct io_kv_feed *f, const struct slice *parts, unsigned count)
{
    uint64_t number;
    if (count != 3 || !number_of(parts[1], &number) || parts[2].len == 0) {
        f->stats.malformed++;
        return;
    }
    f->stats.messages++;
    f->stats.bytes += parts[2].len;
    f->user->live(f->user->context, number, parts[2]);
}

static void on_replay(struct io_kv_feed *f, const struct slice *parts, unsigned count)
{
    uint64_t number;
    if (count < 3 || parts[0].len != 0 || !number_of(parts[count - 2], &number)) {
        f->stats.malformed++;
        return;
    }
    if (number == UINT64_MAX || parts[count - 1].len == 0) {
        f->user->replay_ended(f->user->context);
        return;
    }
    f->stats.messages++;
    f->stats.bytes += parts[count - 1].len;
    f->user->replayed(f->user->context, number, parts[count - 1]);
}

static void on_retry(uv_timer_t *timer);

/* Sets a time limit for the connection, because libzmq does not report an unresolvable name. */
static void await_answer(struct io_kv_feed *f)
{
    f->ended = false;
    CHECK(uv_timer_start(&f->retry, on_retry, HEARTBEAT_MS, 0) == 0);
}

/* Plans to open the sockets again. libzmq reconnects only after some failures: after a message over
 * the size limit the subscription stays closed. So libzmq's reconnecting is off. */
static void retry(struct io_kv_feed *f)
{
    if (f->ended)
        return;
    f->ended = true;
    bool lasted = f->connected_ms > 0 && uv_now(f->loop) >= f->connected_ms + RETRY_MAX_MS;
    f->connected_ms = 0;
    f->retry_ms = lasted || f->retry_ms == 0 ? RETRY_MS : f->retry_ms * 2;
    f->retry_ms = f->retry_ms < RETRY_MAX_MS ? f->retry_ms : RETRY_MAX_MS;
    CHECK(uv_timer_start(&f->retry, on_retry, f->retry_ms, 0) == 0);
}

/* Handles an event of libzmq's monitor: two bytes of event and four of value in host order, then an
 * address. */
static void on_monitor(struct io_kv_feed *f, const struct slice *parts, unsigned count)
{
    uint16_t event = 0;
    if (count == 2 && parts[0].len == 6)
        memcpy(&event, parts[0].at, sizeof event);
    if ((event & ENDED) != 0) {
        retry(f);
        f->user->lost(f->user->context);
    }
    if (event != ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
        return;
    CHECK(f->ended || uv_timer_stop(&f->retry) == 0);
    f->connected_ms = uv_now(f->loop);
    f->stats.connects++;
    f->user->connected(f->user->context);
}

/* Receives a whole message. Returns false if there is none. */
static bool receive(struct socket *s)
{
    zmq_msg_t parts[PARTS_MAX], rest;
    struct slice slices[PARTS_MAX];
    unsigned count = 0;
    bool more = true, fits = true;
    while (more) {
        zmq_msg_t *part = count < PARTS_MAX ? &parts[count] : &rest;
        CHECK(zmq_msg_init(part) == 0);
        if (receive_part(s->zmq, part) < 0) {
            CHECK(zmq_msg_close(part) == 0);
            break;
        }
        more = zmq_msg_more(part) != 0;
        if (count < PARTS_MAX) {
            slices[count] = slice_of(zmq_msg_data(part), zmq_msg_size(part));
            count++;
        } else {
            fits = false;
            CHECK(zmq_msg_close(part) == 0);
        }
    }
    if (count > 0 && !more && fits)
        s->message(s->feed, slices, count);
    else if (count > 0)
        s->feed->stats.malformed++;
    for (unsigned i = 0; i < count; i++)
        CHECK(zmq_msg_close(&parts[i]) == 0);
    return count > 0;
}

/* --- the loop -------------------------------------------------------------------------------- */

static void on_again(uv_idle_t *idle);

/* Reads messages. Returns false if more messages are waiting. Meanwhile the user may close or
 * replace the socket. */
static bool read_all(struct io_kv_feed *f, struct socket **which)
{
    uint64_t before = f->stats.bytes;
    for (unsigned i = 0; i < IO_KV_AT_ONCE && f->stats.bytes - before < IO_KV_BYTES_AT_ONCE; i++) {
        if (f->closed || *which == NULL || !receive(*which))
            return true;
    }
    return false;
}

/* Reads all three sockets, because a call to a socket may consume the signal of another socket's
 * descriptor. */
static void read_sockets(struct io_kv_feed *f)
{
    bool all = read_all(f, &f->monitor);
    all &= read_all(f, &f->replay);
    all &= read_all(f, &f->subscription);
    if (f->closed)
        return;
    if (all)
        CHECK(uv_idle_stop(&f->again) == 0);
    else
        CHECK(uv_idle_start(&f->again, on_again) == 0);
}

static void on_again(uv_idle_t *idle)
{
    read_sockets(idle->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct socket *s = poll->data;
    (void)status, (void)events;
    bool has_turn = uv_is_active((const uv_handle_t *)&s->feed->again) != 0; /* then read_sockets()
                                                                              * runs anyway in this
                                                                              * turn */
    if (!s->feed->closed && !has_turn)
        read_sockets(s->feed);
}

static void gone(struct io_kv_feed *f)
{
    if (--f->open == 0)
        free(f);
}

static void on_socket_closed(uv_handle_t *handle)
{
    struct socket *s = handle->data;
    struct io_kv_feed *f = s->feed;
    CHECK(zmq_close(s->zmq) == 0);
    free(s);
    gone(f);
}

static void socket_close(struct socket **s)
{
    if (*s == NULL)
        return;
    uv_close((uv_handle_t *)&(*s)->poll, on_socket_closed);
    *s = NULL;
}

static int socket_open(struct io_kv_feed *f, int type,
                       void (*message)(struct io_kv_feed *, const struct slice *, unsigned),
                       struct socket **out)
{
    struct socket *s = calloc(1, sizeof *s);
    uv_os_sock_t descriptor;
    size_t size = sizeof descriptor;
    int64_t message_max = IO_KV_MESSAGE_MAX;
    if (s == NULL || (s->zmq = zmq_socket(f->context, type)) == NULL) {
        free(s);
        return ERR_NOMEM;
    }
    CHECK(set(s->zmq, ZMQ_LINGER, 0) == 0 && set(s->zmq, ZMQ_IPV6, 1) == 0 &&
          set(s->zmq, ZMQ_RCVHWM, IO_KV_QUEUED) == 0 && set(s->zmq, ZMQ_RECONNECT_IVL, -1) == 0 &&
          set(s->zmq, ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS) == 0 &&
          set_bytes(s->zmq, ZMQ_MAXMSGSIZE, &message_max, sizeof message_max) == 0);
    CHECK(get_bytes(s->zmq, ZMQ_FD, &descriptor, &size) == 0);
    if (uv_poll_init_socket(f->loop, &s->poll, descriptor) != 0) {
        CHECK(zmq_close(s->zmq) == 0);
        free(s);
        return ERR_NOMEM;
    }
    s->feed = f;
    s->message = message;
    s->poll.data = s;
    f->open++;
    *out = s;
    if (uv_poll_start(&s->poll, UV_READABLE, on_poll) != 0) {
        socket_close(out);
        return ERR_NOMEM;
    }
    return ERR_OK;
}

/* --- calls ----------------------------------------------------------------------------------- */

int io_kv_feed_replay(struct io_kv_feed *f, uint64_t from)
{
    unsigned char number[8];
    for (unsigned i = 0; i < sizeof number; i++)
        number[i] = (unsigned char)(from >> (56 - 8 * i));
    socket_close(&f->replay); /* results of the earlier replay are now useless */
    int err = socket_open(f, ZMQ_DEALER, on_replay, &f->replay);
    if (err != ERR_OK)
        return err;
    if (connect_to(f->replay->zmq, f->replay_endpoint) != 0 ||
        send_part(f->replay->zmq, "", 0, ZMQ_SNDMORE) < 0 ||
        send_part(f->replay->zmq, number, sizeof number, 0) < 0)
        socket_close(&f->replay);
    CHECK(uv_idle_start(&f->again, on_again) == 0);
    return f->replay != NULL ? ERR_OK : ERR_NOMEM;
}

static int subscribe(struct io_kv_feed *f)
{
    char inside[64];
    /* An address unique among all monitors, including those still closing. */
    (void)snprintf(inside, sizeof inside, "inproc://kv-feed-%p-%" PRIx64, (void *)f, uv_hrtime());
    int err = socket_open(f, ZMQ_SUB, on_live, &f->subscription);
    if (err == ERR_OK)
        err = socket_open(f, ZMQ_PAIR, on_monitor, &f->monitor);
    if (err != ERR_OK)
        return err;
    if (monitor_at(f->subscription->zmq, inside, ENDED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED) != 0 ||
        connect_to(f->monitor->zmq, inside) != 0 ||
        set_bytes(f->subscription->zmq, ZMQ_SUBSCRIBE, f->topic.at, f->topic.len) != 0)
        return ERR_NOMEM;
    return connect_to(f->subscription->zmq, f->endpoint) == 0 ? ERR_OK : ERR_SYNTAX;
}

static void on_retry(uv_timer_t *timer)
{
    struct io_kv_feed *f = timer->data;
    socket_close(&f->subscription);
    socket_close(&f->monitor);
    await_answer(f);
    if (subscribe(f) != ERR_OK)
        retry(f);
    CHECK(uv_idle_start(&f->again, on_again) == 0);
}

int io_kv_feed_open(struct io_kv_feed **out, uv_loop_t *loop, void *zmq, struct slice endpoint,
                    struct slice replay, struct slice topic, const struct io_kv_feed_user *user)
{
    struct io_kv_feed *f = calloc(1, sizeof *f);
    if (f == NULL)
        return ERR_NOMEM;
    f->loop = loop;
    f->context = zmq;
    f->user = user;
    f->again.data = f->retry.data = f;
    CHECK(uv_idle_init(loop, &f->again) == 0 && uv_timer_init(loop, &f->retry) == 0);
    f->open = 2;
    int err = ERR_SYNTAX;
    if (slice_to_cstr(endpoint, f->endpoint, sizeof f->endpoint) &&
        slice_to_cstr(replay, f->replay_endpoint, sizeof f->replay_endpoint) &&
        topic.len <= sizeof f->topic_bytes) {
        if (topic.len > 0)
            memcpy(f->topic_bytes, topic.at, topic.len);
        f->topic = slice_of(f->topic_bytes, topic.len);
        err = endpoint.len > 0 ? subscribe(f) : ERR_OK;
    }
    if (err != ERR_OK) {
        io_kv_feed_close(f);
        return err;
    }
    if (endpoint.len > 0)
        await_answer(f);
    CHECK(uv_idle_start(&f->again, on_again) == 0);
    *out = f;
    return ERR_OK;
}

static void on_feed_closed(uv_handle_t *handle)
{
    gone(handle->data);
}

void io_kv_feed_close(struct io_kv_feed *f)
{
    f->closed = true;
    socket_close(&f->replay);
    socket_close(&f->monitor);
    socket_close(&f->subscription);
    uv_close((uv_handle_t *)&f->again, on_feed_closed);
    uv_close((uv_handle_t *)&f->retry, on_feed_closed);
}

struct io_kv_feed_stats io_kv_feed_stats(const struct io_kv_feed *f)
{
    return f->stats;
}

int io_kv_open(void **zmq)
{
    *zmq = zmq_ctx_new();
    return *zmq != NULL ? ERR_OK : ERR_NOMEM;
}

void io_kv_close(void *zmq)
{
    int rc;
    AGAIN(rc, zmq_ctx_term(zmq));
    CHECK(rc == 0);
}
