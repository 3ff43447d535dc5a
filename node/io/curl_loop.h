/* libcurl's multi interface in a libuv loop: non-blocking requests for a source of replicas
 * (replica_kubernetes.c) and the export of traces (trace_export.c). */
#ifndef NODE_IO_CURL_LOOP_H
#define NODE_IO_CURL_LOOP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

/* The owner sets the two callbacks and the context. */
struct curl_loop {
    uv_loop_t *loop;
    CURLM *multi; /* the owner adds and removes requests */
    uv_timer_t timer;
    bool stopped;
    /* Called when a request has ended. The owner removes the request. */
    void (*ended)(void *context, CURL *request, CURLcode result);
    /* Called after any activity of libcurl: requests may begin and end here. */
    void (*driven)(void *context);
    void *context;
};

/* After ERR_NOMEM too, the caller must call curl_loop_stop(). */
MUST_USE int curl_loop_open(struct curl_loop *c, uv_loop_t *loop);
/* Called after all requests are removed. The loop must run once more before curl_loop_free(). */
void curl_loop_stop(struct curl_loop *c);
/* Called after curl_loop_stop() and another run of the loop. */
void curl_loop_free(struct curl_loop *c);

#endif
