/* Checks of TLS settings across settings. */
#include <stdio.h>

#include "base/err.h"
#include "node/settings/options.h"

static int refuse(struct node_options_error *error, const char *setting, const char *want)
{
    (void)snprintf(error->text, sizeof error->text, "setting %s: %s", setting, want);
    return ERR_RANGE;
}

/* True for a certificate without key, or a key without certificate. */
static bool is_half(const char *cert, const char *key)
{
    return (cert[0] == '\0') != (key[0] == '\0');
}

int node_options_tls_check(const struct node_options *o, struct node_options_error *error)
{
    char want[128];
    (void)snprintf(want, sizeof want,
                   "want one key for each tls-cert, in the same order; keys: %u, certificates: %u",
                   o->tls_key.count, o->tls_cert.count);
    if (o->tls_key.count > 0 && o->tls_cert.count != o->tls_key.count)
        return refuse(error, "tls-key", want);
    (void)snprintf(want, sizeof want, "want at most %d certificates", NODE_TLS_CERTS_MAX);
    if (o->tls_cert.count > NODE_TLS_CERTS_MAX)
        return refuse(error, "tls-cert", want);
    if (is_half(o->replica_cert, o->replica_key))
        return refuse(error, "replica-cert", "want replica-cert and replica-key, both or none");
    if (is_half(o->admin_tls_cert, o->admin_tls_key))
        return refuse(error, "admin-tls-cert",
                      "want admin-tls-cert and admin-tls-key, both or none");
    if (o->tls_ticket_key_file[0] != '\0' && o->tls_cert.count == 0 && o->admin_tls_cert[0] == '\0')
        return refuse(error, "tls-ticket-key-file",
                      "no port of this router uses TLS, want tls-cert or admin-tls-cert too");
    return 0;
}
