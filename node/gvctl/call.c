#include "node/gvctl/call.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "http/head.h"
#include "node/gvctl/plain.h"
#include "node/settings/options.h"

double call_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void call_pause(double seconds)
{
    time_t whole = (time_t)seconds;
    struct timespec t = {.tv_sec = whole, .tv_nsec = (long)((seconds - (double)whole) * 1e9)};
    (void)nanosleep(&t, NULL);
}

/* Limits the next blocking call to the time until `end_s`. Returns false if `end_s` is past. */
static bool set_limit(int fd, double end_s)
{
    double left = end_s - call_seconds();
    if (left <= 0)
        return false;
    long long us = (long long)(left * 1e6) + 1; /* 0 would mean forever */
    struct timeval limit = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0;
}

static void complain(const struct call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void complain(const struct call *call, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!call->quiet)
        plain_vprintf(stderr, format, arguments);
    va_end(arguments);
}

/* A connection; without TLS if `tls` is NULL. */
struct line {
    int fd;
    struct secure *tls;
};

static bool read_address(const char *admin, struct node_address *out)
{
    struct slice text = slice_of_cstr(admin);
    bool tls = slice_starts_with(text, SLICE("https://"));
    if (tls || slice_starts_with(text, SLICE("http://")))
        text = slice_skip(text, tls ? strlen("https://") : strlen("http://"));
    if (slice_ends_with(text, SLICE("/")))
        text.len--;
    bool good = node_address_parse(text, out) == 0;
    out->tls = tls;
    return good;
}

bool call_address_good(const char *admin)
{
    struct node_address address;
    bool good = read_address(admin, &address);
    if (!good)
        plain_printf(stderr, "gvctl: --admin \"%s\" is not http[s]://HOST:PORT\n", admin);
    return good;
}

/* A look-up in a separate thread, which ends by returning. The helper threads of glibc's
 * asynchronous look-ups end with pthread_exit after an idle second: this loads libgcc_s, and aborts
 * the process in a container without that library. */
struct names {
    sem_t done;
    int err;
    struct addrinfo *found;
    char host[NODE_HOST_BYTES], port[8];
};

static void *on_thread(void *argument)
{
    struct names *n = argument;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    n->err = getaddrinfo(n->host, n->port, &hints, &n->found);
    (void)sem_post(&n->done);
    return NULL;
}

static int thread_start(struct names *n)
{
    pthread_t thread;
    pthread_attr_t attributes;
    if (sem_init(&n->done, 0, 0) != 0 || pthread_attr_init(&attributes) != 0)
        return ERR_NOMEM;
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int err = pthread_create(&thread, &attributes, on_thread, n);
    (void)pthread_attr_destroy(&attributes);
    return err == 0 ? ERR_OK : ERR_NOMEM;
}

/* Looks the host up. 0: free `out` with freeaddrinfo(). ERR_NOT_FOUND: `why` is the reason.
 * ERR_TIMEOUT: no answer until `end_s`; the look-up and the memory are abandoned, because a look-up
 * cannot be stopped. */
static int look_up(const struct node_address *address, double end_s, struct addrinfo **out,
                   const char **why)
{
    struct names *n = calloc(1, sizeof *n);
    if (n == NULL)
        return ERR_NOMEM;
    (void)snprintf(n->port, sizeof n->port, "%u", address->port);
    (void)slice_to_cstr(slice_of_cstr(address->host), n->host, sizeof n->host);
    int err = thread_start(n);
    if (err != ERR_OK) {
        free(n);
        return err;
    }
    struct timespec end = {.tv_sec = (time_t)end_s,
                           .tv_nsec = (long)((end_s - (double)(time_t)end_s) * 1e9)};
    while (sem_clockwait(&n->done, CLOCK_MONOTONIC, &end) != 0) {
        if (errno != EINTR)
            return ERR_TIMEOUT;
    }
    err = n->err;
    *out = n->found;
    *why = gai_strerror(err);
    (void)sem_destroy(&n->done);
    free(n);
    return err == 0 ? ERR_OK : ERR_NOT_FOUND;
}

