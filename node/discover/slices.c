#include "node/discover/slices.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

/* --- the table ------------------------------------------------------------------------------ */

static int index_of(const struct discover_slices *s, struct slice name)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (slice_equal(slice_of_cstr(s->at[i]->name), name))
            return (int)i;
    }
    return -1;
}

/* Returns a copy of the slice with its ports and endpoints, in a single block of memory. NULL: no
 * memory. */
static struct discover_slice *copy_of(const struct discover_slice *slice)
{
    size_t ports = slice->port_count * sizeof slice->ports[0];
    size_t endpoints = slice->endpoint_count * sizeof slice->endpoints[0];
    struct discover_slice *copy = malloc(sizeof *copy + ports + endpoints);
    if (copy == NULL)
        return NULL;
    *copy = *slice;
    copy->ports = (struct discover_port *)(copy + 1);
    copy->endpoints = (struct discover_endpoint *)(copy->ports + slice->port_count);
    if (ports > 0)
        memcpy(copy->ports, slice->ports, ports);
    if (endpoints > 0)
        memcpy(copy->endpoints, slice->endpoints, endpoints);
    return copy;
}

int discover_slices_put(struct discover_slices *s, const struct discover_slice *slice)
{
    int old = index_of(s, slice_of_cstr(slice->name));
    unsigned without = s->endpoint_count - (old >= 0 ? s->at[old]->endpoint_count : 0);
    if ((old < 0 && s->count == DISCOVER_SLICES_MAX) ||
        without + slice->endpoint_count > DISCOVER_ENDPOINTS_MAX)
        return ERR_LIMIT;
    struct discover_slice *copy = copy_of(slice);
    if (copy == NULL)
        return ERR_NOMEM;
    if (old >= 0)
        free(s->at[old]);
    s->at[old >= 0 ? (unsigned)old : s->count++] = copy;
    s->endpoint_count = without + slice->endpoint_count;
    return 0;
}

void discover_slices_remove(struct discover_slices *s, struct slice name)
{
    int old = index_of(s, name);
    if (old < 0)
        return;
    s->endpoint_count -= s->at[old]->endpoint_count;
    free(s->at[old]);
    s->at[old] = s->at[--s->count];
}

void discover_slices_clear(struct discover_slices *s)
{
    for (unsigned i = 0; i < s->count; i++)
        free(s->at[i]);
    *s = (struct discover_slices){0};
}

void discover_slices_check(const struct discover_slices *s)
{
    unsigned endpoints = 0;
    CHECK(s->count <= DISCOVER_SLICES_MAX);
    for (unsigned i = 0; i < s->count; i++) {
        CHECK(index_of(s, slice_of_cstr(s->at[i]->name)) == (int)i);
        endpoints += s->at[i]->endpoint_count;
    }
    CHECK(endpoints == s->endpoint_count && endpoints <= DISCOVER_ENDPOINTS_MAX);
}

/* --- ports ---------------------------------------------------------------------------------- */

/* Writes the slice's ports as "http=8000, metrics=9000". */
static void name_ports(const struct discover_slice *slice, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < slice->port_count && len < size; i++) {
        const struct discover_port *p = &slice->ports[i];
        int n = snprintf(out + len, size - len, "%s%s%s%u", i > 0 ? ", " : "", p->name,
                         p->name[0] != '\0' ? "=" : "", p->number);
        len += n > 0 ? (size_t)n : 0;
    }
}

/* Returns the port number to use at the slice's endpoints. 0: no port matches. */
static uint16_t port_of(const struct discover_slice *slice, struct slice wanted)
{
    uint64_t number;
    if (slice_to_u64(wanted, &number) == 0)
        return (uint16_t)number;
    if (wanted.len == 0)
        return slice->port_count == 1 ? slice->ports[0].number : 0;
    for (unsigned i = 0; i < slice->port_count; i++) {
        if (slice_equal(slice_of_cstr(slice->ports[i].name), wanted))
            return slice->ports[i].number;
    }
    return 0;
}

