#include "node/io/dns.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"

static const char resolv_conf[] = "/etc/resolv.conf";

/* A socket of c-ares. Frees itself when its handle is closed. */
struct watched {
    uv_poll_t poll; /* first */
    struct dns *dns;
    struct watched *next; /* of dns->watched */
    ares_socket_t fd;
};

struct question {
    struct dns *dns;
    dns_addresses_done addresses;
    dns_services_done services;
    void *context;
};

struct dns {
    uv_loop_t *loop;
    uv_timer_t timer;
    ares_channel channel;
    struct buf servers; /* as c-ares writes them, with its NUL; empty: those of the system */
    struct watched *watched;
    unsigned open; /* questions */
    bool stopped;
    struct stat conf; /* of resolv.conf, as it was read */
};

/* --- sockets and time ------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

/* When c-ares wants to be asked again, if no socket speaks before. */
static void plan(struct dns *dns)
{
    struct timeval wait;
    if (dns->stopped)
        return;
    if (ares_timeout(dns->channel, NULL, &wait) == NULL) {
        (void)uv_timer_stop(&dns->timer);
        return;
    }
    uint64_t ms = (uint64_t)wait.tv_sec * 1000 + (uint64_t)wait.tv_usec / 1000 + 1;
    (void)uv_timer_start(&dns->timer, on_timer, ms, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct dns *dns = timer->data;
    ares_process_fd(dns->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    plan(dns);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watched *w = CONTAINER_OF(poll, struct watched, poll);
    struct dns *dns = w->dns;
    ares_socket_t fd = w->fd; /* it may be closed, and `w` with it, by the first of these */
    bool readable = status < 0 || (events & UV_READABLE) != 0;
    bool writable = status < 0 || (events & UV_WRITABLE) != 0;
    ares_process_fd(dns->channel, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
    plan(dns);
}

static void on_poll_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF((uv_poll_t *)handle, struct watched, poll));
}

static void watch_end(struct watched **link)
{
    struct watched *w = *link;
    *link = w->next;
    uv_close((uv_handle_t *)&w->poll, on_poll_closed);
}

/* c-ares opened a socket, wants other things of it, or (neither) is about to close it. One that
 * cannot be watched is left to the timer. */
static void on_socket(void *context, ares_socket_t fd, int readable, int writable)
{
    struct dns *dns = context;
    struct watched **link = &dns->watched;
    while (*link != NULL && (*link)->fd != fd)
        link = &(*link)->next;
    if (!readable && !writable) {
        if (*link != NULL)
            watch_end(link);
        return;
    }
    if (*link == NULL) {
        struct watched *w = calloc(1, sizeof *w);
        if (w == NULL || uv_poll_init(dns->loop, &w->poll, fd) != 0) {
            free(w);
            return;
        }
        w->dns = dns;
        w->fd = fd;
        *link = w;
    }
    (void)uv_poll_start(&(*link)->poll, (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0),
                        on_poll);
}

/* --- the channel ----------------------------------------------------------------------------- */

static int channel_open(struct dns *dns)
{
    struct ares_options options = {
        .flags = 0,
        .timeout = DNS_TIMEOUT_MS,
        .tries = DNS_TRIES,
        .sock_state_cb = on_socket,
        .sock_state_cb_data = dns,
    };
    if (stat(resolv_conf, &dns->conf) != 0)
        dns->conf = (struct stat){0};
    ares_channel channel;
    if (ares_init_options(&channel, &options,
                          ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
                              ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
        return ERR_NOMEM;
    if (dns->servers.len > 0 &&
        ares_set_servers_ports_csv(channel, dns->servers.at) != ARES_SUCCESS) {
        ares_destroy(channel);
        return ERR_SYNTAX;
    }
    dns->channel = channel;
    return ERR_OK;
}

/* The old channel stays where a new one cannot be had. */
static void channel_renew(struct dns *dns)
{
    struct stat now;
    if (dns->open > 0 || dns->servers.len > 0 || stat(resolv_conf, &now) != 0 ||
        (now.st_ino == dns->conf.st_ino && now.st_size == dns->conf.st_size &&
         now.st_mtim.tv_sec == dns->conf.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == dns->conf.st_mtim.tv_nsec))
        return;
    ares_channel old = dns->channel;
    if (channel_open(dns) == ERR_OK)
        ares_destroy(old);
}

static int servers_write(struct buf *out, const struct node_strings *servers)
{
    int err = ERR_OK;
    for (unsigned i = 0; i < servers->count && err == ERR_OK; i++) {
        struct node_address at;
        char text[NODE_REPLICA_NAME_BYTES];
        CHECK(node_address_parse_default(slice_of_cstr(servers->at[i]), NODE_DNS_PORT, &at) == 0);
        node_replica_name_of(&at, text);
        err = buf_printf(out, "%s%s", i > 0 ? "," : "", text);
    }
    return err == ERR_OK && servers->count > 0 ? buf_append_char(out, '\0') : err;
}

int dns_open(struct dns **out, uv_loop_t *loop, const struct node_strings *servers)
{
    struct dns *dns = calloc(1, sizeof *dns);
    if (dns == NULL)
        return ERR_NOMEM;
    dns->loop = loop;
    int err = servers_write(&dns->servers, servers);
    if (err == ERR_OK)
        err = channel_open(dns);
    if (err != ERR_OK) {
        buf_free(&dns->servers);
        free(dns);
        return err;
    }
    CHECK(uv_timer_init(loop, &dns->timer) == 0);
    dns->timer.data = dns;
    *out = dns;
    return ERR_OK;
}

void dns_stop(struct dns *dns)
{
    if (dns->stopped)
        return;
    dns->stopped = true;
    ares_destroy(dns->channel); /* ends all questions, closes all sockets */
    while (dns->watched != NULL)
        watch_end(&dns->watched);
    uv_close((uv_handle_t *)&dns->timer, NULL);
}

void dns_free(struct dns *dns)
{
    if (dns == NULL)
        return;
    CHECK(dns->open == 0);
    buf_free(&dns->servers);
    free(dns);
}

/* --- questions ------------------------------------------------------------------------------- */

static struct question *question_begin(struct dns *dns)
{
    channel_renew(dns);
    struct question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->dns = dns;
    dns->open++;
    return q;
}

/* The asker has heard. A question is open until then: what the asker asks from within must not
 * renew the channel that is calling. */
static void question_end(struct question *q)
{
    q->dns->open--;
    free(q);
}

static enum dns_status status_of(int status)
{
    return status == ARES_SUCCESS                               ? DNS_FOUND
           : status == ARES_ENOTFOUND || status == ARES_ENODATA ? DNS_NONE
                                                                : DNS_FAILED;
}

/* For people. c-ares says ARES_ECONNREFUSED of a server that answers with an error, too. */
static const char *text_of(int status, const char *record)
{
    switch (status) {
    case ARES_ENOTFOUND:
        return "the name does not exist";
    case ARES_ENODATA:
        return record;
    case ARES_ECONNREFUSED:
        return "the DNS server answers with an error (SERVFAIL, REFUSED) or not at all";
    default:
        return ares_strerror(status);
    }
}

/* The addresses in an array; NULL: no memory, or there are none. */
static struct dns_address *addresses_of(const struct ares_addrinfo *found, unsigned *count)
{
    unsigned n = 0;
    *count = 0;
    for (const struct ares_addrinfo_node *a = found->nodes; a != NULL; a = a->ai_next)
        n++;
    struct dns_address *list = n > 0 ? calloc(n, sizeof *list) : NULL;
    if (list == NULL)
        return NULL;
    for (const struct ares_addrinfo_node *a = found->nodes; a != NULL; a = a->ai_next) {
        if (uv_ip_name(a->ai_addr, list[*count].text, DNS_TEXT_BYTES) == 0)
            ++*count;
    }
    return list;
}

static void on_addresses(void *context, int status, int timeouts, struct ares_addrinfo *found)
{
    (void)timeouts;
    struct question *q = context;
    if (!q->dns->stopped) {
        unsigned count = 0;
        struct dns_address *list = status == ARES_SUCCESS ? addresses_of(found, &count) : NULL;
        enum dns_status result = status_of(status);
        if (result == DNS_FOUND && list == NULL)
            result = found->nodes == NULL ? DNS_NONE : DNS_FAILED;
        q->addresses(q->context, result, text_of(status, "the name has no addresses"),
                     result == DNS_FOUND ? found->name : NULL, list, count);
        free(list);
    }
    if (found != NULL)
        ares_freeaddrinfo(found);
    question_end(q);
}

void dns_addresses(struct dns *dns, const char *name, bool v6, dns_addresses_done done,
                   void *context)
{
    /* c-ares 1.18 leaks with each of these where /etc/hosts has IPv4 alone. */
    if (v6 && slice_equal_nocase(slice_of_cstr(name), SLICE("localhost"))) {
        done(context, DNS_NONE, "", NULL, NULL, 0);
        return;
    }
    struct question *q = question_begin(dns);
    if (q == NULL) {
        done(context, DNS_FAILED, err_text(ERR_NOMEM), NULL, NULL, 0);
        return;
    }
    q->addresses = done;
    q->context = context;
    struct ares_addrinfo_hints hints = {
        .ai_family = v6 ? AF_INET6 : AF_INET,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = ARES_AI_NOSORT, /* sorting would open a socket for each */
    };
    ares_getaddrinfo(dns->channel, name, NULL, &hints, on_addresses, q);
    plan(dns);
}

static struct dns_service *services_of(const struct ares_srv_reply *found, unsigned *count)
{
    unsigned n = 0;
    *count = 0;
    for (const struct ares_srv_reply *s = found; s != NULL; s = s->next)
        n++;
    struct dns_service *list = n > 0 ? calloc(n, sizeof *list) : NULL;
    for (const struct ares_srv_reply *s = found; list != NULL && s != NULL; s = s->next) {
        struct slice host = slice_of_cstr(s->host);
        if (host.len > 0 && !slice_equal(host, SLICE(".")) && s->port != 0 &&
            slice_to_cstr(host, list[*count].host, NODE_HOST_BYTES))
            list[(*count)++].port = s->port;
    }
    return list;
}

static void on_services(void *context, int status, int timeouts, unsigned char *answer, int len)
{
    (void)timeouts;
    struct question *q = context;
    if (!q->dns->stopped) {
        struct ares_srv_reply *found = NULL;
        if (status == ARES_SUCCESS)
            status = ares_parse_srv_reply(answer, len, &found);
        unsigned count = 0;
        struct dns_service *list = status == ARES_SUCCESS ? services_of(found, &count) : NULL;
        enum dns_status result = status_of(status);
        if (result == DNS_FOUND && list == NULL)
            result = DNS_FAILED;
        q->services(q->context, result, text_of(status, "the name has no SRV records"), list,
                    count);
        free(list);
        if (found != NULL)
            ares_free_data(found);
    }
    question_end(q);
}

void dns_services(struct dns *dns, const char *name, dns_services_done done, void *context)
{
    struct question *q = question_begin(dns);
    if (q == NULL) {
        done(context, DNS_FAILED, err_text(ERR_NOMEM), NULL, 0);
        return;
    }
    q->services = done;
    q->context = context;
    ares_search(dns->channel, name, ns_c_in, ns_t_srv, on_services, q);
    plan(dns);
}
