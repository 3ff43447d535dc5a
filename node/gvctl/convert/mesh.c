/* The mesh of SMG and of the SGLang gateway, which is our cluster: what its flags say together. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/convert_internal.h"

static const json_t *values_of(const struct convert_state *c, const char *flag)
{
    return json_object_get(c->mesh, flag);
}

/* The last one counts. */
static const char *value_of(const struct convert_state *c, const char *flag, const char *fallback)
{
    const json_t *values = values_of(c, flag);
    size_t n = json_array_size(values);
    return n > 0 ? json_string_value(json_array_get(values, n - 1)) : fallback;
}

/* What its row says of it; with `why`, that instead. */
static void note(struct convert_state *c, enum convert_kind kind, const char *name, const char *why)
{
    char flag[64];
    const struct convert_row *row = convert_find(c->router, slice_of_cstr(name));
    CHECK(row != NULL);
    (void)snprintf(flag, sizeof flag, "--%s", name);
    convert_note(c, kind, flag, why != NULL ? why : row->note);
}

/* Some write "grpc://HOST:PORT". */
static void set_join(struct convert_state *c)
{
    size_t i;
    const json_t *value;
    json_array_foreach(values_of(c, "mesh-peer-urls"), i, value)
    {
        const char *text = json_string_value(value), *scheme = strstr(text, "://");
        convert_set(c, "join", scheme != NULL ? scheme + 3 : text, "--mesh-peer-urls");
    }
    if (i > 1)
        note(c, CONVERT_DID, "mesh-peer-urls", NULL);
}

static void set_gossip(struct convert_state *c)
{
    char address[300];
    const char *port = value_of(c, "mesh-port", "39527");
    const char *advertise = value_of(c, "mesh-advertise-host", NULL);
    const char *own = value_of(c, "mesh-server-name", NULL);
    convert_address(value_of(c, "mesh-host", "0.0.0.0"), port, address, sizeof address);
    convert_set(c, "gossip-listen", address, "--mesh-host, --mesh-port");
    note(c, CONVERT_DID, "mesh-port", NULL);
    if (advertise != NULL) {
        convert_address(advertise, port, address, sizeof address);
        convert_set(c, "gossip-advertise", address, "--mesh-advertise-host, --mesh-port");
    }
    if (own != NULL)
        convert_set(c, "node-name", own, "--mesh-server-name");
}

void convert_mesh(struct convert_state *c)
{
    const json_t *pods = values_of(c, "router-selector");
    const char *name;
    json_t *values;
    if (values_of(c, "enable-mesh") != NULL) {
        note(c, CONVERT_HAND, "enable-mesh", NULL);
        if (pods != NULL)
            note(c, CONVERT_HAND, "router-selector", NULL);
        set_gossip(c);
        set_join(c);
        return;
    }
    json_object_foreach(c->mesh, name, values)
    {
        /* launch_server writes "--router-" before each flag: then it is the engines'. */
        if (values == pods)
            convert_selector(c, pods);
        else
            note(c, CONVERT_NOT_NEEDED, name, "without --enable-mesh it says nothing");
    }
}
