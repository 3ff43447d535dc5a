#include "node/io/listener.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/check.h"
#include "node/io/shell.h"

enum {
    BACKLOG = 4096,
    ACCEPTS_MAX = 64, /* connections accepted in a turn of the loop; other events must have time
                       * too */
    PAUSE_MS = 100,
    PAUSE_MAX_MS = 1000,
    PAUSE_LOG_MS = 60000,
    HANDSHAKES_MS = 300, /* time for present handshakes to end, once new handshakes are refused */
};

static void on_connections(uv_poll_t *poll, int status, int events);

/* --- accepting ------------------------------------------------------------------------------ */

static void resume(struct listener *l)
{
    l->resume_ms = 0;
    CHECK(uv_poll_start(&l->poll, UV_READABLE, on_connections) == 0);
}

/* Names of the ports in logs, and their settings. */
static const struct {
    const char *name, *setting;
} ports[PROXY_PORTS] = {
    [PROXY_PORT_CLIENT] = {"clients", "listen"},
    [PROXY_PORT_ADMIN] = {"admin", "admin-listen"},
    [PROXY_PORT_PROBE] = {"probes", "probe-listen"},
    [PROXY_PORT_EVENTS] = {"kv_events", "kv-events-listen"},
};

static void pause_accepting(struct listener *l, const char *error)
{
    uint64_t now = shell_now_ms(l->shell);
    struct proxy_stats *stats = proxy_stats(l->shell->proxy);
    stats->accept_failures++;
    stats->accept_pauses++;
    l->pause_ms = l->pause_ms == 0 ? PAUSE_MS : l->pause_ms * 2;
    if (l->pause_ms > PAUSE_MAX_MS)
        l->pause_ms = PAUSE_MAX_MS;
    l->resume_ms = now + l->pause_ms;
    (void)uv_poll_stop(&l->poll);
    if (l->logged_ms != 0 && now - l->logged_ms < PAUSE_LOG_MS)
        return;
    l->logged_ms = now;
    log_event(l->shell->log, LOG_ERROR, "accept_paused", LOG_CSTR("port_of", ports[l->port].name),
              LOG_CSTR("error", error), LOG_UINT("connections", stats->connections_open));
}

/* Returns the text of an error of accept() after which to pause; NULL: the next accept() may
 * succeed. */
static const char *lasting(int error)
{
    switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case EBADF:
    case EINVAL:
        return uv_strerror(uv_translate_sys_error(error));
    default:
        return NULL; /* an error of only this connection */
    }
}

/* Accepts a connection. Returns false if no more can be accepted now. */
static bool accept_one(struct listener *l)
{
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    int fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        const char *error = lasting(errno);
        bool none = errno == EAGAIN || errno == EWOULDBLOCK;
        if (error != NULL)
            pause_accepting(l, error);
        return !none && error == NULL;
    }
    /* The kernel assigns the lowest free number: from here on files are for the admin port, for
     * probes and for the other routers. */
    bool gives_way = l->port == PROXY_PORT_CLIENT || l->port == PROXY_PORT_EVENTS;
    if (gives_way && (uint64_t)fd >= l->shell->files->client_max) {
        (void)close(fd);
        pause_accepting(l, "the remaining open files are kept for the admin port");
        return false;
    }
    if (tcp_accepted(l->shell, fd, l->port, (const struct sockaddr *)&from) != 0) {
        pause_accepting(l, err_text(ERR_NOMEM));
        return false;
    }
    l->pause_ms = 0;
    return true;
}

static void accept_some(uv_check_t *check)
{
    struct listener *l = CONTAINER_OF(check, struct listener, check);
    (void)uv_check_stop(check);
    for (unsigned i = 0; l->fd >= 0 && i < ACCEPTS_MAX && accept_one(l);)
        i++;
}

/* Accepts connections after all reads of this turn of the loop. After a standstill, a connection
 * with an unread request would otherwise seem idle, and be closed to make room. */
static void on_connections(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct listener *l = CONTAINER_OF(poll, struct listener, poll);
    if (status < 0)
        pause_accepting(l, uv_strerror(status));
    else
        CHECK(uv_check_start(&l->check, accept_some) == 0);
}

