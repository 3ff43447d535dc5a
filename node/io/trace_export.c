#include "node/io/trace_export.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/version.h"
#include "node/io/curl_loop.h"

/* Large, so that a batch takes few writes: each takes a turn of the loop. */
enum { UPLOAD_BYTES = 512 << 10 };

struct trace_export {
    struct trace *trace;
    struct log *log;
    struct curl_loop curl;
    CURL *request; /* reused, together with the connection */
    struct curl_slist *headers;
    struct buf url;
    bool posting;
    size_t answer_bytes;
    uv_timer_t limit;            /* time limit of the flush */
    void (*done)(void *context); /* NULL: no flush is under way */
    void *done_context;
    char error[CURL_ERROR_SIZE];
};

/* Ignores the collector's answer except for the status. */
static size_t on_body(const char *bytes, size_t one, size_t len, void *context)
{
    struct trace_export *e = context;
    (void)bytes;
    (void)one;
    e->answer_bytes += len;
    return e->answer_bytes > TRACE_ANSWER_BYTES_MAX ? 0 : len;
}

static void report(struct trace_export *e, enum trace_news news, unsigned status, CURLcode result)
{
    const char *error = result == CURLE_OK    ? ""
                        : e->error[0] != '\0' ? e->error
                                              : curl_easy_strerror(result);
    if (news == TRACE_FAILS)
        log_event(e->log, LOG_WARN, "trace_export_failed", LOG_CSTR("endpoint", e->url.at),
                  LOG_UINT("status", status), LOG_CSTR("error", error),
                  LOG_CSTR("effect",
                           "spans wait, and are dropped if this lasts; requests are not affected"));
    else if (news == TRACE_WORKS)
        log_event(e->log, LOG_INFO, "trace_export_works", LOG_CSTR("endpoint", e->url.at));
}

static void flushed(struct trace_export *e)
{
    void (*done)(void *context) = e->done;
    if (done == NULL)
        return;
    e->done = NULL;
    (void)uv_timer_stop(&e->limit);
    done(e->done_context);
}

static void on_ended(void *context, CURL *request, CURLcode result)
{
    struct trace_export *e = context;
    long status = 0;
    curl_off_t retry_after = 0;
    (void)curl_multi_remove_handle(e->curl.multi, request);
    e->posting = false;
    if (result == CURLE_OK) {
        (void)curl_easy_getinfo(request, CURLINFO_RESPONSE_CODE, &status);
        (void)curl_easy_getinfo(request, CURLINFO_RETRY_AFTER, &retry_after);
    }
    const struct trace_answer answer = {
        .status = (unsigned)status, .retry_after_s = retry_after > 0 ? (uint64_t)retry_after : 0};
    enum trace_news news = trace_batch_ended(e->trace, &answer, uv_now(e->curl.loop));
    report(e, news, answer.status, result);
}

static void post(struct trace_export *e, struct slice batch)
{
    CURL *r = e->request;
    e->answer_bytes = 0;
    e->error[0] = '\0';
    CURLcode c = curl_easy_setopt(r, CURLOPT_POSTFIELDS, batch.at);
    if (c == CURLE_OK)
        c = curl_easy_setopt(r, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)batch.len);
    e->posting = c == CURLE_OK && curl_multi_add_handle(e->curl.multi, r) == CURLM_OK;
    if (!e->posting) {
        const struct trace_answer none = {0};
        enum trace_news news = trace_batch_ended(e->trace, &none, uv_now(e->curl.loop));
        report(e, news, 0, CURLE_OUT_OF_MEMORY);
    }
}

void trace_export_run(struct trace_export *e)
{
    if (e == NULL || e->posting || e->curl.stopped)
        return;
    struct slice batch = trace_batch(e->trace, uv_now(e->curl.loop));
    if (batch.len > 0)
        post(e, batch);
    else if (trace_is_empty(e->trace))
        flushed(e);
}

static void on_driven(void *context)
{
    trace_export_run(context);
}