static int no_port(const struct discover_slice *slice, struct slice wanted, char *why)
{
    char ports[128];
    name_ports(slice, ports, sizeof ports);
    const char *has = ports[0] != '\0' ? ports : "none";
    if (wanted.len == 0)
        (void)snprintf(why, DISCOVER_SLICES_WHY_MAX,
                       "want the number or the name of a port behind the service: its TCP ports "
                       "are %s",
                       has);
    else
        (void)snprintf(why, DISCOVER_SLICES_WHY_MAX,
                       "the service has no TCP port %.*s: its TCP ports are %s", SLICE_ARG(wanted),
                       has);
    return ERR_NOT_FOUND;
}

/* --- the list ------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    const struct discover_listed *x = a;
    const struct discover_listed *y = b;
    return strcmp(x->name, y->name);
}

/* Compares by name; of equal names, the serving entry comes first. */
static int compare(const void *a, const void *b)
{
    const struct discover_listed *x = a;
    const struct discover_listed *y = b;
    int names = compare_names(a, b);
    return names != 0 ? names : (int)x->draining - (int)y->draining;
}

static bool has_family(const struct discover_slices *s, enum discover_family family)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (s->at[i]->family == family && s->at[i]->endpoint_count > 0)
            return true;
    }
    return false;
}

static void add_endpoints(const struct discover_slice *slice, const char *scheme, uint16_t port,
                          const struct discover_endpoint_list *before,
                          struct discover_endpoint_list *out)
{
    for (unsigned i = 0; i < slice->endpoint_count; i++) {
        const struct discover_endpoint *e = &slice->endpoints[i];
        struct discover_listed *l = &out->at[out->count];
        (void)snprintf(l->name, sizeof l->name,
                       slice->family == DISCOVER_FAMILY_IPV6 ? "%s[%s]:%u" : "%s%s:%u", scheme,
                       e->ip, port);
        l->draining = e->terminating;
        const struct discover_listed *known = NULL;
        if (before->count > 0)
            known = bsearch(l, before->at, before->count, sizeof *l, compare_names);
        if (e->terminating ? known != NULL : !e->unready || (known != NULL && !known->draining))
            out->count++;
    }
}

/* Sorts the list and keeps one entry of each name. An endpoint on the move between slices is in
 * both. If the two entries differ, the serving entry is kept: the address may have passed from an
 * ending pod to a new pod. */
static void sort_each_once(struct discover_endpoint_list *list)
{
    if (list->count == 0)
        return;
    qsort(list->at, list->count, sizeof list->at[0], compare);
    unsigned kept = 1;
    for (unsigned i = 1; i < list->count; i++) {
        if (compare_names(&list->at[i], &list->at[kept - 1]) != 0)
            list->at[kept++] = list->at[i];
    }
    list->count = kept;
}

int discover_slices_list(const struct discover_slices *s, struct slice port,
                         struct discover_endpoint_list *list, char *why)
{
    struct discover_endpoint_list out = {.at = malloc((s->endpoint_count + 1) * sizeof *out.at)};
    if (out.at == NULL) {
        (void)slice_to_cstr(slice_of_cstr(err_text(ERR_NOMEM)), why, DISCOVER_SLICES_WHY_MAX);
        return ERR_NOMEM;
    }
    enum discover_family family =
        has_family(s, DISCOVER_FAMILY_IPV4) ? DISCOVER_FAMILY_IPV4 : DISCOVER_FAMILY_IPV6;
    bool any = false;
    const struct discover_slice *without = NULL;
    for (unsigned i = 0; i < s->count; i++) {
        const struct discover_slice *slice = s->at[i];
        if (slice->family != family || slice->endpoint_count == 0)
            continue;
        uint16_t number = port_of(slice, port);
        any = any || number > 0;
        if (number > 0)
            add_endpoints(slice, s->tls ? "https://" : "", number, list, &out);
        else
            without = slice;
    }
    /* While a service's port is renamed, some slices have the port and others do not. */
    if (without != NULL && (!any || port.len == 0)) {
        free(out.at);
        return no_port(without, port, why);
    }
    sort_each_once(&out);
    free(list->at);
    *list = out;
    return 0;
}

void discover_endpoint_list_free(struct discover_endpoint_list *list)
{
    free(list->at);
    *list = (struct discover_endpoint_list){0};
}