void listener_tick(struct listener *l, uint64_t now_ms)
{
    bool due = l->resume_ms != 0 && now_ms >= l->resume_ms;
    if (l->fd >= 0 && due && !BUG(ACCEPT_STOPPED))
        resume(l);
}

/* Makes the kernel drop connections' first packets to this socket: a client sends the packet again
 * after a second, and then reaches another process's socket. */
static void refuse_handshakes(int fd)
{
    enum { FLAGS_AT = 13, SYN = 0x02, ACK = 0x10 }; /* of a TCP header, RFC 9293, 3.1 */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

bool listener_retired(struct listener *l, uint64_t now_ms)
{
    if (l->fd < 0 || !l->shared)
        return true;
    if (l->retired_ms == 0) {
        refuse_handshakes(l->fd);
        l->retired_ms = now_ms + HANDSHAKES_MS;
    }
    return now_ms >= l->retired_ms;
}

void listener_accept_waiting(struct listener *l)
{
    while (l->fd >= 0 && accept_one(l))
        continue;
}

void listener_close(struct listener *l)
{
    if (l->fd < 0 || l->shell == NULL)
        return;
    uv_close((uv_handle_t *)&l->poll, NULL);
    uv_close((uv_handle_t *)&l->check, NULL);
    (void)close(l->fd);
    l->fd = -1;
}

/* --- opening -------------------------------------------------------------------------------- */

/* Returns a listening descriptor, or UV_E*. Binds like libuv: IPv6 on all addresses accepts IPv4
 * too. `shared`: other processes of this user may listen there too, and the kernel distributes the
 * connections. */
static int open_socket(const struct addrinfo *at, bool shared)
{
    int on = 1, off = 0;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0;
    if (good && at->ai_family == AF_INET6)
        good = setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0;
    if (good && shared)
        good = setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0;
    good = good && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    if (good)
        return fd;
    int err = uv_translate_sys_error(errno);
    if (fd >= 0)
        (void)close(fd);
    return err;
}

/* Opens the port at l->bound. Returns 0 or UV_E*. */
static int open_at(struct listener *l)
{
    char number[8];
    (void)snprintf(number, sizeof number, "%u", l->bound.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    uv_getaddrinfo_t request;
    int err = uv_getaddrinfo(l->shell->loop, &request, NULL, l->bound.host, number, &hints);
    if (err != 0)
        return err;
    l->shared = l->port == PROXY_PORT_CLIENT && l->shell->options->reuse_port;
    int fd = open_socket(request.addrinfo, l->shared);
    uv_freeaddrinfo(request.addrinfo);
    if (fd < 0)
        return fd;
    err = uv_poll_init_socket(l->shell->loop, &l->poll, fd);
    if (err != 0) {
        (void)close(fd);
        return err;
    }
    CHECK(uv_check_init(l->shell->loop, &l->check) == 0);
    l->fd = fd;
    tcp_watch_clients(fd, l->shell->options->client_write_timeout_ms);
    resume(l);
    return 0;
}

void listener_renew(struct listener *l)
{
    if (l->shell != NULL && l->fd >= 0)
        tcp_watch_clients(l->fd, l->shell->options->client_write_timeout_ms);
}

int listener_open(struct listener *l, struct shell *shell, enum proxy_port port,
                  const struct node_address *address)
{
    *l = (struct listener){.shell = shell, .port = port, .fd = -1, .bound = *address};
    int err = open_at(l);
    if (err != 0) {
        log_event(shell->log, LOG_ERROR, "listen_failed", LOG_CSTR("setting", ports[port].setting),
                  LOG_CSTR("host", address->host), LOG_UINT("port", address->port),
                  LOG_CSTR("error", uv_strerror(err)));
        return ERR_UNREACHABLE;
    }
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } name = {.v6 = {.sin6_port = 0}};
    socklen_t len = sizeof name;
    if (getsockname(l->fd, &name.any, &len) == 0)
        l->bound.port =
            ntohs(name.any.sa_family == AF_INET6 ? name.v6.sin6_port : name.v4.sin_port);
    log_event(shell->log, LOG_INFO, "listening", LOG_CSTR("port_of", ports[port].name),
              LOG_CSTR("host", l->bound.host), LOG_UINT("port", l->bound.port));
    return 0;
}
