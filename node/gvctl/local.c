#include "node/gvctl/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/gvctl/command.h"
#include "node/io/config_yaml.h"
#include "node/settings/options.h"

/* Reads settings like this machine's router, except for the router's flags. A file given by
 * --config has to be valid. A file given by $GRAPEVINE_CONFIG may have been damaged since the
 * router read it. The valid part is used, so that a health check does not fail because of the
 * file. */
static bool read_settings(struct node_options *o, const char *config)
{
    struct node_options_error error;
    int err = node_options_environment(o, environ, &error);
    const char *path = config != NULL ? config : o->config;
    if ((err == 0 || config == NULL) && path[0] != '\0')
        err = io_config_yaml_load(o, path, &error);
    if (err != 0 && path[0] != '\0')
        (void)fprintf(stderr, "gvctl: %s\n", error.text);
    return err == 0 || config == NULL;
}

static void write_address(struct given *g, const struct node_address *at, bool tls)
{
    bool six = strchr(at->host, ':') != NULL;
    const char *host = !node_host_is_any(at->host) ? at->host : six ? "::1" : "127.0.0.1";
    (void)snprintf(g->address, sizeof g->address, "http%s://%s%s%s:%u", tls ? "s" : "",
                   six ? "[" : "", host, six ? "]" : "", (unsigned)at->port);
    g->admin = g->address;
}

/* Takes the token from the first readable file. If no file is readable, gvctl sends no token, and
 * the router refuses some calls. */
static bool take_token(struct given *g, const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (paths[i][0] != '\0' && access(paths[i], R_OK) == 0)
            return given_token(g, paths[i]);
    }
    return true;
}

static bool is_probed(const struct command *c)
{
    return (admin_call_row(c->call)->flags & ADMIN_PROBED) != 0;
}

/* Takes the address, the trusted certificate and the token from the settings. Probes send no token,
 * and trust any certificate at this machine's own port: a router with an expired or just changing
 * certificate is not dead. */
static bool take_settings(struct given *g, const struct node_options *o, bool probed)
{
    struct node_address probes;
    bool apart = probed && o->probe_listen[0] != '\0' &&
                 node_address_parse(slice_of_cstr(o->probe_listen), &probes) == 0;
    bool tls = !apart && o->admin_tls_cert[0] != '\0';
    write_address(g, apart ? &probes : &o->admin_listen, tls);
    g->trust.insecure = g->trust.insecure || (tls && probed);
    if (tls && (g->own_cert = strdup(o->admin_tls_cert)) == NULL)
        return false;
    g->trust.own_file = g->own_cert;
    const char *const paths[] = {o->admin_token_file, o->admin_read_token_file};
    return probed || g->token != NULL || take_token(g, paths, 2);
}

bool local_find(struct given *g, const struct command *c)
{
    const char *admin = getenv("GRAPEVINE_ADMIN"), *ca = getenv("GRAPEVINE_ADMIN_CA_FILE");
    const char *token = getenv("GRAPEVINE_ADMIN_TOKEN_FILE");
    if (g->trust.ca_file == NULL && ca != NULL && ca[0] != '\0')
        g->trust.ca_file = ca;
    if (g->admin == NULL && g->config == NULL && admin != NULL && admin[0] != '\0')
        g->admin = admin;
    if (g->admin != NULL) {
        bool wanted = token != NULL && token[0] != '\0' && g->token == NULL && !is_probed(c);
        return !wanted || given_token(g, token);
    }
    struct node_options o;
    bool good = node_options_init(&o) == 0 && read_settings(&o, g->config) &&
                take_settings(g, &o, is_probed(c));
    node_options_free(&o);
    return good;
}
