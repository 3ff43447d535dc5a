#include "node/io/replica_dns.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/dns.h"

enum { V4, V6, FAMILIES };

/* The addresses of a host. */
struct found {
    struct dns_address *at; /* owned */
    unsigned count;
    bool failed; /* no answer */
};

struct host {
    struct name *name;
    char host[NODE_HOST_BYTES];
    uint16_t port;
    struct found found[FAMILIES];
};

struct hosts {
    struct host *at; /* owned; does not move while questions are open */
    unsigned count;
};

/* A name of --replica-dns. */
struct name {
    struct replica_dns *all;
    struct node_dns_option option; /* borrows from the options */
    unsigned source;
    uint64_t due_ms;
    bool busy;   /* questions of a round are under way */
    bool asking; /* ask_more() is running */
    bool listed;
    unsigned next, open;              /* next host to ask; number of hosts being asked */
    char why[DISCOVER_WHY_MAX];       /* this round's last failure or empty answer, in words */
    char lacks[DISCOVER_WHY_MAX];     /* the first thing missing in this round's list */
    struct hosts hosts, hosts_before; /* hosts of this round and of the round before */
};

struct replica_dns {
    struct dns *dns;
    uv_loop_t *loop;
    struct discover *discover;
    uint64_t interval_ms;
    unsigned count;
    struct name names[NODE_SOURCES_MAX];
};

static void hosts_free(struct hosts *hosts)
{
    for (unsigned i = 0; i < hosts->count; i++) {
        for (unsigned f = 0; f < FAMILIES; f++)
            free(hosts->at[i].found[f].at);
    }
    free(hosts->at);
    *hosts = (struct hosts){0};
}

static bool hosts_make(struct name *n, unsigned count)
{
    n->hosts.at = calloc(count > 0 ? count : 1, sizeof *n->hosts.at);
    if (n->hosts.at == NULL)
        return false;
    n->hosts.count = count;
    for (unsigned i = 0; i < count; i++)
        n->hosts.at[i].name = n;
    return true;
}

/* --- the end of a round ---------------------------------------------------------------------- */

static void round_end(struct name *n, bool good)
{
    uint64_t interval = n->all->interval_ms;
    n->busy = false;
    n->listed = n->listed || good;
    if (!n->listed && interval > REPLICA_DNS_RETRY_MS)
        interval = REPLICA_DNS_RETRY_MS;
    n->due_ms = uv_now(n->all->loop) + interval;
    if (good) {
        hosts_free(&n->hosts_before);
        n->hosts_before = n->hosts;
        n->hosts = (struct hosts){0};
    } else {
        hosts_free(&n->hosts);
    }
}

static void fail(struct name *n, const char *why)
{
    discover_failed(n->all->discover, n->source, why, uv_now(n->all->loop));
    round_end(n, false);
}

/* Keeps a host's old addresses of a kind without an answer. Returns false if there is no memory. */
static bool keep(const struct name *n, struct host *h, unsigned family)
{
    const struct hosts *before = &n->hosts_before;
    for (unsigned i = 0; i < before->count; i++) {
        const struct found *old = &before->at[i].found[family];
        if (old->count == 0 || strcmp(before->at[i].host, h->host) != 0)
            continue;
        h->found[family].at = malloc(old->count * sizeof *old->at);
        if (h->found[family].at == NULL)
            return false;
        memcpy(h->found[family].at, old->at, old->count * sizeof *old->at);
        h->found[family].count = old->count;
        return true;
    }
    return true;
}

static void list(struct name *n, unsigned count)
{
    struct discover_entry *entries = calloc(count + 1, sizeof *entries);
    char(*names)[NODE_REPLICA_NAME_BYTES] = calloc(count + 1, sizeof *names);
    unsigned k = 0;
    for (unsigned i = 0; i < n->hosts.count && entries != NULL && names != NULL; i++) {
        const struct host *h = &n->hosts.at[i];
        for (unsigned f = 0; f < FAMILIES; f++) {
            for (unsigned a = 0; a < h->found[f].count; a++, k++) {
                struct node_address at = {.port = h->port, .tls = n->option.address.tls};
                (void)strcpy(at.host, h->found[f].at[a].text);
                node_replica_name_of(&at, names[k]);
                entries[k] = (struct discover_entry){.name = slice_of_cstr(names[k]),
                                                     .labels = n->option.labels};
            }
        }
    }
    bool filled = entries != NULL && names != NULL;
    discover_hint(n->all->discover, n->source, n->lacks[0] != '\0' ? n->lacks : n->why);
    discover_lacks(n->all->discover, n->source, n->lacks);
    if (filled) /* discover_list() logs refusals */
        round_end(n, discover_list(n->all->discover, n->source, entries, count,
                                   uv_now(n->all->loop)) == ERR_OK);
    free(entries);
    free(names);
    if (!filled)
        fail(n, err_text(ERR_NOMEM));
}

