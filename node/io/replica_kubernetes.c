#include "node/io/replica_kubernetes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/version.h"
#include "node/discover/kubernetes.h"
#include "node/io/curl_loop.h"
#include "node/io/random.h"
#include "node/io/read_file.h"

enum { FOLDER_BYTES = 4096, PATH_BYTES = FOLDER_BYTES + 16, HOST_BYTES = 300 };

/* A service of --replica-kubernetes. */
struct source {
    struct replica_kubernetes *owner;
    struct discover_kubernetes *kubernetes;
    int number;    /* number of the source in node/discover */
    CURL *request; /* NULL: none is under way */
    struct curl_slist *headers;
    bool answered;
    char error[CURL_ERROR_SIZE];
};

struct replica_kubernetes {
    uv_loop_t *loop;
    struct discover *discover;
    struct log *log;
    const char *folder;      /* the service account's */
    char server[HOST_BYTES]; /* "https://10.96.0.1:443" */
    struct curl_loop curl;
    uv_timer_t wake; /* wakes the sources */
    bool stopped;
    bool acting;
    unsigned count;
    struct source sources[NODE_SOURCES_MAX];
};

static uint64_t now_of(const struct replica_kubernetes *r)
{
    return uv_now(r->loop);
}

/* --- the folder of the service account ------------------------------------------------------ */

static void path_of(const struct replica_kubernetes *r, const char *name, char *out)
{
    (void)snprintf(out, PATH_BYTES, "%s/%s", r->folder, name);
}

/* Appends a file of a single line, without trailing white space; `message` has IO_FILE_MESSAGE
 * bytes. */
static int read_line(const struct replica_kubernetes *r, const char *name, struct buf *out,
                     char *message)
{
    char path[PATH_BYTES];
    path_of(r, name, path);
    struct io_file file = {.setting = "kubernetes-credentials",
                           .path = path,
                           .bytes_max = REPLICA_KUBERNETES_TOKEN_MAX,
                           .long_advice = "is too long"};
    size_t start = out->len;
    int err = io_file_read(&file, out, NULL, message);
    while (err == 0 && out->len > start && (unsigned char)out->at[out->len - 1] <= ' ')
        out->len--;
    if (err == 0 && out->len == start)
        err = io_file_fail(&file, message, "is empty");
    for (size_t i = start; i < out->len && err == 0; i++) {
        if ((unsigned char)out->at[i] <= ' ' || (unsigned char)out->at[i] >= 0x7f)
            err = io_file_fail(&file, message, "is no single line of visible ASCII");
    }
    return err;
}

int replica_kubernetes_check(const char *folder, char *message)
{
    struct replica_kubernetes r = {.folder = folder};
    struct buf text = {0};
    char path[PATH_BYTES];
    _Static_assert((int)IO_FILE_MESSAGE <= (int)REPLICA_KUBERNETES_MESSAGE, "it takes them");
    int err = read_line(&r, "token", &text, message);
    buf_free_wiped(&text);
    path_of(&r, "ca.crt", path);
    struct io_file ca = {.setting = "kubernetes-credentials",
                         .path = path,
                         .bytes_max = REPLICA_KUBERNETES_CA_MAX,
                         .long_advice = "is too long"};
    if (err == 0)
        err = io_file_read(&ca, &text, NULL, message);
    buf_free(&text);
    return err;
}

/* --- requests ------------------------------------------------------------------------------- */

/* Handles a line of the head. The blank line at the end passes status and Retry-After to the
 * source. */