static void on_limit(uv_timer_t *timer)
{
    flushed(timer->data);
}

void trace_export_flush(struct trace_export *e, void (*done)(void *context), void *context)
{
    if (e == NULL || e->curl.stopped) {
        done(context);
        return;
    }
    e->done = done;
    e->done_context = context;
    trace_flush(e->trace);
    CHECK(uv_timer_start(&e->limit, on_limit, TRACE_FLUSH_MS, 0) == 0);
    trace_export_run(e);
}

/* --- life ----------------------------------------------------------------------------------- */

/* A URL without a path gets the path of OTLP's specification. */
static int write_url(struct trace_export *e, struct slice endpoint)
{
    struct slice rest = slice_skip(endpoint, endpoint.len > 8 ? 8 : endpoint.len); /* "https://" */
    size_t path = slice_find(rest, '/');
    bool none = path >= rest.len, root = path + 1 == rest.len;
    int err = buf_append_slice(&e->url, endpoint);
    if (err == 0 && (none || root))
        err = buf_append_cstr(&e->url, none ? "/v1/traces" : "v1/traces");
    return err == 0 ? buf_append_char(&e->url, '\0') : err;
}

static int add_header(struct trace_export *e, const char *line)
{
    struct curl_slist *more = curl_slist_append(e->headers, line);
    e->headers = more != NULL ? more : e->headers;
    return more != NULL ? ERR_OK : ERR_NOMEM;
}

static int set_up(struct trace_export *e)
{
    CURL *r = e->request;
    CURLcode c = CURLE_OK;
#define SET(option, value) c = c != CURLE_OK ? c : curl_easy_setopt(r, option, value)
    SET(CURLOPT_URL, e->url.at);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_HTTPHEADER, e->headers);
    SET(CURLOPT_USERAGENT, "grapevine/" GRAPEVINE_VERSION);
    SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BYTES);
    SET(CURLOPT_TIMEOUT_MS, (long)TRACE_POST_MS);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* otherwise an exit waits for threads of look-ups */
    SET(CURLOPT_ERRORBUFFER, e->error);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, e);
#undef SET
    return c == CURLE_OK ? 0 : ERR_NOMEM;
}

int trace_export_open(struct trace_export **out, uv_loop_t *loop,
                      const struct node_options *options, struct trace *t, struct log *log)
{
    struct trace_export *e = calloc(1, sizeof *e);
    if (e == NULL)
        return ERR_NOMEM;
    *out = e; /* from now on the owner frees it, also after errors */
    e->trace = t;
    e->log = log;
    e->curl.ended = on_ended;
    e->curl.driven = on_driven;
    e->curl.context = e;
    CHECK(uv_timer_init(loop, &e->limit) == 0);
    e->limit.data = e;
    int err = curl_loop_open(&e->curl, loop);
    if (err == 0)
        err = write_url(e, slice_of_cstr(options->trace_endpoint));
    if (err == 0)
        err = add_header(e, "Content-Type: application/json");
    if (err == 0)
        err = add_header(e, "Expect:"); /* otherwise libcurl waits for a 100 before long bodies */
    e->request = err == 0 ? curl_easy_init() : NULL;
    return e->request != NULL ? set_up(e) : ERR_NOMEM;
}

void trace_export_stop(struct trace_export *e)
{
    if (e == NULL || e->curl.stopped)
        return;
    if (e->posting)
        (void)curl_multi_remove_handle(e->curl.multi, e->request);
    e->posting = false;
    if (e->request != NULL)
        curl_easy_cleanup(e->request);
    e->request = NULL;
    curl_loop_stop(&e->curl);
    uv_close((uv_handle_t *)&e->limit, NULL);
}

void trace_export_free(struct trace_export *e)
{
    if (e == NULL)
        return;
    curl_slist_free_all(e->headers);
    buf_free(&e->url);
    curl_loop_free(&e->curl);
    free(e);
}