/* Ends a round after the last answer. */
static void answered(struct name *n)
{
    unsigned count = 0;
    bool any = n->hosts.count == 0;
    for (unsigned i = 0; i < n->hosts.count; i++) {
        struct host *h = &n->hosts.at[i];
        for (unsigned f = 0; f < FAMILIES; f++) {
            /* Without an answer for IPv4, "no IPv6" proves nothing. */
            any = any || (!h->found[f].failed && (f == V4 || h->found[f].count > 0));
            if (h->found[f].failed && !keep(n, h, f)) {
                fail(n, err_text(ERR_NOMEM));
                return;
            }
            count += h->found[f].count;
        }
    }
    if (any)
        list(n, count);
    else
        fail(n, n->why);
}

/* --- a round --------------------------------------------------------------------------------- */

static void ask_more(struct name *n);

/* True for an address of a machine: not 0.0.0.0 or ::, which are this machine, nor a multicast
 * address. */
static bool of_a_machine(const char *text)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, text, &v4) == 1)
        return v4.s_addr != htonl(INADDR_ANY) && ntohl(v4.s_addr) >> 28 != 14 &&
               v4.s_addr != htonl(INADDR_BROADCAST);
    return inet_pton(AF_INET6, text, &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
           !IN6_IS_ADDR_MULTICAST(&v6);
}

/* Records the first thing missing in a round, for people. */
static void lacks(struct name *n, const char *what, const char *which, const char *why)
{
    if (n->lacks[0] == '\0')
        (void)snprintf(n->lacks, sizeof n->lacks, "%s %.128s: %s", what, which, why);
}

static void keep_good(struct host *h, struct found *f, const struct dns_address *found,
                      unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (of_a_machine(found[i].text))
            f->at[f->count++] = found[i];
        else
            lacks(h->name, "passed over", found[i].text, "not the address of a machine");
    }
}

static void take(struct host *h, unsigned family, enum dns_status status, const char *why,
                 const struct dns_address *found, unsigned count)
{
    struct found *f = &h->found[family];
    f->failed = dns_is_unknown(status);
    if (status == DNS_FOUND) {
        f->at = malloc(count * sizeof *f->at);
        f->failed = f->at == NULL;
        if (f->at != NULL)
            keep_good(h, f, found, count);
    }
    if (f->failed)
        lacks(h->name, family == V4 ? "A of" : "AAAA of", h->host, why);
    if (f->count == 0)
        (void)slice_to_cstr(slice_of_cstr(why), h->name->why, sizeof h->name->why);
}

static void on_v6(void *context, enum dns_status status, const char *why, const char *full,
                  const struct dns_address *found, unsigned count)
{
    (void)full;
    struct host *h = context;
    take(h, V6, status, why, found, count);
    h->name->open--;
    ask_more(h->name);
}

/* Asks for IPv6 addresses under the name found. This follows even a failed IPv4 question, because
 * some servers fail if a name has no address of the kind. */
static void on_v4(void *context, enum dns_status status, const char *why, const char *full,
                  const struct dns_address *found, unsigned count)
{
    struct host *h = context;
    char name[NODE_HOST_BYTES + 1];
    take(h, V4, status, why, found, count);
    dns_other_kind(name, h->host, full);
    if (slice_equal_nocase(slice_of_cstr(name), SLICE("localhost"))) /* 127.0.0.1 and ::1 are one
                                                                      * engine, which must not count
                                                                      * twice */
        on_v6(h, DNS_NONE, "", NULL, NULL, 0);
    else if (dns_addresses(h->name->all->dns, name, true, on_v6, h) == NULL)
        on_v6(h, DNS_FAILED, err_text(ERR_NOMEM), NULL, NULL, 0);
}