static size_t on_header(char *line, size_t one, size_t len, void *context)
{
    struct source *s = context;
    (void)one;
    long status = 0;
    if (!slice_equal(slice_of(line, len), SLICE("\r\n")) || s->answered ||
        curl_easy_getinfo(s->request, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK || status < 200)
        return len;
    curl_off_t retry_after = 0;
    (void)curl_easy_getinfo(s->request, CURLINFO_RETRY_AFTER, &retry_after);
    s->answered = true;
    discover_kubernetes_answered(s->kubernetes, (unsigned)status,
                                 retry_after > 0 ? (uint64_t)retry_after : 0, now_of(s->owner));
    return len;
}

static size_t on_body(char *bytes, size_t one, size_t len, void *context)
{
    struct source *s = context;
    (void)one;
    if (s->answered)
        discover_kubernetes_received(s->kubernetes, slice_of(bytes, len), now_of(s->owner));
    return len;
}

static void drop_request(struct source *s)
{
    if (s->request != NULL) {
        (void)curl_multi_remove_handle(s->owner->curl.multi, s->request);
        curl_easy_cleanup(s->request);
    }
    s->request = NULL;
    if (s->headers != NULL) /* wipes the token */
        explicit_bzero(s->headers->data, strlen(s->headers->data));
    curl_slist_free_all(s->headers);
    s->headers = NULL;
}

/* Reads the token, which changes about once an hour, and makes a header. */
static int read_token(struct source *s)
{
    char message[IO_FILE_MESSAGE];
    struct buf header = {0};
    int err = buf_append_cstr(&header, "Authorization: Bearer ");
    if (err == 0) {
        err = read_line(s->owner, "token", &header, message);
        if (err != 0)
            (void)slice_to_cstr(slice_of_cstr(message), s->error, sizeof s->error);
    }
    if (err == 0)
        err = buf_append_char(&header, '\0');
    if (err == 0) {
        s->headers = curl_slist_append(NULL, header.at);
        struct curl_slist *more = NULL;
        if (s->headers != NULL)
            more = curl_slist_append(s->headers, "Accept: application/json");
        err = more != NULL ? 0 : ERR_NOMEM;
    }
    buf_free_wiped(&header);
    return err;
}

static int set_up(struct source *s, const char *url, const char *ca)
{
    CURL *e = s->request;
    CURLcode c = CURLE_OK;
#define SET(option, value) c = c != CURLE_OK ? c : curl_easy_setopt(e, option, value)
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_HTTPHEADER, s->headers);
    SET(CURLOPT_USERAGENT, "grapevine/" GRAPEVINE_VERSION);
    SET(CURLOPT_CAINFO, ca);
    SET(CURLOPT_CAPATH, NULL);
    SET(CURLOPT_CA_CACHE_TIMEOUT, 0L); /* otherwise a new CA takes effect after a day */
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);               /* otherwise an exit waits for threads of look-ups */
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* no heads of a proxy's answer to CONNECT */
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, (long)REPLICA_KUBERNETES_KEEPALIVE_S);
    SET(CURLOPT_TCP_KEEPINTVL, (long)REPLICA_KUBERNETES_KEEPALIVE_S);
    SET(CURLOPT_ERRORBUFFER, s->error);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, s);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, s);
    SET(CURLOPT_PRIVATE, s);
#undef SET
    return c == CURLE_OK ? 0 : ERR_NOMEM;
}

static void ask(struct source *s)
{
    struct replica_kubernetes *r = s->owner;
    char ca[PATH_BYTES];
    struct buf url = {0};
    path_of(r, "ca.crt", ca);
    s->answered = false;
    s->error[0] = '\0';
    int err = read_token(s);
    if (err == 0)
        err = buf_printf(&url, "%s%s", r->server, discover_kubernetes_target(s->kubernetes));
    if (err == 0) {
        s->request = curl_easy_init();
        err = s->request != NULL ? set_up(s, url.at, ca) : ERR_NOMEM;
    }
    if (err == 0 && curl_multi_add_handle(r->curl.multi, s->request) != CURLM_OK)
        err = ERR_NOMEM;
    log_event(r->log, LOG_DEBUG, "kubernetes_asked",
              LOG_CSTR("target", discover_kubernetes_target(s->kubernetes)));
    buf_free(&url);
    if (err == 0)
        return;
    drop_request(s);
    discover_kubernetes_ended(s->kubernetes, s->error[0] != '\0' ? s->error : err_text(err),
                              now_of(r));
}

