/* Contexts of OpenSSL: the TLS spoken with clients and with replicas, and the choice of a
 * certificate by name. */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "node/io/tls_internal.h"

/* Only forward secrecy and authenticated encryption; among these the client's preference decides.
 * All ciphers of TLS 1.3 qualify. */
static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
static const char groups[] = "X25519:P-256:P-384";
static const unsigned char alpn[] = "\x08http/1.1";

static bool init(SSL_CTX *ctx)
{
    bool good = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
                SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_cipher_list(ctx, ciphers) == 1 &&
                SSL_CTX_set1_groups_list(ctx, groups) == 1;
    (void)SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    (void)SSL_CTX_set_timeout(ctx, TLS_SESSION_S);
    return good;
}

/* --- clients --------------------------------------------------------------------------------- */

static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *context)
{
    (void)ssl;
    (void)context;
    unsigned char *found = NULL;
    if (SSL_select_next_proto(&found, out_len, alpn, sizeof alpn - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol, RFC 7301 */
    *out = found;
    return SSL_TLSEXT_ERR_OK;
}

/* Chooses a certificate by name. A literal name in a certificate has precedence over a wildcard. */
static int choose_certificate(SSL *ssl, int *alert, void *context)
{
    (void)context;
    *alert = SSL_AD_UNRECOGNIZED_NAME; /* for a refusal, which never happens */
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    const struct tls_server *server = tls_stream_of(ssl)->server;
    if (name == NULL || server->count < 2)
        return SSL_TLSEXT_ERR_OK;
    for (unsigned wild = 0; wild < 2; wild++) {
        unsigned flags = wild ? 0 : X509_CHECK_FLAG_NO_WILDCARDS;
        for (unsigned i = 0; i < server->count; i++) {
            X509 *cert = SSL_CTX_get0_certificate(server->ctx[i]);
            if (X509_check_host(cert, name, strlen(name), flags, NULL) == 1) {
                (void)SSL_set_SSL_CTX(ssl, server->ctx[i]);
                return SSL_TLSEXT_ERR_OK;
            }
        }
    }
    return SSL_TLSEXT_ERR_OK; /* no certificate has the name: the first certificate */
}

static SSL_CTX *server_context(void)
{
    static const unsigned char session_context[] = "grapevine";
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL)
        return NULL;
    if (!init(ctx) ||
        SSL_CTX_set_session_id_context(ctx, session_context, sizeof session_context - 1) != 1) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* only tickets */
    (void)SSL_CTX_set_num_tickets(ctx, 1);
    (void)SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, tls_tickets_key);
    (void)SSL_CTX_set_tlsext_servername_callback(ctx, choose_certificate);
    SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    return ctx;
}

void *tls_server_make(struct io_watch *w)
{
    const struct io_file *at = w->files;
    const struct buf *texts = w->texts;
    char *message = w->message;
    struct tls_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return tls_pem_fail(&at[0], message, "out of memory");
    server->refs = 1;
    for (unsigned i = 0; i + 1 < w->count; i += 2) {
        SSL_CTX *ctx = server_context();
        if (ctx == NULL)
            (void)tls_pem_fail(&at[i], message, "OpenSSL cannot make a context for it");
        else
            server->ctx[server->count++] = ctx;
        if (ctx == NULL || !tls_pem_pair(ctx, &at[i], buf_slice(&texts[i]), &at[i + 1],
                                         buf_slice(&texts[i + 1]), message)) {
            tls_server_unref(server);
            ERR_clear_error(); /* freeing a partial object leaves errors, too */
            return NULL;
        }
    }
    ERR_clear_error(); /* drops the errors of optional steps of OpenSSL */
    return server;
}

void tls_server_unref(struct tls_server *server)
{
    if (server == NULL || --server->refs > 0)
        return;
    for (unsigned i = 0; i < server->count; i++)
        SSL_CTX_free(server->ctx[i]);
    free(server);
}

int64_t tls_context_expires_s(const SSL_CTX *ctx)
{
    struct tm end;
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    return ASN1_TIME_to_tm(X509_get0_notAfter(cert), &end) == 1 ? (int64_t)timegm(&end) : 0;
}

/* --- replicas -------------------------------------------------------------------------------- */

/* Keeps a session for resumption. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    const struct tls_stream *s = tls_stream_of(ssl);
    if (s->tcp->closing || SSL_get_SSL_CTX(ssl) != s->all->client)
        return 0;
    SSL_SESSION_free(s->host->session);
    s->host->session = session; /* now owned by the host */
    s->host->version = s->all->client_version;
    return 1;
}

static SSL_CTX *client_context(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (ctx == NULL)
        return NULL;
    if (!init(ctx) || SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) != 0) {
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    (void)X509_STORE_set_flags(SSL_CTX_get_cert_store(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    return ctx;
}

SSL_CTX *tls_client_of_system(char *message)
{
    SSL_CTX *ctx = client_context();
    if (ctx != NULL && SSL_CTX_set_default_verify_paths(ctx) == 1)
        return ctx;
    SSL_CTX_free(ctx);
    ERR_clear_error();
    (void)snprintf(message, IO_FILE_MESSAGE,
                   "the CAs of this system cannot be read, want "
                   "replica-ca-file");
    return NULL;
}

void *tls_client_make(struct io_watch *w)
{
    const struct io_file *at = w->files;
    const struct buf *texts = w->texts;
    char *message = w->message;
    SSL_CTX *ctx = client_context();
    if (ctx == NULL)
        return tls_pem_fail(&at[0], message, "OpenSSL cannot make a context for it");
    bool cas = w->count % 2 == 1; /* CAs come first, before the certificate and key, if any */
    bool good = cas ? tls_pem_cas(ctx, &at[0], buf_slice(&texts[0]), message)
                    : SSL_CTX_set_default_verify_paths(ctx) == 1;
    unsigned pair = cas ? 1 : 0;
    if (!cas && !good)
        (void)tls_pem_fail(&at[0], message, "the CAs of this system cannot be read beside it");
    if (good && w->count > pair)
        good = tls_pem_pair(ctx, &at[pair], buf_slice(&texts[pair]), &at[pair + 1],
                            buf_slice(&texts[pair + 1]), message);
    if (!good)
        SSL_CTX_free(ctx);
    ERR_clear_error();
    return good ? ctx : NULL;
}
