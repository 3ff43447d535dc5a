/* What several flags say together: listens, the mesh, Kubernetes; and whether all fits. */
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/settings/options.h"

static void set_listen(struct convert_state *c)
{
    const struct convert_router *r = c->router;
    bool given = c->host[0] != '\0' || c->port[0] != '\0';
    const char *host = c->host[0] != '\0' ? c->host : r->host;
    const char *port = c->port[0] != '\0' ? c->port : r->port;
    if (host == NULL || port == NULL || c->listen_given)
        return;
    char text[300];
    convert_address(host, port, text, sizeof text);
    convert_set(c, "listen", text, given ? "--host, --port" : "where it listens by default");
}

static void set_admin(struct convert_state *c)
{
    if (c->admin_host[0] == '\0' && c->admin_port[0] == '\0')
        return;
    char text[300];
    convert_address(c->admin_host[0] != '\0' ? c->admin_host : "127.0.0.1",
                    c->admin_port[0] != '\0' ? c->admin_port : "9090", text, sizeof text);
    convert_set(c, "admin-listen", text, "where its metrics are: /metrics is at the admin port");
}

/* What no setting shows alone: what a router would not start with is noted. */
static void check_together(struct convert_state *c)
{
    struct node_options options;
    struct node_options_error error;
    struct node_option_origin origin = {0};
    const char *name;
    json_t *values;
    if (node_options_init(&options) != 0)
        abort();
    json_object_foreach(c->settings, name, values)
    {
        size_t i;
        const json_t *value;
        json_array_foreach(values, i, value)
        {
            DISCARD(node_options_set(&options, slice_of_cstr(name),
                                     slice_of_cstr(json_string_value(value)), origin, &error));
        }
    }
    if (json_object_get(c->mesh, "enable-mesh") != NULL) /* whose key is to be made by hand */
        DISCARD(
            node_options_set(&options, SLICE("cluster-key-file"), SLICE("FILE"), origin, &error));
    if (node_options_finish(&options, &error) != 0)
        convert_note(c, CONVERT_HAND, "all together", error.text);
    node_options_free(&options);
}

static void set_kubernetes(struct convert_state *c)
{
    if (!c->kubernetes)
        return;
    char text[300], note[600];
    (void)snprintf(text, sizeof text, "%s%sengines%s%s", c->ns, c->ns[0] != '\0' ? "/" : "",
                   c->kubernetes_port[0] != '\0' ? ":" : "", c->kubernetes_port);
    convert_set(c, "replica-kubernetes", text, "discovery by Kubernetes");
    (void)snprintf(
        note, sizeof note,
        "pods are found by a Service: make one of the name \"engines\" whose selector is "
        "\"%s\", or write the name of the one that is there",
        c->selector[0] != '\0' ? c->selector : "that of the engines' pods");
    convert_note(c, CONVERT_HAND, "replica-kubernetes", note);
}

void convert_finish(struct convert_state *c)
{
    set_listen(c);
    set_admin(c);
    convert_mesh(c);
    set_kubernetes(c);
    if (c->router->body_bytes != NULL && json_object_get(c->settings, "body-bytes-max") == NULL)
        convert_set(c, "body-bytes-max", c->router->body_bytes, "the greatest body by default");
    const char *listen =
        json_string_value(json_array_get(json_object_get(c->settings, "listen"), 0));
    if (listen != NULL && slice_ends_with(slice_of_cstr(listen), SLICE(":9090")) &&
        json_object_get(c->settings, "admin-listen") == NULL)
        convert_set(c, "admin-listen", "127.0.0.1:9091", "9090, its default, is taken by listen");
    check_together(c);
}
