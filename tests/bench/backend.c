/* backend: the cheapest possible engine, to measure the cost of a router.
 *
 *   backend --listen HOST:PORT [--listen ...] [--pace-us N]
 *
 * One thread, epoll. Answers every POST at once: a chat completion of about 600 bytes, or 16
 * server-sent events if the body begins with "stream":true. The events are a single write, or with
 * --pace-us a write each. Answers the routes that a router probes: /health, /v1/models, /metrics.
 * Prints a line `listening on http://HOST:PORT` per port; port 0 lets the kernel choose.
 *
 * The backend trusts the clients: heads up to 16 KB, bodies with Content-Length only. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

enum { HEAD_BYTES = 16384, READ_BYTES = 1 << 20, EVENTS = 16 };

struct peer {
    int fd;
    bool listener, stream, close_after;
    size_t head_len;
    size_t body_left;
    bool in_body;
    unsigned pieces_left; /* of a paced stream */
    uint64_t due_ns;
    struct peer *next_due; /* first in, first out: the pace is the same for all */
    char head[HEAD_BYTES + 1];
};

static const char DONE[] = "data: [DONE]\n\n";
static char answer_plain[2048], answer_stream[16384], event_text[512], event_usage[512];
static char answer_models[512], answer_metrics[1024];
static const char ANSWER_EMPTY[] = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
static const char ANSWER_NONE[] = "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n"
                                  "content-length: 22\r\n\r\n{\"detail\":\"Not Found\"}";
static const char STREAM_HEAD[] =
    "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    "transfer-encoding: chunked\r\n\r\n";
static uint64_t pace_ns;
static struct peer *due_first, *due_last;
static int poller;

