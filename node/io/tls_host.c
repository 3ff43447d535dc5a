/* A replica with TLS: the name required in the certificate, and the session for resumption. */
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/io/tls_internal.h"

int tls_host_open(struct tls *t, const struct node_address *address, struct tls_host **out)
{
    struct tls_host *host = calloc(1, sizeof *host);
    if (host == NULL)
        return ERR_NOMEM;
    if (t->client == NULL) {
        char message[IO_FILE_MESSAGE] = "";
        t->client = tls_client_of_system(message);
        if (t->client == NULL) {
            log_event(t->log, LOG_ERROR, "tls_files_refused", LOG_CSTR("error", message),
                      LOG_CSTR("effect", "https replicas cannot be used"));
            free(host);
            return ERR_NOMEM;
        }
        t->client_version++;
    }
    host->all = t;
    host->address = *address;
    *out = host;
    return 0;
}

void tls_host_free(struct tls_host *host)
{
    if (host == NULL)
        return;
    SSL_SESSION_free(host->session);
    free(host);
}

static void forget(struct tls_host *host)
{
    SSL_SESSION_free(host->session);
    host->session = NULL;
}

bool tls_host_prepare(struct tls_host *host, SSL *ssl)
{
    const char *given = host->all->options->replica_tls_name;
    const char *name = given[0] != '\0' ? given : host->address.host;
    bool good;
    if (node_host_is_ip(name))
        good = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    else
        good = SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    /* After a change of the CAs, the certificate must be checked again, so no session is
     * resumed. */
    if (host->session != NULL && host->version != host->all->client_version)
        forget(host);
    if (good && host->session != NULL)
        good = SSL_set_session(ssl, host->session) == 1;
    return good;
}
