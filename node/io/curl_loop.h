/* libcurl's multi interface in a libuv loop: requests that block nothing, for a source of replicas
 * (replica_kubernetes.c) and the export of traces (trace_export.c). */
#ifndef NODE_IO_CURL_LOOP_H
#define NODE_IO_CURL_LOOP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

/* The three callbacks and the context are set by its owner. */
struct curl_loop {
    uv_loop_t *loop;
    CURLM *multi; /* the owner adds requests and removes them */
    uv_timer_t timer;
    bool stopped;
    /* A request has ended. It is to be removed. */
    void (*ended)(void *context, CURL *request, CURLcode result);
    /* After whatever libcurl did: requests may begin and end here. */
    void (*driven)(void *context);
    void *context;
};

/* ERR_NOMEM: curl_loop_stop() is called all the same. */
MUST_USE int curl_loop_open(struct curl_loop *c, uv_loop_t *loop);
/* All requests are removed. The loop has to run once more before the memory goes. */
void curl_loop_stop(struct curl_loop *c);
/* Behind curl_loop_stop(), when the loop has run. */
void curl_loop_free(struct curl_loop *c);

#endif
