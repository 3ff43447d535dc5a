#include "node/io/dns.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"

static const char resolv_conf[] = "/etc/resolv.conf";

/* A socket of c-ares. Freed when the handle is closed. */
struct watched {
    uv_poll_t poll; /* first */
    struct channel *channel;
    struct watched *next; /* next in channel->watched */
    ares_socket_t fd;
};

/* An instance of c-ares, with the servers of a version of resolv.conf. An outdated channel is
 * closed after the last question, and freed when `timer` is closed. */
struct channel {
    struct dns *dns;
    ares_channel ares;
    uv_timer_t timer;
    struct watched *watched;
    unsigned open; /* number of questions under way */
    struct channel *next;
};

struct dns_question {
    struct dns *dns;
    struct channel *channel;      /* NULL: answered, or answered by the hosts file */
    dns_addresses_done addresses; /* this or `services` is set; both NULL: abandoned */
    dns_services_done services;
    void *context;
    bool v6;
    /* The answer. */
    struct dns_question *next; /* next in dns->answered */
    enum dns_status status;
    const char *why;
    char *full;  /* owned */
    void *found; /* owned, `count` elements */
    unsigned count;
};

struct dns {
    uv_loop_t *loop;
    ares_channel hosts;       /* reads only the hosts file */
    struct channel *channels; /* the latest first */
    struct dns_question *answered, **answered_end;
    uv_timer_t due;     /* calls `done` of the answered questions */
    struct buf servers; /* in c-ares's format, with the NUL; empty: the system's */
    bool stopped;
    struct stat conf; /* state of resolv.conf at the last reading */
};

/* --- sockets and time ------------------------------------------------------------------------ */

static void on_timer(uv_timer_t *timer);

/* Sets the timer to c-ares's next timeout. */
static void plan(struct channel *c)
{
    struct timeval wait;
    if (ares_timeout(c->ares, NULL, &wait) == NULL) {
        (void)uv_timer_stop(&c->timer);
        return;
    }
    uint64_t ms = (uint64_t)wait.tv_sec * 1000 + (uint64_t)wait.tv_usec / 1000 + 1;
    (void)uv_timer_start(&c->timer, on_timer, ms, 0);
}

static void process(struct channel *c, ares_socket_t readable, ares_socket_t writable)
{
    ares_process_fd(c->ares, readable, writable);
    plan(c);
}

