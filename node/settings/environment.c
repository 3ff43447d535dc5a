/* Settings as environment variables, GRAPEVINE_NAME. */
#include "base/err.h"
#include "node/settings/options.h"

/* True for the address of a Kubernetes Service: GRAPEVINE_ADMIN_PORT=tcp://10.0.0.1:9090 belongs to
 * the Service "grapevine-admin". A plain number in that variable was meant as a setting, and is
 * refused because no such setting exists. */
static bool is_link(struct slice value)
{
    return slice_starts_with(value, SLICE("tcp://")) || slice_starts_with(value, SLICE("udp://")) ||
           slice_starts_with(value, SLICE("sctp://"));
}

/* True for a variable that is no setting of the router. Kubernetes sets most of these in every pod
 * of a namespace with a service "grapevine" or "grapevine-..."; docker links did the same.
 * GRAPEVINE_ADMIN and GRAPEVINE_ADMIN_CA_FILE belong to gvctl, GRAPEVINE_SHARED tells the test
 * suite where to find vectors. */
static bool not_a_setting(const char *text, struct slice value)
{
    struct slice name = slice_of_cstr(text);
    return slice_equal(name, SLICE("shared")) || slice_equal(name, SLICE("admin")) ||
           slice_equal(name, SLICE("admin-ca-file")) ||
           (slice_equal(name, SLICE("port")) && is_link(value)) ||
           slice_starts_with(name, SLICE("port-")) || strstr(text, "-service-port-") != NULL ||
           slice_equal(name, SLICE("service-host")) ||
           slice_starts_with(name, SLICE("service-port")) ||
           slice_ends_with(name, SLICE("-service-host")) ||
           slice_ends_with(name, SLICE("-service-port")) ||
           (slice_ends_with(name, SLICE("-port")) && is_link(value)) ||
           slice_ends_with(name, SLICE("-tcp")) || slice_ends_with(name, SLICE("-tcp-addr")) ||
           slice_ends_with(name, SLICE("-tcp-port")) || slice_ends_with(name, SLICE("-tcp-proto"));
}

static int take_variable(struct node_options *o, struct slice variable,
                         struct node_options_error *error)
{
    static const struct node_option_origin origin = {.source = NODE_SOURCE_ENVIRONMENT};
    struct slice value = variable;
    struct slice upper = slice_skip(slice_cut(&value, '='), strlen("GRAPEVINE_"));
    char name[64];
    if (value.len == 0)
        return 0;
    if (!slice_to_cstr(upper, name, sizeof name))
        return node_options_set(o, upper, value, origin, error); /* there is no such setting */
    for (char *c = name; *c != '\0'; c++)
        *c = *c == '_' ? '-' : *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    if (node_option_find(slice_of_cstr(name)) < 0 && not_a_setting(name, value))
        return 0;
    return node_options_set(o, slice_of_cstr(name), value, origin, error);
}

int node_options_environment(struct node_options *o, char *const *environment,
                             struct node_options_error *error)
{
    for (char *const *at = environment; *at != NULL; at++) {
        struct slice variable = slice_of_cstr(*at);
        if (!slice_starts_with(variable, SLICE("GRAPEVINE_")))
            continue;
        int err = node_options_note(o, error, take_variable(o, variable, error));
        if (err != 0)
            return err;
    }
    return 0;
}
