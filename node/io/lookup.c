#include "node/io/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void lookup_init(struct lookup *l, uint16_t port, lookup_done done)
{
    memset(l, 0, sizeof *l);
    l->port = port;
    l->done = done;
    for (unsigned k = 0; k < LOOKUP_KINDS; k++)
        l->kinds[k].lookup = l;
}

static bool is_under_way(const struct lookup *l)
{
    return l->kinds[LOOKUP_V4].question != NULL || l->kinds[LOOKUP_V6].question != NULL;
}

static void forget(struct lookup_kind *k)
{
    free(k->at);
    k->at = NULL;
    k->count = 0;
}

/* Replaces the addresses. Returns false, and keeps the old addresses, if there is no memory. */
static bool keep(struct lookup_kind *k, const struct dns_address *found, unsigned count)
{
    bool v6 = k == &k->lookup->kinds[LOOKUP_V6];
    if (count > LOOKUP_ADDRESSES_MAX)
        count = LOOKUP_ADDRESSES_MAX;
    union lookup_address *list = calloc(count, sizeof *list);
    if (list == NULL)
        return false;
    forget(k);
    k->at = list;
    for (unsigned i = 0; i < count; i++) {
        union lookup_address *at = &list[k->count];
        k->count += (v6 ? uv_ip6_addr(found[i].text, k->lookup->port, &at->v6)
                        : uv_ip4_addr(found[i].text, k->lookup->port, &at->v4)) == 0;
    }
    return true;
}

/* Returns the kind with the failure to report. A kind without any answer goes before a kind
 * answered without an address. */
static const struct lookup_kind *failed(const struct lookup *l)
{
    const struct lookup_kind *v4 = &l->kinds[LOOKUP_V4], *v6 = &l->kinds[LOOKUP_V6];
    return !dns_is_unknown(v4->status) && dns_is_unknown(v6->status) ? v6 : v4;
}

int lookup_error(const struct lookup *l)
{
    enum dns_status status = failed(l)->status;
    return status == DNS_NONE     ? ERR_NOT_FOUND
           : status == DNS_SILENT ? ERR_TIMEOUT
                                  : ERR_UNREACHABLE;
}

static void take(struct lookup_kind *k, enum dns_status status, const char *why,
                 const struct dns_address *found, unsigned count)
{
    k->question = NULL;
    k->status = status;
    k->why = why;
    if (status == DNS_FOUND && !keep(k, found, count))
        k->status = DNS_FAILED;
}

static void on_v6(void *context, enum dns_status status, const char *why, const char *full,
                  const struct dns_address *found, unsigned count)
{
    (void)full;
    struct lookup_kind *v6 = context, *v4 = &v6->lookup->kinds[LOOKUP_V4];
    struct lookup *l = v6->lookup;
    take(v6, status, why, found, count);
    bool any = v4->status == DNS_FOUND || v6->status == DNS_FOUND;
    if (any && v4->status == DNS_NONE)
        forget(v4);
    if (any && v6->status == DNS_NONE)
        forget(v6);
    l->done(l, any ? NULL : failed(l)->why, false);
}

static void on_v4(void *context, enum dns_status status, const char *why, const char *full,
                  const struct dns_address *found, unsigned count)
{
    struct lookup_kind *v4 = context, *v6 = &v4->lookup->kinds[LOOKUP_V6];
    struct lookup *l = v4->lookup;
    char name[NODE_HOST_BYTES + 1];
    take(v4, status, why, found, count);
    dns_other_kind(name, l->host, full);
    v6->question = dns_addresses(l->dns, name, true, on_v6, v6);
    if (v6->question == NULL)
        on_v6(v6, DNS_FAILED, err_text(ERR_NOMEM), NULL, NULL, 0);
    else if (v4->status == DNS_FOUND)
        l->done(l, NULL, true);
}

bool lookup_begin(struct lookup *l, struct dns *dns, const char *host)
{
    struct lookup_kind *v4 = &l->kinds[LOOKUP_V4];
    if (is_under_way(l))
        return true;
    l->dns = dns;
    l->host = host;
    v4->question = dns_addresses(dns, host, false, on_v4, v4);
    return v4->question != NULL;
}

const union lookup_address *lookup_at(const struct lookup *l, unsigned i)
{
    const struct lookup_kind *v4 = &l->kinds[LOOKUP_V4], *v6 = &l->kinds[LOOKUP_V6];
    if (i < v4->count)
        return &v4->at[i];
    return i - v4->count < v6->count ? &v6->at[i - v4->count] : NULL;
}

void lookup_end(struct lookup *l)
{
    for (unsigned i = 0; i < LOOKUP_KINDS; i++) {
        if (l->kinds[i].question != NULL)
            dns_forget(l->kinds[i].question);
        l->kinds[i].question = NULL;
        forget(&l->kinds[i]);
    }
}