static void on_timer(uv_timer_t *timer)
{
    process(timer->data, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watched *w = CONTAINER_OF(poll, struct watched, poll);
    ares_socket_t fd = w->fd; /* the first call may close both the socket and `w` */
    bool readable = status < 0 || (events & UV_READABLE) != 0;
    bool writable = status < 0 || (events & UV_WRITABLE) != 0;
    process(w->channel, readable ? fd : ARES_SOCKET_BAD, writable ? fd : ARES_SOCKET_BAD);
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

/* Called when c-ares opened a socket, waits for other events, or is about to close the socket
 * (neither readable nor writable). If libuv cannot watch a socket, only c-ares's timeouts go on. */
static void on_socket(void *context, ares_socket_t fd, int readable, int writable)
{
    struct channel *c = context;
    struct watched **link = &c->watched;
    while (*link != NULL && (*link)->fd != fd)
        link = &(*link)->next;
    if (!readable && !writable) {
        if (*link != NULL)
            watch_end(link);
        return;
    }
    if (*link == NULL) {
        struct watched *w = calloc(1, sizeof *w);
        if (w == NULL || uv_poll_init(c->dns->loop, &w->poll, fd) != 0) {
            free(w);
            return;
        }
        w->channel = c;
        w->fd = fd;
        *link = w;
    }
    (void)uv_poll_start(&(*link)->poll, (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0),
                        on_poll);
}

/* --- channels -------------------------------------------------------------------------------- */

static int ares_open(struct channel *c)
{
    struct ares_options options = {
        .flags = 0,
        .timeout = DNS_TIMEOUT_MS,
        .tries = DNS_TRIES,
        .lookups = (char[]){"b"}, /* only DNS */
        .sock_state_cb = on_socket,
        .sock_state_cb_data = c,
    };
    const struct buf *servers = &c->dns->servers;
    if (ares_init_options(&c->ares, &options,
                          ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
                              ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
        return ERR_NOMEM;
    if (servers->len > 0 && ares_set_servers_ports_csv(c->ares, servers->at) != ARES_SUCCESS) {
        ares_destroy(c->ares);
        return ERR_SYNTAX;
    }
    return ERR_OK;
}

static int channel_open(struct dns *dns)
{
    struct channel *c = calloc(1, sizeof *c);
    if (c == NULL)
        return ERR_NOMEM;
    c->dns = dns;
    if (stat(resolv_conf, &dns->conf) != 0)
        dns->conf = (struct stat){0};
    int err = ares_open(c);
    if (err != ERR_OK) {
        free(c);
        return err;
    }
    CHECK(uv_timer_init(dns->loop, &c->timer) == 0);
    c->timer.data = c;
    c->next = dns->channels;
    dns->channels = c;
    return ERR_OK;
}

static void on_channel_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF((uv_timer_t *)handle, struct channel, timer));
}

/* Closes the channel. Open questions are answered with an error. */
static void channel_close(struct channel **link)
{
    struct channel *c = *link;
    ares_destroy(c->ares); /* closes all sockets */
    *link = c->next;
    while (c->watched != NULL)
        watch_end(&c->watched);
    uv_close((uv_handle_t *)&c->timer, on_channel_closed);
}

/* Closes outdated channels without questions. If resolv.conf has changed, opens a new channel; if
 * this fails, the latest channel stays in use. */
static void channel_renew(struct dns *dns)
{
    struct stat now;
    for (struct channel **link = &dns->channels->next; *link != NULL;) {
        if ((*link)->open > 0)
            link = &(*link)->next;
        else
            channel_close(link);
    }
    if (dns->servers.len > 0 || stat(resolv_conf, &now) != 0 ||
        (now.st_ino == dns->conf.st_ino && now.st_size == dns->conf.st_size &&
         now.st_mtim.tv_sec == dns->conf.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == dns->conf.st_mtim.tv_nsec))
        return;
    DISCARD(channel_open(dns));
}

static int hosts_open(ares_channel *out)
{
    struct ares_options options = {.lookups = (char[]){"f"}};
    return ares_init_options(out, &options, ARES_OPT_LOOKUPS) == ARES_SUCCESS ? ERR_OK : ERR_NOMEM;
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
    dns->answered_end = &dns->answered;
    int err = servers_write(&dns->servers, servers);
    if (err == ERR_OK)
        err = hosts_open(&dns->hosts);
    if (err == ERR_OK)
        err = channel_open(dns);
    if (err != ERR_OK) {
        if (dns->hosts != NULL)
            ares_destroy(dns->hosts);
        buf_free(&dns->servers);
        free(dns);
        return err;
    }
    CHECK(uv_timer_init(loop, &dns->due) == 0);
    dns->due.data = dns;
    *out = dns;
    return ERR_OK;
}

/* --- questions ------------------------------------------------------------------------------- */

static void question_free(struct dns_question *q)
{
    free(q->full);
    free(q->found);
    free(q);
}

static void deliver(struct dns_question *q)
{
    if (q->addresses != NULL)
        q->addresses(q->context, q->status, q->why, q->full, q->found, q->count);
    else if (q->services != NULL)
        q->services(q->context, q->status, q->why, q->found, q->count);
    question_free(q);
}

/* Calls `done` of answered questions. Questions asked by these calls are answered in the next turn
 * of the loop. */
static void on_due(uv_timer_t *timer)
{
    struct dns *dns = timer->data;
    struct dns_question *q = dns->answered, *next;
    dns->answered = NULL;
    dns->answered_end = &dns->answered;
    for (; q != NULL; q = next) {
        next = q->next;
        if (dns->stopped)
            question_free(q);
        else
            deliver(q);
    }
}

static void answer(struct dns_question *q, int status, const char *why)
{
    struct dns *dns = q->dns;
    q->status = status == ARES_SUCCESS                               ? DNS_FOUND
                : status == ARES_ENOTFOUND || status == ARES_ENODATA ? DNS_NONE
                : status == ARES_ETIMEOUT                            ? DNS_SILENT
                                                                     : DNS_FAILED;
    q->why = why;
    if (q->channel != NULL)
        q->channel->open--;
    q->channel = NULL;
    if (dns->stopped) {
        question_free(q);
        return;
    }
    *dns->answered_end = q;
    dns->answered_end = &q->next;
    (void)uv_timer_start(&dns->due, on_due, 0, 0);
}

static struct dns_question *question_begin(struct dns *dns, void *context)
{
    CHECK(!dns->stopped);
    struct dns_question *q = calloc(1, sizeof *q);
    if (q == NULL)
        return NULL;
    q->dns = dns;
    q->context = context;
    return q;
}

/* Returns the channel for a question to a server. */
static struct channel *channel_of(struct dns_question *q)
{
    channel_renew(q->dns);
    q->channel = q->dns->channels;
    q->channel->open++;
    return q->channel;
}

void dns_forget(struct dns_question *q)
{
    q->addresses = NULL;
    q->services = NULL;
}

void dns_stop(struct dns *dns)
{
    if (dns->stopped)
        return;
    dns->stopped = true;
    while (dns->channels != NULL)
        channel_close(&dns->channels);
    ares_destroy(dns->hosts);
    on_due(&dns->due);
    uv_close((uv_handle_t *)&dns->due, NULL);
}

void dns_free(struct dns *dns)
{
    if (dns == NULL)
        return;
    CHECK(dns->answered == NULL);
    buf_free(&dns->servers);
    free(dns);
}

_Static_assert(DNS_TIMEOUT_MS == 2000 && DNS_TRIES == 2, "as text_of() says");

/* Returns the error in words. c-ares also returns ARES_ECONNREFUSED if a server answers with an
 * error. */
static const char *text_of(int status, const char *record)
{
    switch (status) {
    case ARES_ENOTFOUND:
        return "the name does not exist";
    case ARES_ENODATA:
        return record;
    case ARES_ECONNREFUSED:
        return "the DNS server answers with an error (SERVFAIL, REFUSED), or its port is closed";
    case ARES_ETIMEOUT:
        return "no DNS server answers: each was asked twice, for 2 s and 4 s";
    default:
        return ares_strerror(status);
    }
}

/* --- addresses ------------------------------------------------------------------------------- */

/* Stores the addresses of the question's kind. Returns ARES_*. */
static int take_addresses(struct dns_question *q, const struct ares_addrinfo *found)
{
    unsigned n = 0;
    for (const struct ares_addrinfo_node *a = found->nodes; a != NULL; a = a->ai_next)
        n++;
    struct dns_address *list = n > 0 ? calloc(n, sizeof *list) : NULL;
    if (n > 0 && list == NULL)
        return ARES_ENOMEM;
    for (const struct ares_addrinfo_node *a = found->nodes; a != NULL; a = a->ai_next) {
        if (a->ai_family == (q->v6 ? AF_INET6 : AF_INET) &&
            uv_ip_name(a->ai_addr, list[q->count].text, DNS_TEXT_BYTES) == 0)
            q->count++;
    }
    q->found = list;
    if (q->count == 0)
        return ARES_ENODATA;
    if (q->channel != NULL && found->name != NULL)
        q->full = strdup(found->name);
    return ARES_SUCCESS;
}

static void answer_addresses(struct dns_question *q, int status, const struct ares_addrinfo *found)
{
    if (status == ARES_SUCCESS)
        status = take_addresses(q, found);
    answer(q, status, text_of(status, "the name has no addresses"));
}

static void on_addresses(void *context, int status, int timeouts, struct ares_addrinfo *found)
{
    (void)timeouts;
    answer_addresses(context, status, found);
    if (found != NULL)
        ares_freeaddrinfo(found);
}

static void on_hosts(void *context, int status, int timeouts, struct ares_addrinfo *found)
{
    (void)timeouts;
    struct ares_addrinfo **out = context;
    *out = status == ARES_SUCCESS ? found : NULL;
    if (*out == NULL && found != NULL)
        ares_freeaddrinfo(found);
}

/* Returns true if the hosts file has the name, which answers the question. c-ares calls back at
 * once. Both kinds are requested together, because a request for IPv6 alone leaks memory (1.18).
 * Moreover, DNS is not asked for a name with any address in the hosts file. */
static bool is_in_hosts(struct dns_question *q, const char *name)
{
    struct ares_addrinfo *found = NULL;
    struct ares_addrinfo_hints hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = ARES_AI_NOSORT};
    ares_getaddrinfo(q->dns->hosts, name, NULL, &hints, on_hosts, &found);
    if (found == NULL || found->nodes == NULL) {
        if (found != NULL)
            ares_freeaddrinfo(found);
        return false;
    }
    answer_addresses(q, ARES_SUCCESS, found);
    ares_freeaddrinfo(found);
    return true;
}

struct dns_question *dns_addresses(struct dns *dns, const char *name, bool v6,
                                   dns_addresses_done done, void *context)
{
    if (BUG(NAME_AT_A_TIME) && dns->channels != NULL && dns->channels->open > 0)
        return NULL;
    struct dns_question *q = question_begin(dns, context);
    if (q == NULL)
        return NULL;
    q->addresses = done;
    q->v6 = v6;
    if (is_in_hosts(q, name))
        return q;
    struct channel *c = channel_of(q);
    struct ares_addrinfo_hints hints = {
        .ai_family = v6 ? AF_INET6 : AF_INET,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = ARES_AI_NOSORT, /* sorting would open a socket for each address */
    };
    ares_getaddrinfo(c->ares, name, NULL, &hints, on_addresses, q);
    plan(c);
    return q;
}

void dns_other_kind(char out[NODE_HOST_BYTES + 1], const char *name, const char *full)
{
    bool whole = full != NULL && (strchr(full, '.') != NULL || strcmp(full, name) != 0);
    bool dotted = whole && slice_ends_with(slice_of_cstr(full), SLICE("."));
    (void)snprintf(out, NODE_HOST_BYTES + 1, "%s%s", whole ? full : name,
                   whole && !dotted ? "." : "");
}

/* --- services -------------------------------------------------------------------------------- */

/* Stores the SRV records. Returns ARES_*. */
static int take_services(struct dns_question *q, const struct ares_srv_reply *found)
{
    unsigned n = 0;
    for (const struct ares_srv_reply *s = found; s != NULL; s = s->next)
        n++;
    struct dns_service *list = n > 0 ? calloc(n, sizeof *list) : NULL;
    if (list == NULL)
        return ARES_ENOMEM;
    for (const struct ares_srv_reply *s = found; s != NULL; s = s->next) {
        struct slice host = slice_of_cstr(s->host);
        if (host.len > 0 && !slice_equal(host, SLICE(".")) && s->port != 0 &&
            slice_to_cstr(host, list[q->count].host, NODE_HOST_BYTES))
            list[q->count++].port = s->port;
    }
    q->found = list;
    return ARES_SUCCESS;
}

static void on_services(void *context, int status, int timeouts, unsigned char *text, int len)
{
    (void)timeouts;
    struct dns_question *q = context;
    struct ares_srv_reply *found = NULL;
    if (status == ARES_SUCCESS)
        status = ares_parse_srv_reply(text, len, &found);
    if (status == ARES_SUCCESS)
        status = take_services(q, found);
    if (found != NULL)
        ares_free_data(found);
    answer(q, status, text_of(status, "the name has no SRV records"));
}

struct dns_question *dns_services(struct dns *dns, const char *name, dns_services_done done,
                                  void *context)
{
    struct dns_question *q = question_begin(dns, context);
    if (q == NULL)
        return NULL;
    q->services = done;
    struct channel *c = channel_of(q);
    ares_search(c->ares, name, ns_c_in, ns_t_srv, on_services, q);
    plan(c);
    return q;
}