/* Returns a socket, CALL_FAILED or CALL_REFUSED. */
static int open_connection(const char *admin, const struct node_address *to,
                           const struct call *call, double end_s)
{
    struct addrinfo *found = NULL;
    const char *why = NULL;
    int err = look_up(to, end_s, &found, &why);
    if (err == ERR_TIMEOUT)
        complain(call,
                 "gvctl: no answer to the DNS lookup of %s within %.0f s\n       --timeout SECONDS "
                 "waits longer; --admin also takes an IP address.\n",
                 to->host, call->timeout_s);
    else if (err != 0)
        complain(call, "gvctl: %s: %s\n", to->host, why != NULL ? why : err_text(err));
    if (err != 0)
        return CALL_FAILED;
    int fd = -1;
    for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
        if (fd < 0)
            continue;
        bool in_time = set_limit(fd, end_s);
        if (in_time && connect(fd, a->ai_addr, a->ai_addrlen) == 0)
            break;
        err = !in_time || errno == EINPROGRESS ? ETIMEDOUT : errno;
        (void)close(fd);
        fd = -1;
        errno = err;
    }
    freeaddrinfo(found);
    if (fd < 0 && call->awaited && errno == ECONNREFUSED)
        return CALL_REFUSED;
    if (fd < 0)
        complain(
            call,
            "gvctl: no admin port at %s: %s\n"
            "       Is grapevine running? Set --admin or $GRAPEVINE_ADMIN to its admin-listen\n"
            "       address (in its log: listening, port_of=admin).\n",
            admin, strerror(errno));
    return fd < 0 ? CALL_FAILED : fd;
}

/* Begins TLS, if the address has https://. Returns false after printing an error. */
static bool secure(struct line *l, const char *admin, const struct node_address *address,
                   const struct call *call, double end_s)
{
    char message[SECURE_MESSAGE];
    if (!address->tls)
        return true;
    int err = set_limit(l->fd, end_s)
                  ? secure_open(&l->tls, l->fd, address->host, &call->trust, message)
                  : ERR_TIMEOUT;
    if (err == ERR_UNSUPPORTED)
        complain(
            call,
            "gvctl: %s does not speak TLS\n       It answers without TLS: use --admin http%s\n",
            admin, admin + strlen("https"));
    else if (err != 0)
        complain(call, "gvctl: the TLS handshake with %s failed: %s\n", admin,
                 err == ERR_DENIED ? message : err_text(err));
    return err == 0;
}

