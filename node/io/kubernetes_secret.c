#include "node/io/kubernetes_secret.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_write.h"
#include "base/version.h"
#include "node/io/read_file.h"

enum { PATH_BYTES = 4096, TOKEN_BYTES_MAX = 65536, ANSWER_BYTES_MAX = 65536 };

struct creation {
    const char *folder;
    char *message;
    struct buf token, body, answer, url;
    struct curl_slist *headers;
};

static int fail(struct creation *c, int err, const char *what, const char *why)
{
    (void)snprintf(c->message, KUBERNETES_SECRET_MESSAGE, "%.390s%.120s", what, why);
    return err;
}

/* Appends the text of a file with a single line, without trailing white space. */
static int read_line(struct creation *c, const char *name, struct buf *out)
{
    char path[PATH_BYTES];
    char why[IO_FILE_MESSAGE];
    size_t start = out->len;
    (void)snprintf(path, sizeof path, "%s/%s", c->folder, name);
    struct io_file file = {.setting = "kubernetes-credentials",
                           .path = path,
                           .bytes_max = TOKEN_BYTES_MAX,
                           .long_advice = "is too long"};
    int err = io_file_read(&file, out, NULL, why);
    if (err != 0)
        return fail(c, err, why, "");
    while (out->len > start && (unsigned char)out->at[out->len - 1] <= ' ')
        out->len--;
    for (size_t i = start; i < out->len; i++) {
        if ((unsigned char)out->at[i] <= ' ' || (unsigned char)out->at[i] >= 0x7f)
            return fail(c, ERR_SYNTAX, path, " is no single line of visible ASCII");
    }
    return out->len > start ? 0 : fail(c, ERR_SYNTAX, path, " is empty");
}

static int write_url(struct creation *c)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (host == NULL || host[0] == '\0')
        return fail(c, ERR_NOT_FOUND, "KUBERNETES_SERVICE_HOST is not set: ",
                    "this works in a pod with a service account alone");
    struct buf *url = &c->url;
    int err = buf_printf(url, strchr(host, ':') != NULL ? "https://[%s]:%s" : "https://%s:%s", host,
                         port == NULL || port[0] == '\0' ? "443" : port);
    if (err == 0)
        err = buf_append_cstr(url, "/api/v1/namespaces/");
    if (err == 0)
        err = read_line(c, "namespace", url);
    if (err == 0)
        err = buf_append_cstr(url, "/secrets");
    return err == 0 ? buf_append_char(url, '\0') : err;
}

MUST_USE static int write_body(struct creation *c, const char *name, const char *key,
                               struct slice text)
{
    struct json_writer w = json_writer_of(&c->body);
    json_object_begin(&w);
    json_put_cstr(&w, "apiVersion", "v1");
    json_put_cstr(&w, "kind", "Secret");
    json_put_object(&w, "metadata");
    json_put_cstr(&w, "name", name);
    json_put_object(&w, "labels");
    json_put_cstr(&w, "app.kubernetes.io/name", "grapevine");
    json_object_end(&w);
    json_object_end(&w);
    json_put_cstr(&w, "type", "Opaque");
    json_put_object(&w, "stringData");
    json_put_slice(&w, key, text);
    json_object_end(&w);
    json_object_end(&w);
    return json_writer_finish(&w);
}

static int write_headers(struct creation *c)
{
    int err = buf_append_cstr(&c->token, "Authorization: Bearer ");
    if (err == 0)
        err = read_line(c, "token", &c->token);
    if (err == 0)
        err = buf_append_char(&c->token, '\0');
    if (err != 0)
        return err;
    c->headers = curl_slist_append(NULL, c->token.at);
    return c->headers != NULL && curl_slist_append(c->headers, "Content-Type: application/json") &&
                   curl_slist_append(c->headers, "Accept: application/json")
               ? 0
               : ERR_NOMEM;
}

static size_t on_body(char *bytes, size_t one, size_t len, void *context)
{
    struct creation *c = context;
    (void)one;
    return buf_append(&c->answer, bytes, len) == 0 ? len : 0;
}

static int judge(struct creation *c, const char *name, long status)
{
    char why[192];
    switch (status) {
    case 201:
        return 0;
    case 409:
        return ERR_EXISTS;
    case 401:
        return fail(c, ERR_DENIED, "401: the API server does not accept the token", "");
    case 403:
        return fail(c, ERR_DENIED,
                    "403: a Role with create of secrets is missing (deploy/kubernetes/key.yaml)",
                    "");
    default:
        (void)snprintf(why, sizeof why, "the API server answered %ld when \"%.64s\" was to be made",
                       status, name);
        return fail(c, ERR_UNREACHABLE, why, "");
    }
}

static int post(struct creation *c, CURL *e, const char *name)
{
    char ca[PATH_BYTES];
    char error[CURL_ERROR_SIZE] = "";
    (void)snprintf(ca, sizeof ca, "%s/ca.crt", c->folder);
    CURLcode code = CURLE_OK;
#define SET(option, value) code = code != CURLE_OK ? code : curl_easy_setopt(e, option, value)
    SET(CURLOPT_URL, c->url.at);
    SET(CURLOPT_PROTOCOLS_STR, "https");
    SET(CURLOPT_HTTPHEADER, c->headers);
    SET(CURLOPT_USERAGENT, "grapevine/" GRAPEVINE_VERSION);
    SET(CURLOPT_CAINFO, ca);
    SET(CURLOPT_CAPATH, NULL);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT, (long)KUBERNETES_SECRET_TIMEOUT_S);
    SET(CURLOPT_ERRORBUFFER, error);
    SET(CURLOPT_POSTFIELDS, c->body.at);
    SET(CURLOPT_POSTFIELDSIZE, (long)c->body.len);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, c);
#undef SET
    code = code != CURLE_OK ? code : curl_easy_perform(e);
    if (code != CURLE_OK)
        return fail(c, ERR_UNREACHABLE, "the API server does not answer: ",
                    error[0] != '\0' ? error : curl_easy_strerror(code));
    long status = 0;
    (void)curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
    return judge(c, name, status);
}

int kubernetes_secret_create(const char *folder, const char *name, const char *key,
                             struct slice text, char *message)
{
    struct creation c = {.folder = folder, .message = message, .answer = {.max = ANSWER_BYTES_MAX}};
    (void)snprintf(message, KUBERNETES_SECRET_MESSAGE, "out of memory");
    int err = write_url(&c);
    if (err == 0)
        err = write_headers(&c);
    if (err == 0)
        err = write_body(&c, name, key, text);
    if (err == 0) {
        CURL *e = curl_easy_init();
        err = e != NULL ? post(&c, e, name) : ERR_NOMEM;
        curl_easy_cleanup(e);
    }
    if (c.headers != NULL) /* wipes the token */
        explicit_bzero(c.headers->data, strlen(c.headers->data));
    curl_slist_free_all(c.headers);
    buf_free_wiped(&c.token);
    buf_free_wiped(&c.body);
    buf_free(&c.answer);
    buf_free(&c.url);
    return err;
}