static uint64_t now_ns(void)
{
    struct timespec t;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void with_length(char *out, size_t size, const char *type, const char *body)
{
    int n = snprintf(out, size,
                     "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: %s\r\n"
                     "content-length: %zu\r\n\r\n%s",
                     type, strlen(body), body);
    CHECK(n > 0 && (size_t)n < size);
}

/* `event` as a chunk: the size, the line, the empty line. */
static void chunk(char *out, size_t size, const char *event)
{
    int n = snprintf(out, size, "%zx\r\n%s\r\n", strlen(event), event);
    CHECK(n > 0 && (size_t)n < size);
}

static void answers_build(void)
{
    char body[1024], event[400];
    (void)snprintf(
        body, sizeof body,
        "{\"id\":\"chatcmpl-b4799679660c65e4\",\"object\":\"chat.completion\",\"created\":"
        "1795273254,\"model\":\"sim\",\"choices\":[{\"index\":0,\"message\":{\"role\":"
        "\"assistant\",\"content\":\" the quick brown fox jumps over the lazy dog and then it "
        "does it again\",\"refusal\":null,\"tool_calls\":[]},\"logprobs\":null,"
        "\"finish_reason\":\"length\",\"stop_reason\":null}],\"service_tier\":null,"
        "\"usage\":{\"prompt_tokens\":256,\"total_tokens\":272,\"completion_tokens\":16,"
        "\"prompt_tokens_details\":{\"cached_tokens\":192}},\"prompt_logprobs\":null}");
    with_length(answer_plain, sizeof answer_plain, "application/json", body);
    with_length(answer_models, sizeof answer_models, "application/json",
                "{\"object\":\"list\",\"data\":[{\"id\":\"sim\",\"object\":\"model\",\"created\":"
                "1795273252,\"owned_by\":\"vllm\",\"max_model_len\":1000000}]}");
    with_length(answer_metrics, sizeof answer_metrics, "text/plain; version=0.0.4",
                "vllm:num_requests_running{engine=\"0\",model_name=\"sim\"} 0.0\n"
                "vllm:num_requests_waiting{engine=\"0\",model_name=\"sim\"} 0.0\n"
                "vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"sim\"} 0.0\n"
                "vllm:cache_config_info{block_size=\"16\",engine=\"0\",num_gpu_blocks=\"125000\"} "
                "1.0\n");
    (void)snprintf(
        event, sizeof event,
        "data: {\"id\":\"chatcmpl-b4799679660c65e4\",\"object\":\"chat.completion.chunk\","
        "\"created\":1795273254,\"model\":\"sim\",\"choices\":[{\"index\":0,\"delta\":"
        "{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n");
    chunk(event_text, sizeof event_text, event);
    (void)snprintf(
        event, sizeof event,
        "data: {\"id\":\"chatcmpl-b4799679660c65e4\",\"object\":\"chat.completion.chunk\","
        "\"created\":1795273254,\"model\":\"sim\",\"choices\":[],\"usage\":{\"prompt_tokens\":256,"
        "\"total_tokens\":272,\"completion_tokens\":16,\"prompt_tokens_details\":"
        "{\"cached_tokens\":192}}}\n\n");
    chunk(event_usage, sizeof event_usage, event);
    char done[64];
    chunk(done, sizeof done, DONE);
    (void)strcat(event_usage, done);
    (void)strcat(event_usage, "0\r\n\r\n");
    (void)strcpy(answer_stream, STREAM_HEAD);
    for (int i = 0; i < 16; i++)
        (void)strcat(answer_stream, event_text);
    (void)strcat(answer_stream, event_usage);
}

static void peer_close(struct peer *p)
{
    (void)close(p->fd);
    p->fd = -1;
    if (p->pieces_left == 0) /* otherwise the pacing frees it */
        free(p);
}

/* Answers are small and the socket's buffer is empty. If an answer does not fit at once, the peer
 * does not read, and is given up. */
static bool put(struct peer *p, const char *bytes)
{
    size_t n = strlen(bytes);
    return send(p->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static void pace_later(struct peer *p)
{
    p->due_ns = now_ns() + pace_ns;
    p->next_due = NULL;
    if (due_last != NULL)
        due_last->next_due = p;
    else
        due_first = p;
    due_last = p;
}

/* Writes all due pieces; returns the time until the next piece, or NULL. */
static const struct timespec *pace(void)
{
    static struct timespec wait;
    uint64_t now = now_ns();
    while (due_first != NULL && due_first->due_ns <= now) {
        struct peer *p = due_first;
        due_first = p->next_due;
        if (due_first == NULL)
            due_last = NULL;
        p->pieces_left--;
        if (p->fd < 0) {
            if (p->pieces_left == 0)
                free(p);
            else
                pace_later(p);
            continue;
        }
        (void)put(p, p->pieces_left == 0 ? event_usage : event_text);
        if (p->pieces_left > 0)
            pace_later(p);
    }
    if (due_first == NULL)
        return NULL;
    wait.tv_nsec = (long)((due_first->due_ns - now) % 1000000000);
    wait.tv_sec = (time_t)((due_first->due_ns - now) / 1000000000);
    return &wait;
}

static bool respond(struct peer *p)
{
    p->in_body = false;
    p->head_len = 0;
    if (!p->stream)
        return put(p, answer_plain) && !p->close_after;
    if (pace_ns == 0)
        return put(p, answer_stream) && !p->close_after;
    if (!put(p, STREAM_HEAD) || !put(p, event_text))
        return false;
    p->pieces_left = 16; /* 15 more events, and the end */
    pace_later(p);
    return true;
}

static bool respond_get(struct peer *p)
{
    const char *path = strchr(p->head, ' ');
    p->head_len = 0;
    if (path == NULL)
        return false;
    path++;
    if (strncmp(path, "/health ", 8) == 0 || strncmp(path, "/ping ", 6) == 0)
        return put(p, ANSWER_EMPTY);
    if (strncmp(path, "/v1/models ", 11) == 0)
        return put(p, answer_models);
    if (strncmp(path, "/metrics ", 9) == 0)
        return put(p, answer_metrics);
    return put(p, ANSWER_NONE);
}

/* Takes the head off `at`; false: give the connection up. */
static bool head_take(struct peer *p, char **at, size_t *len)
{
    size_t before = p->head_len;
    size_t n = *len < HEAD_BYTES - before ? *len : HEAD_BYTES - before;
    memcpy(p->head + before, *at, n);
    size_t from = before > 3 ? before - 3 : 0;
    char *end = memmem(p->head + from, before + n - from, "\r\n\r\n", 4);
    if (end == NULL) {
        p->head_len += n;
        *len = 0;
        return p->head_len < HEAD_BYTES;
    }
    size_t used = (size_t)(end - p->head) + 4 - before;
    *at += used;
    *len -= used;
    end[2] = '\0';
    p->close_after = strcasestr(p->head, "\r\nconnection: close") != NULL;
    if (strncmp(p->head, "POST ", 5) != 0)
        return respond_get(p);
    char *length = strcasestr(p->head, "\r\ncontent-length:");
    if (length == NULL)
        return false;
    p->body_left = strtoul(length + 17, NULL, 10);
    p->in_body = true;
    p->stream = false;
    /* The driver puts "stream" first, so the first bytes of the body have it, most often read
     * together with the head. */
    p->head_len = 0;
    return true;
}

static bool body_take(struct peer *p, char **at, size_t *len)
{
    size_t n = *len < p->body_left ? *len : p->body_left;
    if (!p->stream && n > 0)
        p->stream = memmem(*at, n < 256 ? n : 256, "\"stream\":true", 13) != NULL;
    *at += n;
    *len -= n;
    p->body_left -= n;
    return p->body_left > 0 || respond(p);
}

static void peer_read(struct peer *p)
{
    static char in[READ_BYTES];
    ssize_t n = recv(p->fd, in, sizeof in, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    char *at = in;
    size_t len = n > 0 ? (size_t)n : 0;
    bool alive = n > 0;
    while (alive && len > 0)
        alive = p->in_body ? body_take(p, &at, &len) : head_take(p, &at, &len);
    if (!alive)
        peer_close(p);
}

static void watch(int fd, bool listener)
{
    struct peer *p = calloc(1, sizeof *p);
    CHECK(p != NULL);
    p->fd = fd;
    p->listener = listener;
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): epoll holds the peer now */
    CHECK(epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e) == 0);
}

static void listen_on(const char *where)
{
    char host[64];
    const char *colon = strrchr(where, ':');
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (colon == NULL || (size_t)(colon - where) >= sizeof host) {
        (void)fprintf(stderr, "backend: --listen \"%s\" should be ADDRESS:PORT\n", where);
        exit(2);
    }
    memcpy(host, where, (size_t)(colon - where));
    host[colon - where] = '\0';
    address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    socklen_t size = sizeof address;
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1 || fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&address, size) != 0 || listen(fd, 512) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        (void)fprintf(stderr, "backend: cannot listen on %s: %s\n", where, strerror(errno));
        exit(1);
    }
    watch(fd, true);
    printf("listening on http://%s:%u\n", host, ntohs(address.sin_port));
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    poller = epoll_create1(0);
    CHECK(poller >= 0);
    answers_build();
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            (void)fprintf(stderr, "usage: backend [--pace-us N] --listen HOST:PORT ...\n");
            return 2;
        }
        if (strcmp(argv[i], "--listen") == 0) {
            listen_on(argv[i + 1]);
        } else if (strcmp(argv[i], "--pace-us") == 0) {
            pace_ns = strtoul(argv[i + 1], NULL, 10) * 1000;
        } else {
            (void)fprintf(stderr, "backend: %s is not --listen or --pace-us\n", argv[i]);
            return 2;
        }
    }
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_pwait2(poller, events, EVENTS, pace(), NULL);
        for (int i = 0; i < n; i++) {
            struct peer *p = events[i].data.ptr;
            if (!p->listener) {
                peer_read(p);
                continue;
            }
            int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC), one = 1;
            if (fd < 0)
                continue;
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            watch(fd, false);
        }
    }
}