/* --- the sources' actions --------------------------------------------------------------------- */

/* Does what the source needs now. Returns the time of the next call. */
static uint64_t act(struct source *s)
{
    struct discover *d = s->owner->discover;
    uint64_t now = now_of(s->owner);
    uint64_t until = 0;
    unsigned count;
    const struct discover_entry *entries;
    for (;;) {
        switch (discover_kubernetes_next(s->kubernetes, now, &until)) {
        case DISCOVER_KUBERNETES_WAIT:
            return until;
        case DISCOVER_KUBERNETES_ASK:
            ask(s);
            break;
        case DISCOVER_KUBERNETES_CANCEL:
            drop_request(s);
            break;
        case DISCOVER_KUBERNETES_LISTED:
            entries = discover_kubernetes_entries(s->kubernetes, &count);
            discover_hint(d, (unsigned)s->number, discover_kubernetes_hint(s->kubernetes));
            if (discover_list(d, (unsigned)s->number, entries, count, now) != 0) /* logs the
                                                                                  * reason */
                discover_kubernetes_refused(s->kubernetes, now);
            break;
        case DISCOVER_KUBERNETES_SAME:
            discover_same(d, (unsigned)s->number, now);
            break;
        case DISCOVER_KUBERNETES_FAILED:
            discover_failed(d, (unsigned)s->number, discover_kubernetes_why(s->kubernetes), now);
            break;
        }
    }
}

/* Must not be called in a callback of libcurl, because requests begin and end here. */
static void act_all(struct replica_kubernetes *r);

static void on_wake(uv_timer_t *timer)
{
    act_all(timer->data);
}

static void act_all(struct replica_kubernetes *r)
{
    if (r->stopped || r->acting)
        return;
    r->acting = true;
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < r->count; i++) {
        uint64_t until = act(&r->sources[i]);
        next = until < next ? until : next;
    }
    r->acting = false;
    uint64_t now = now_of(r);
    CHECK(uv_timer_start(&r->wake, on_wake, next > now ? next - now : 1, 0) == 0);
}

/* --- results from libcurl --------------------------------------------------------------------- */

static bool of_ca(CURLcode result)
{
    return result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE;
}

static void on_ended(void *context, CURL *request, CURLcode result)
{
    struct replica_kubernetes *r = context;
    struct source *s = NULL;
    CHECK(curl_easy_getinfo(request, CURLINFO_PRIVATE, (char **)&s) == CURLE_OK);
    drop_request(s);
    char error[CURL_ERROR_SIZE + 64];
    (void)snprintf(error, sizeof error, "%s%s",
                   s->error[0] != '\0' ? s->error : curl_easy_strerror(result),
                   of_ca(result) ? " (by ca.crt in kubernetes-credentials)" : "");
    discover_kubernetes_ended(s->kubernetes, result == CURLE_OK ? NULL : error, now_of(r));
}

static void on_driven(void *context)
{
    act_all(context);
}

/* --- life ----------------------------------------------------------------------------------- */

/* Refuses a service listed both with the namespace and without. */
static int refuse_twice(const struct replica_kubernetes *r, const char *text)
{
    log_event(r->log, LOG_ERROR, "kubernetes_refused", LOG_CSTR("service", text),
              LOG_CSTR("error", "want each source only once: this one is repeated"));
    return ERR_EXISTS;
}

static int refuse(const struct replica_kubernetes *r, const char *error)
{
    log_event(
        r->log, LOG_ERROR, "kubernetes_refused", LOG_CSTR("error", error),
        LOG_CSTR(
            "want",
            "run the router in a pod with a service account, or use replica-dns or replica-file"));
    return ERR_NOT_FOUND;
}

