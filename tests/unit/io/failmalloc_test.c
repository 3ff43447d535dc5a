/* No memory, in our own code or in OpenSSL: contexts of TLS are made of files, and made anew when
 * the files change. What cannot be made is said, what was there goes on, and the change is followed
 * later. */
#include "tests/lib/failmalloc.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

#include "node/io/tls_internal.h"
#include "tests/lib/test.h"

enum { PATH_BYTES = 64, PEM_BYTES = 4096, READINGS = 3, RUNS = 60 };

static void *ssl_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return failmalloc_library(NULL, size);
}

static void *ssl_realloc(void *at, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return failmalloc_library(at, size);
}

static void ssl_free(void *at, const char *file, int line)
{
    (void)file;
    (void)line;
    failmalloc_library_free(at);
}

static char folder[] = "/tmp/grapevine-failmalloc-XXXXXX";
static char cert_path[PATH_BYTES], key_path[PATH_BYTES];

struct pair {
    char cert[PEM_BYTES], key[PEM_BYTES];
};

static struct pair pairs[2];

static void take_pem(BIO *from, char out[PEM_BYTES])
{
    int len = BIO_read(from, out, PEM_BYTES - 1);
    assert_true(len > 0);
    out[len] = '\0';
    BIO_free(from);
}

static void make_pair(struct pair *out, long serial)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    assert_true(key != NULL && cert != NULL);
    X509_NAME *name = X509_get_subject_name(cert);
    assert_int_equal(X509_set_version(cert, 2), 1);
    assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(cert), serial), 1);
    assert_non_null(X509_gmtime_adj(X509_getm_notBefore(cert), 0));
    assert_non_null(X509_gmtime_adj(X509_getm_notAfter(cert), 86400));
    assert_int_equal(X509_set_pubkey(cert, key), 1);
    assert_int_equal(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                                (const unsigned char *)"localhost", -1, -1, 0),
                     1);
    assert_int_equal(X509_set_issuer_name(cert, name), 1);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    BIO *text = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_X509(text, cert), 1);
    take_pem(text, out->cert);
    text = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PrivateKey(text, key, NULL, NULL, 0, NULL, NULL), 1);
    take_pem(text, out->key);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void write_pair(const struct pair *pair)
{
    failmalloc_spare(true);
    write_file(cert_path, pair->cert);
    write_file(key_path, pair->key);
    failmalloc_spare(false);
}

static void on_log(void *context, struct slice line)
{
    (void)context;
    (void)line;
}

static uint64_t on_clock(void *context)
{
    (void)context;
    return 1000;
}

/* --- the scenarios --------------------------------------------------------------------------- */

static void name_pair(struct tls_files *f, bool cas)
{
    if (cas)
        f->at[f->count++] =
            (struct tls_file){.setting = "replica-ca-file", .path = cert_path, .cas = true};
    f->at[f->count++] = (struct tls_file){.setting = "tls-cert", .path = cert_path};
    f->at[f->count++] = (struct tls_file){.setting = "tls-key", .path = key_path, .secret = true};
}

/* Made, or not and said why. */
static void judge(const void *made, const char *message, bool may_fail)
{
    assert_true(made != NULL || may_fail);
    assert_int_equal(made != NULL, message[0] == '\0');
    assert_int_equal(ERR_peek_error(), 0); /* nothing is left to the next call of OpenSSL */
}

static void contexts(bool may_fail)
{
    char message[TLS_MESSAGE] = "";
    const struct buf texts[] = {{.at = pairs[0].cert, .len = strlen(pairs[0].cert)},
                                {.at = pairs[0].cert, .len = strlen(pairs[0].cert)},
                                {.at = pairs[0].key, .len = strlen(pairs[0].key)}};
    struct tls_files clients = {.count = 0}, replicas = {.count = 0}, none = {.count = 0};
    name_pair(&clients, false);
    struct tls_server *server = tls_server_make(&clients, texts + 1, message);
    judge(server, message, may_fail);
    tls_server_unref(server);
    message[0] = '\0';
    name_pair(&replicas, true);
    SSL_CTX *client = tls_client_make(&replicas, texts, message);
    judge(client, message, may_fail);
    SSL_CTX_free(client);
    message[0] = '\0';
    name_pair(&none, false); /* the CAs of the system */
    client = tls_client_make(&none, texts + 1, message);
    judge(client, message, may_fail);
    SSL_CTX_free(client);
}

static struct tls_server *current;

static void on_take(void *context, void *made)
{
    (void)context;
    tls_server_unref(current);
    current = made;
}

static void on_drop(void *made)
{
    tls_server_unref(made);
}

static long serial_now(void)
{
    const X509 *cert = SSL_CTX_get0_certificate(current->ctx[0]);
    return ASN1_INTEGER_get(X509_get0_serialNumber(cert));
}

static void read_again(struct tls_files *f, uv_loop_t *loop)
{
    for (unsigned i = 0; i < READINGS; i++) {
        tls_files_tick(f, loop, f->due_ms);
        assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
    }
}

static void reload(bool may_fail)
{
    static struct log log;
    log_init(&log, on_log, on_clock, NULL);
    struct tls_files f = {.make = tls_server_make, .take = on_take, .drop = on_drop, .log = &log};
    char message[TLS_MESSAGE] = "";
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    name_pair(&f, false);
    current = NULL;
    write_pair(&pairs[0]);
    int err = tls_files_open(&f, message);
    assert_true(err == 0 || may_fail);
    if (err == 0) {
        assert_int_equal(serial_now(), 1);
        write_pair(&pairs[1]);
        read_again(&f, &loop);
        assert_true(serial_now() == 2 || (serial_now() == 1 && may_fail && f.told[0] != '\0'));
        failmalloc_enough();
        read_again(&f, &loop); /* the files have not changed since: that must not matter */
        assert_int_equal(serial_now(), 2);
        assert_string_equal(f.told, "");
    } else {
        assert_true(message[0] != '\0');
    }
    tls_files_free(&f);
    tls_server_unref(current);
    assert_int_equal(uv_loop_close(&loop), 0);
    ERR_clear_error();
}

static void contexts_of_tls(void **state)
{
    (void)state;
    contexts(false); /* what OpenSSL makes once and keeps is there */
    print_message("%u allocations\n", failmalloc_some(contexts, RUNS));
}

static void files_that_change(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_some(reload, RUNS));
}

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(cert_path, sizeof cert_path, "%s/cert", folder);
    (void)snprintf(key_path, sizeof key_path, "%s/key", folder);
    make_pair(&pairs[0], 1);
    make_pair(&pairs[1], 2);
    write_pair(&pairs[0]);
    return setenv("SSL_CERT_FILE", cert_path, 1); /* the CAs of the system: few */
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(cert_path);
    (void)unlink(key_path);
    return rmdir(folder);
}

int main(void)
{
    if (CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free) != 1)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contexts_of_tls),
        cmocka_unit_test(files_that_change),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
