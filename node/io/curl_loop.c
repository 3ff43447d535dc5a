#include "node/io/curl_loop.h"

#include <stdlib.h>

#include "base/check.h"

/* A socket of libcurl. */
struct watched {
    uv_poll_t poll;
    struct curl_loop *owner;
    curl_socket_t fd;
};

static void take_ended(struct curl_loop *c)
{
    int left;
    CURLMsg *m;
    while ((m = curl_multi_info_read(c->multi, &left)) != NULL) {
        CURL *request = m->easy_handle;
        CURLcode result = m->data.result; /* read now: `m` is gone when the request is removed */
        if (m->msg == CURLMSG_DONE)
            c->ended(c->context, request, result);
    }
}

static void drive(struct curl_loop *c, curl_socket_t fd, int events)
{
    int running;
    if (c->stopped)
        return;
    (void)curl_multi_socket_action(c->multi, fd, events, &running);
    take_ended(c);
    c->driven(c->context);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct watched *w = CONTAINER_OF(poll, struct watched, poll);
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    drive(w->owner, w->fd, flags);
}

static void on_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF((uv_poll_t *)handle, struct watched, poll));
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket)
{
    struct curl_loop *c = context;
    struct watched *w = socket;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        if (w != NULL)
            uv_close((uv_handle_t *)&w->poll, on_closed);
        (void)curl_multi_assign(c->multi, fd, NULL);
        return 0;
    }
    if (w == NULL) {
        w = calloc(1, sizeof *w);
        if (w == NULL || uv_poll_init_socket(c->loop, &w->poll, fd) != 0) {
            free(w);
            return -1; /* libcurl fails the requests */
        }
        w->owner = c;
        w->fd = fd;
        (void)curl_multi_assign(c->multi, fd, w);
    }
    int events =
        (what != CURL_POLL_OUT ? UV_READABLE : 0) | (what != CURL_POLL_IN ? UV_WRITABLE : 0);
    return uv_poll_start(&w->poll, events, on_readable) == 0 ? 0 : -1;
}

static void on_timer(uv_timer_t *timer)
{
    drive(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long ms, void *context)
{
    struct curl_loop *c = context;
    (void)multi;
    if (ms < 0)
        return uv_timer_stop(&c->timer);
    return uv_timer_start(&c->timer, on_timer, (uint64_t)ms, 0);
}

int curl_loop_open(struct curl_loop *c, uv_loop_t *loop)
{
    c->loop = loop;
    CHECK(uv_timer_init(loop, &c->timer) == 0);
    c->timer.data = c;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return ERR_NOMEM;
    c->multi = curl_multi_init();
    if (c->multi == NULL)
        return ERR_NOMEM;
    CURLMcode result = CURLM_OK;
#define SET(option, value)                                                                         \
    result = result != CURLM_OK ? result : curl_multi_setopt(c->multi, option, value)
    SET(CURLMOPT_SOCKETFUNCTION, on_socket);
    SET(CURLMOPT_SOCKETDATA, c);
    SET(CURLMOPT_TIMERFUNCTION, on_timeout);
    SET(CURLMOPT_TIMERDATA, c);
#undef SET
    return result == CURLM_OK ? 0 : ERR_NOMEM;
}

void curl_loop_stop(struct curl_loop *c)
{
    c->stopped = true;
    if (c->multi != NULL)
        (void)curl_multi_cleanup(c->multi); /* closes idle connections */
    c->multi = NULL;
    uv_close((uv_handle_t *)&c->timer, NULL);
}

void curl_loop_free(struct curl_loop *c)
{
    (void)c;
    curl_global_cleanup();
}
