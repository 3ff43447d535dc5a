/* Certificates and keys from the text of files. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>

#include "node/io/tls_internal.h"

/* Returns true if OpenSSL failed for lack of memory; then the file may be valid. */
static bool is_out_of_memory(void)
{
    return ERR_GET_REASON(ERR_peek_error()) == ERR_R_MALLOC_FAILURE ||
           ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_MALLOC_FAILURE;
}

void *tls_pem_fail(const struct io_file *file, char *message, const char *what)
{
    if (is_out_of_memory())
        what = "out of memory";
    DISCARD(io_file_fail(file, message, what));
    ERR_clear_error();
    return NULL;
}

/* Writes a failure with OpenSSL's reason. */
static void fail_openssl(const struct io_file *file, char *message, const char *what)
{
    char text[256];
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    (void)snprintf(text, sizeof text, "%s: %s", what, reason != NULL ? reason : "no reason given");
    (void)tls_pem_fail(file, message, text);
}

static int no_password(char *out, int size, int writing, void *context)
{
    (void)writing;
    if (size > 0)
        out[0] = '\0';
    *(bool *)context = true;
    return -1;
}

static bool is_end_of_pem(void)
{
    unsigned long e = ERR_peek_last_error();
    return ERR_GET_LIB(e) == ERR_LIB_PEM && ERR_GET_REASON(e) == PEM_R_NO_START_LINE;
}

/* Loads the server certificate, and the certificates between it and the CA. */
static bool use_chain(SSL_CTX *ctx, const struct io_file *file, struct slice text, char *message)
{
    BIO *in = BIO_new_mem_buf(text.at, (int)text.len);
    X509 *leaf = in != NULL ? PEM_read_bio_X509_AUX(in, NULL, NULL, NULL) : NULL;
    bool good = leaf != NULL;
    if (in == NULL)
        (void)tls_pem_fail(file, message, "out of memory");
    else if (!good && is_end_of_pem())
        (void)tls_pem_fail(file, message, "holds no certificate, want PEM");
    else if (!good)
        fail_openssl(file, message, "its certificate cannot be read");
    if (good && SSL_CTX_use_certificate(ctx, leaf) != 1) {
        fail_openssl(file, message, "its certificate cannot be used");
        good = false;
    }
    X509_free(leaf);
    while (good) {
        X509 *next = PEM_read_bio_X509(in, NULL, NULL, NULL);
        if (next == NULL) {
            good = is_end_of_pem();
            if (!good)
                fail_openssl(file, message, "one of its certificates cannot be read");
            break;
        }
        good = SSL_CTX_add0_chain_cert(ctx, next) == 1;
        if (!good) {
            X509_free(next);
            fail_openssl(file, message, "one of its certificates cannot be used");
        }
    }
    BIO_free(in);
    ERR_clear_error();
    return good;
}

static bool use_key(SSL_CTX *ctx, const struct io_file *cert, const struct io_file *file,
                    struct slice text, char *message)
{
    bool encrypted = false;
    BIO *in = BIO_new_mem_buf(text.at, (int)text.len);
    EVP_PKEY *key = in != NULL ? PEM_read_bio_PrivateKey(in, NULL, no_password, &encrypted) : NULL;
    BIO_free(in);
    if (key == NULL) {
        bool alone = strcmp(file->path, cert->path) == 0;
        (void)tls_pem_fail(file, message,
                           encrypted ? "its key is encrypted, want it without a password "
                                       "(openssl pkey -in FILE -out OTHER)"
                           : alone   ? "holds no private key: put it there as well, or give the "
                                       "setting for keys (tls-key, admin-tls-key)"
                                     : "holds no private key, want PEM");
        return false;
    }
    bool good = SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    if (!good) {
        char what[256];
        (void)snprintf(what, sizeof what, "is not the key of the certificate in \"%.160s\"",
                       cert->path);
        (void)tls_pem_fail(file, message, what);
    }
    return good;
}

bool tls_pem_pair(SSL_CTX *ctx, const struct io_file *cert, struct slice cert_text,
                  const struct io_file *key, struct slice key_text, char *message)
{
    return use_chain(ctx, cert, cert_text, message) && use_key(ctx, cert, key, key_text, message);
}

bool tls_pem_cas(SSL_CTX *ctx, const struct io_file *file, struct slice text, char *message)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    BIO *in = BIO_new_mem_buf(text.at, (int)text.len);
    unsigned count = 0;
    X509 *ca = NULL;
    while (in != NULL && (ca = PEM_read_bio_X509_AUX(in, NULL, NULL, NULL)) != NULL) {
        count += X509_STORE_add_cert(store, ca) == 1;
        X509_free(ca);
    }
    bool good = count > 0 && is_end_of_pem();
    if (in == NULL)
        (void)tls_pem_fail(file, message, "out of memory");
    else if (count == 0)
        (void)tls_pem_fail(file, message, "holds no certificate, want those of CAs in PEM");
    else if (!good)
        fail_openssl(file, message, "one of its certificates cannot be read");
    BIO_free(in);
    ERR_clear_error();
    return good;
}
