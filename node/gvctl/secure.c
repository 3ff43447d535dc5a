#include "node/gvctl/secure.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/settings/address.h"

struct secure {
    SSL_CTX *ctx;
    SSL *ssl;
    X509 *own; /* certificate that needs no CA; NULL: none */
};

/* Returns the first certificate of the file; NULL: none. */
static X509 *read_certificate(const char *path)
{
    BIO *file = path != NULL ? BIO_new_file(path, "r") : NULL;
    X509 *own = file != NULL ? PEM_read_bio_X509(file, NULL, NULL, NULL) : NULL;
    (void)BIO_free(file);
    return own;
}

/* Accepts a peer with exactly the certificate `own`: the peer has the private key, so names and
 * dates need no check. Other peers are checked as usual. */
static int verify(X509_STORE_CTX *shown, void *own)
{
    X509 *leaf = X509_STORE_CTX_get0_cert(shown);
    return leaf != NULL && X509_cmp(leaf, own) == 0 ? 1 : X509_verify_cert(shown);
}

static bool set_trust(struct secure *s, const struct secure_trust *trust, char *message)
{
    if (trust->insecure)
        return true;
    SSL_CTX_set_verify(s->ctx, SSL_VERIFY_PEER, NULL);
    s->own = read_certificate(trust->own_file);
    if (s->own != NULL)
        SSL_CTX_set_cert_verify_callback(s->ctx, verify, s->own);
    (void)X509_STORE_set_flags(SSL_CTX_get_cert_store(s->ctx), X509_V_FLAG_PARTIAL_CHAIN);
    if (trust->ca_file == NULL)
        return SSL_CTX_set_default_verify_paths(s->ctx) == 1;
    if (SSL_CTX_load_verify_locations(s->ctx, trust->ca_file, NULL) == 1)
        return true;
    (void)snprintf(message, SECURE_MESSAGE, "--ca-file \"%.160s\" holds no certificate in PEM",
                   trust->ca_file);
    return false;
}

static bool set_name(struct secure *s, const char *host)
{
    if (node_host_is_ip(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(s->ssl), host) == 1;
    return SSL_set1_host(s->ssl, host) == 1 && SSL_set_tlsext_host_name(s->ssl, host) == 1;
}

static int why(const struct secure *s, int answer, char *message)
{
    int error = SSL_get_error(s->ssl, answer);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return ERR_TIMEOUT;
    long verified = SSL_get_verify_result(s->ssl);
    if (verified == X509_V_OK &&
        ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_WRONG_VERSION_NUMBER)
        return ERR_UNSUPPORTED;
    const char *reason = verified != X509_V_OK ? X509_verify_cert_error_string(verified)
                                               : ERR_reason_error_string(ERR_peek_last_error());
    if (reason == NULL)
        return ERR_CLOSED;
    (void)snprintf(message, SECURE_MESSAGE, "%s%s", reason,
                   verified != X509_V_OK ? "\n       --ca-file FILE names the CA to trust."
                                         : "\n       Does its admin port speak TLS?");
    return ERR_DENIED;
}

int secure_open(struct secure **out, int fd, const char *host, const struct secure_trust *trust,
                char *message)
{
    struct secure *s = calloc(1, sizeof *s);
    message[0] = '\0';
    if (s == NULL)
        return ERR_NOMEM;
    s->ctx = SSL_CTX_new(TLS_client_method());
    int err = s->ctx == NULL || SSL_CTX_set_min_proto_version(s->ctx, TLS1_2_VERSION) != 1
                  ? ERR_NOMEM
                  : 0;
    if (err == 0 && !set_trust(s, trust, message))
        err = ERR_DENIED;
    if (err == 0) {
        s->ssl = SSL_new(s->ctx);
        bool set = s->ssl != NULL && set_name(s, host) && SSL_set_fd(s->ssl, fd) == 1;
        err = set ? 0 : ERR_NOMEM;
    }
    if (err == 0) {
        ERR_clear_error();
        int answer = SSL_connect(s->ssl);
        err = answer == 1 ? 0 : why(s, answer, message);
    }
    if (err == 0)
        *out = s;
    else
        secure_free(s);
    return err;
}

/* Converts a failed OpenSSL call to the result and errno of recv(). */
static ssize_t result(const struct secure *s, int answer)
{
    switch (SSL_get_error(s->ssl, answer)) {
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    default:
        errno = ECONNRESET;
        return -1;
    }
}

ssize_t secure_write(struct secure *s, const void *bytes, size_t len)
{
    size_t n;
    ERR_clear_error();
    int answer = SSL_write_ex(s->ssl, bytes, len, &n);
    return answer == 1 ? (ssize_t)n : result(s, answer);
}

ssize_t secure_read(struct secure *s, void *out, size_t len)
{
    size_t n;
    ERR_clear_error();
    int answer = SSL_read_ex(s->ssl, out, len, &n);
    return answer == 1 ? (ssize_t)n : result(s, answer);
}

void secure_free(struct secure *s)
{
    if (s == NULL)
        return;
    SSL_free(s->ssl);
    SSL_CTX_free(s->ctx);
    X509_free(s->own);
    free(s);
}
