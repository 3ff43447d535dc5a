/* Out of memory, in our own code or in OpenSSL. Contexts of TLS are made from files, and again when
 * the files change. A failure is reported, the old context stays in use, and the change is applied
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

static void add(struct io_watch *w, const char *setting, const char *path, const char *text)
{
    w->texts[w->count] = (struct buf){.at = (char *)text, .len = strlen(text)};
    w->files[w->count++] = (struct io_file){
        .setting = setting, .path = path, .bytes_max = PEM_BYTES, .long_advice = "is too long"};
}

/* Checks that the context was made, or has a reason. */
static void judge(const void *made, const char *message, bool may_fail)
{
    assert_true(made != NULL || may_fail);
    assert_int_equal(made != NULL, message[0] == '\0');
    assert_int_equal(ERR_peek_error(), 0); /* no error is left for the next call of OpenSSL */
}

static void contexts(bool may_fail)
{
    struct io_watch clients = {.count = 0}, replicas = {.count = 0};
    add(&clients, "tls-cert", cert_path, pairs[0].cert);
    add(&clients, "tls-key", key_path, pairs[0].key);
    struct tls_server *server = tls_server_make(&clients);
    judge(server, clients.message, may_fail);
    tls_server_unref(server);
    add(&replicas, "replica-ca-file", cert_path, pairs[0].cert);
    add(&replicas, "replica-cert", cert_path, pairs[0].cert);
    add(&replicas, "replica-key", key_path, pairs[0].key);
    SSL_CTX *client = tls_client_make(&replicas);
    judge(client, replicas.message, may_fail);
    SSL_CTX_free(client);
    clients.message[0] = '\0'; /* the CAs of the system */
    client = tls_client_make(&clients);
    judge(client, clients.message, may_fail);
    SSL_CTX_free(client);
}

static struct tls_server *current, *made;

static int on_make(void *context)
{
    made = tls_server_make(context);
    return made != NULL ? 0 : ERR_NOMEM;
}

static void on_taken(void *context)
{
    (void)context;
    if (made == NULL)
        return;
    tls_server_unref(current);
    current = made;
    made = NULL;
}

static long serial_now(void)
{
    const X509 *cert = SSL_CTX_get0_certificate(current->ctx[0]);
    return ASN1_INTEGER_get(X509_get0_serialNumber(cert));
}

static void read_again(struct io_watch *w, uv_loop_t *loop)
{
    for (unsigned i = 0; i < READINGS; i++) {
        io_watches_tick(w->all, loop, w->due_ms);
        assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
    }
}

static void reload(bool may_fail)
{
    static struct log log;
    log_init(&log, on_log, on_clock, NULL);
    struct io_watches all = {.log = &log};
    struct io_watch w = {.all = &all, .make = on_make, .taken = on_taken, .context = &w};
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    add(&w, "tls-cert", cert_path, "");
    add(&w, "tls-key", key_path, "");
    memset(w.texts, 0, sizeof w.texts);
    current = NULL;
    write_pair(&pairs[0]);
    int err = io_watch_read(&w);
    assert_true(err == 0 || may_fail);
    if (err == 0) {
        io_watch_start(&w);
        assert_int_equal(serial_now(), 1);
        write_pair(&pairs[1]);
        read_again(&w, &loop);
        assert_true(serial_now() == 2 ||
                    (serial_now() == 1 && may_fail && (w.told[0] != '\0' || !w.settled)));
        failmalloc_enough();
        read_again(&w, &loop); /* the loss repairs itself, although the files stay */
        assert_int_equal(serial_now(), 2);
        assert_string_equal(w.told, "");
    } else {
        assert_true(w.message[0] != '\0');
    }
    io_watches_stop(&all);
    io_watch_free(&w);
    tls_server_unref(current);
    assert_int_equal(uv_loop_close(&loop), 0);
    ERR_clear_error();
}

static void contexts_of_tls(void **state)
{
    (void)state;
    contexts(false); /* OpenSSL's one-time allocations exist */
    print_message("%u allocations\n", failmalloc_some(contexts, RUNS));
}

static void changed_files_without_memory(void **state)
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
    return setenv("SSL_CERT_FILE", cert_path, 1); /* only a few system CAs */
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
        cmocka_unit_test(changed_files_without_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