static int find_server(struct replica_kubernetes *r)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (host == NULL || host[0] == '\0')
        return refuse(r, "KUBERNETES_SERVICE_HOST is not set");
    if (port == NULL || port[0] == '\0')
        port = "443";
    int len = snprintf(r->server, sizeof r->server,
                       strchr(host, ':') != NULL ? "https://[%s]:%s" : "https://%s:%s", host, port);
    return len > 0 && (size_t)len < sizeof r->server
               ? 0
               : refuse(r, "KUBERNETES_SERVICE_HOST is too long");
}

static int own_namespace(const struct replica_kubernetes *r, struct discover_service *service)
{
    char message[IO_FILE_MESSAGE];
    struct buf text = {0};
    int err = read_line(r, "namespace", &text, message);
    if (err == 0 && !slice_to_cstr(buf_slice(&text), service->namespace, sizeof service->namespace))
        err = ERR_RANGE;
    buf_free(&text);
    return err != 0 ? refuse(r, err == ERR_RANGE ? "the namespace is too long" : message) : 0;
}

static int add_source(struct replica_kubernetes *r, const char *text)
{
    struct source *s = &r->sources[r->count];
    struct discover_service service;
    CHECK(discover_service_parse(slice_of_cstr(text), &service) == NULL);
    int err = service.namespace[0] == '\0' ? own_namespace(r, &service) : 0;
    if (err != 0)
        return err;
    char name[sizeof service];
    (void)snprintf(name, sizeof name, "%s/%s%s%s", service.namespace, service.name,
                   service.port[0] != '\0' ? ":" : "", service.port);
    s->owner = r;
    s->number = discover_source(r->discover, "kubernetes", slice_of_cstr(name));
    if (s->number < 0)
        return s->number == ERR_EXISTS ? refuse_twice(r, text) : s->number;
    err = discover_source_labels(r->discover, (unsigned)s->number, &service.labels);
    if (err != 0)
        return err;
    uint64_t seed;
    io_random_bytes(&seed, sizeof seed);
    err = discover_kubernetes_create(&s->kubernetes, &service, seed, now_of(r));
    r->count += err == 0;
    return err;
}

int replica_kubernetes_open(struct replica_kubernetes **out, uv_loop_t *loop,
                            const struct node_options *options, struct discover *d, struct log *log)
{
    CHECK(options->replica_kubernetes.count <= NODE_SOURCES_MAX);
    struct replica_kubernetes *r = calloc(1, sizeof *r);
    if (r == NULL)
        return ERR_NOMEM;
    r->loop = loop;
    r->discover = d;
    r->log = log;
    r->folder = options->kubernetes_credentials;
    CHECK(uv_timer_init(loop, &r->wake) == 0);
    r->wake.data = r;
    r->curl.ended = on_ended;
    r->curl.driven = on_driven;
    r->curl.context = r;
    *out = r; /* from now on the owner frees it, also after errors */
    int err = curl_loop_open(&r->curl, loop);
    if (err == 0)
        err = find_server(r);
    for (unsigned i = 0; i < options->replica_kubernetes.count && err == 0; i++)
        err = add_source(r, options->replica_kubernetes.at[i]);
    if (err == 0)
        CHECK(uv_timer_start(&r->wake, on_wake, 0, 0) == 0);
    return err;
}

void replica_kubernetes_stop(struct replica_kubernetes *r)
{
    if (r->stopped)
        return;
    r->stopped = true;
    for (unsigned i = 0; i < r->count; i++)
        drop_request(&r->sources[i]);
    curl_loop_stop(&r->curl);
    uv_close((uv_handle_t *)&r->wake, NULL);
}

void replica_kubernetes_free(struct replica_kubernetes *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->count; i++)
        discover_kubernetes_destroy(r->sources[i].kubernetes);
    curl_loop_free(&r->curl);
    free(r);
}