static int write_all(const struct line *l, struct slice bytes, double end_s)
{
    while (bytes.len > 0) {
        if (!set_limit(l->fd, end_s))
            return ERR_TIMEOUT;
        ssize_t n = l->tls != NULL ? secure_write(l->tls, bytes.at, bytes.len)
                                   : send(l->fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 && errno == EAGAIN ? ERR_TIMEOUT : ERR_CLOSED;
        bytes = slice_skip(bytes, (size_t)n);
    }
    return 0;
}

/* Reads to the end of the connection (the request asked for the close). */
static int read_all(const struct line *l, struct buf *in, double end_s)
{
    for (;;) {
        int err = buf_reserve(in, 65536);
        if (err != 0)
            return err;
        if (!set_limit(l->fd, end_s))
            return ERR_TIMEOUT;
        ssize_t n = l->tls != NULL ? secure_read(l->tls, in->at + in->len, in->cap - in->len)
                                   : recv(l->fd, in->at + in->len, in->cap - in->len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? ERR_TIMEOUT : ERR_CLOSED;
        if (n == 0)
            return 0;
        in->len += (size_t)n;
    }
}

static int send_call(const struct line *l, const struct call *call, double end_s)
{
    struct buf head = {0};
    /* Not the dialled name: because of web pages, the admin port only answers to the router's
     * names, and localhost is no web page's name. */
    int err = buf_printf(&head,
                         "%s %s HTTP/1.1\r\n"
                         "Host: localhost\r\n"
                         "Connection: close\r\n"
                         "Content-Length: %zu\r\n",
                         call->method, call->target, call->body.len);
    if (err == 0 && call->token != NULL)
        err = buf_printf(&head, "Authorization: Bearer %s\r\n", call->token);
    if (err == 0 && call->session != NULL)
        err = buf_printf(&head, "X-Grapevine-Session: %s\r\n", call->session);
    if (err == 0)
        err = buf_append_cstr(&head, "\r\n");
    if (err == 0)
        err = write_all(l, buf_slice(&head), end_s);
    if (err == 0)
        err = write_all(l, call->body, end_s);
    buf_free(&head);
    return err;
}

/* Returns true, after a message, if the peer is a router's client port or not a router. A router
 * answers unknown paths in JSON. */
static bool is_other_port(const char *admin, bool tls, const struct call *call,
                          const struct http_head *head, struct slice body)
{
    struct slice server = http_head_find(head, SLICE("server"));
    if (http_head_find(head, SLICE("x-grapevine-reason")).at != NULL ||
        http_head_find(head, SLICE("x-grapevine-replica")).at != NULL)
        complain(
            call,
            "gvctl: %s is the client port of a router\n"
            "       The admin port is 9090 by default: --admin http%s://HOST:9090 (its setting "
            "is admin-listen).\n",
            admin, tls ? "s" : "");
    else if (server.at != NULL && head->status != 200)
        complain(call,
                 "gvctl: %s is not a router: it is \"%.*s\" and answers %u\n       Set --admin to "
                 "a router's admin-listen address.\n",
                 admin, server.len > 60 ? 60 : (int)server.len, server.at, head->status);
    else if (head->status == 404 && !slice_starts_with(body, SLICE("{")))
        complain(call,
                 "gvctl: %s is not a router: it answers 404\n       Set --admin to a router's "
                 "admin-listen address.\n",
                 admin);
    else
        return false;
    return true;
}

int call_admin(const char *admin, const struct call *call, struct buf *out)
{
    double end_s = call_seconds() + call->timeout_s;
    struct node_address address;
    if (!read_address(admin, &address))
        return CALL_FAILED; /* the address came from another router */
    struct line l = {.fd = open_connection(admin, &address, call, end_s)};
    if (l.fd < 0)
        return l.fd;
    if (!secure(&l, admin, &address, call, end_s)) {
        (void)close(l.fd);
        return CALL_FAILED;
    }
    struct buf in = {0};
    int err = send_call(&l, call, end_s);
    int read_err = read_all(&l, &in, end_s); /* an early refusal may arrive despite a failed send */
    secure_free(l.tls);
    (void)close(l.fd);
    if (read_err == ERR_TIMEOUT || (err == ERR_TIMEOUT && in.len == 0)) {
        buf_free(&in);
        complain(call,
                 "gvctl: %s did not answer within %.0f s\n"
                 "       --timeout SECONDS waits longer.\n",
                 admin, call->timeout_s);
        return CALL_FAILED;
    }
    static struct http_head head;
    if (in.len > 0)
        err = http_response_parse(&head, in.at, in.len, false, &http_limits_default);
    else if (err == 0)
        err = read_err != 0 ? read_err : ERR_CLOSED;
    bool cut = err == ERR_AGAIN || (err == 0 && in.len - head.bytes < head.content_length);
    if (err == 0 && !cut)
        err = buf_append_slice(out, slice_skip(buf_slice(&in), head.bytes));
    bool other = err == 0 && !cut &&
                 is_other_port(admin, address.tls, call, &head, /* borrows from `in` */
                               slice_skip(buf_slice(&in), head.bytes));
    buf_free(&in);
    if (err != 0 || cut) {
        complain(call,
                 "gvctl: the answer from %s %s%s\n       Is that grapevine's admin port, and is it "
                 "running? Set --admin to its admin-listen address.\n",
                 admin, cut ? "was cut off" : "cannot be read: ", cut ? "" : err_text(err));
        return CALL_FAILED;
    }
    return other ? CALL_FAILED : (int)head.status;
}