/* Asks for the addresses of the next hosts. A question that fails at once calls this function again
 * from within the loop. The inner call does nothing, and the loop goes on. */
static void ask_more(struct name *n)
{
    if (n->asking)
        return;
    n->asking = true;
    while (n->next < n->hosts.count && n->open < REPLICA_DNS_AT_ONCE) {
        struct host *h = &n->hosts.at[n->next++];
        n->open++;
        if (dns_addresses(n->all->dns, h->host, false, on_v4, h) == NULL)
            on_v4(h, DNS_FAILED, err_text(ERR_NOMEM), NULL, NULL, 0);
    }
    n->asking = false;
    if (n->open == 0 && n->next == n->hosts.count)
        answered(n);
}

static void on_services(void *context, enum dns_status status, const char *why,
                        const struct dns_service *found, unsigned count)
{
    struct name *n = context;
    if (dns_is_unknown(status) || count > REPLICA_DNS_HOSTS_MAX || !hosts_make(n, count)) {
        fail(n, dns_is_unknown(status)          ? why
                : count > REPLICA_DNS_HOSTS_MAX ? "more SRV records than are looked up"
                                                : err_text(ERR_NOMEM));
        return;
    }
    (void)slice_to_cstr(slice_of_cstr(why), n->why, sizeof n->why);
    for (unsigned i = 0; i < count; i++) {
        struct host *h = &n->hosts.at[i];
        memcpy(h->host, found[i].host, sizeof found[i].host);
        h->port = found[i].port;
    }
    if (status == DNS_FOUND && count == 0)
        (void)snprintf(n->why, sizeof n->why, "its SRV records name no host with a port");
    ask_more(n);
}

static void round_begin(struct name *n)
{
    n->busy = true;
    n->next = n->open = 0;
    n->why[0] = n->lacks[0] = '\0';
    const struct node_address *address = &n->option.address;
    if (address->port == 0) {
        if (dns_services(n->all->dns, address->host, on_services, n) == NULL)
            fail(n, err_text(ERR_NOMEM));
    } else if (hosts_make(n, 1)) {
        memcpy(n->hosts.at[0].host, address->host, sizeof address->host);
        n->hosts.at[0].port = address->port;
        ask_more(n);
    } else {
        fail(n, err_text(ERR_NOMEM));
    }
}

int replica_dns_open(struct replica_dns **out, uv_loop_t *loop, const struct node_options *options,
                     struct discover *d)
{
    const struct node_strings *list = &options->replica_dns;
    struct replica_dns *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->loop = loop;
    r->discover = d;
    r->interval_ms = options->replica_dns_interval_ms;
    CHECK(list->count <= NODE_SOURCES_MAX);
    int err = ERR_OK;
    for (unsigned i = 0; i < list->count && err >= 0; i++) {
        struct name *n = &r->names[r->count++];
        n->all = r;
        CHECK(node_dns_parse(slice_of_cstr(list->at[i]), &n->option) == NULL);
        err = discover_source(d, "dns", n->option.name);
        n->source = (unsigned)err;
        if (err >= 0)
            err = discover_source_labels(d, n->source, &n->option.labels);
    }
    if (err >= 0)
        err = dns_open(&r->dns, loop, &options->dns_server);
    if (err < 0) {
        free(r);
        return err;
    }
    *out = r;
    return ERR_OK;
}

void replica_dns_tick(struct replica_dns *r, uint64_t now_ms)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (!r->names[i].busy && now_ms >= r->names[i].due_ms)
            round_begin(&r->names[i]);
    }
}

uint64_t replica_dns_due_ms(const struct replica_dns *r)
{
    uint64_t due = UINT64_MAX;
    for (unsigned i = 0; i < r->count; i++) {
        if (!r->names[i].busy && r->names[i].due_ms < due)
            due = r->names[i].due_ms;
    }
    return due;
}

void replica_dns_stop(struct replica_dns *r)
{
    dns_stop(r->dns);
}

void replica_dns_free(struct replica_dns *r)
{
    if (r == NULL)
        return;
    dns_free(r->dns);
    for (unsigned i = 0; i < r->count; i++) {
        hosts_free(&r->names[i].hosts);
        hosts_free(&r->names[i].hosts_before);
    }
    free(r);
}
