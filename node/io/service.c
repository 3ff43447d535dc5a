#include "node/io/service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/io/shell.h"

enum { MESSAGE_BYTES = 512 };

/* Parses the socket's address. "@name" is an abstract socket: the name begins with a zero byte, and
 * has none at the end. */
static bool read_address(struct service *s, const char *path)
{
    size_t len = path != NULL ? strlen(path) : 0;
    if (len < 2 || len >= sizeof s->to.sun_path || (path[0] != '/' && path[0] != '@'))
        return false;
    s->to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(s->to.sun_path, path, len);
    if (path[0] == '@')
        s->to.sun_path[0] = '\0';
    s->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (path[0] == '/'));
    return true;
}

/* Returns the value of the environment's variable; 0: it is not a number. */
static uint64_t number_of(const char *name)
{
    const char *text = getenv(name);
    uint64_t value;
    return text != NULL && slice_to_u64(slice_of_cstr(text), &value) == 0 ? value : 0;
}

void service_open(struct service *s)
{
    *s = (struct service){.fd = -1};
    if (!read_address(s, getenv("NOTIFY_SOCKET")))
        return;
    s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    s->asked = s->fd >= 0;
    uint64_t process = number_of("WATCHDOG_PID");
    if (process == 0 || process == (uint64_t)getpid())
        s->watchdog_ms = number_of("WATCHDOG_USEC") / 1000 / 3;
}

void service_close(struct service *s)
{
    if (s->asked)
        (void)close(s->fd);
    s->asked = false;
}

static unsigned replicas_up(const struct node_router *r)
{
    unsigned up = 0;
    for (unsigned k = 0; k < node_router_replica_count(r); k++)
        up +=
            node_router_replica_present(r, k) && node_router_replica_health(r, k) == NODE_HEALTH_UP;
    return up;
}

static bool names_one(const struct node_router *r)
{
    for (unsigned k = 0; k < node_router_replica_count(r); k++)
        if (node_router_replica_present(r, k))
            return true;
    return false;
}

static void write_status(const struct shell *shell, char *out)
{
    const struct node_options *o = shell->options;
    const char *why = proxy_not_ready(shell->proxy);
    const char *first = o->replica_file.count > 0 ? o->replica_file.at[0] : "replica";
    if (shell->draining)
        (void)snprintf(out, SERVICE_STATUS_BYTES, "%s: open requests are finished",
                       shell->closed ? "The client port is closed" : "Draining");
    else if (why == NULL)
        (void)snprintf(out, SERVICE_STATUS_BYTES, "Ready: replicas up: %u",
                       replicas_up(shell->router));
    else if (!names_one(shell->router))
        (void)snprintf(out, SERVICE_STATUS_BYTES,
                       "Not ready: no replica is named yet; name one in %s", first);
    else
        (void)snprintf(out, SERVICE_STATUS_BYTES, "Not ready: %s", why);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '\n' ? ' ' : *c;
}

/* Sends a message. Returns false if the message was not sent; a later tick then tries again. */
static bool send_message(struct shell *shell, const char *message)
{
    struct service *s = &shell->service;
    ssize_t sent = sendto(s->fd, message, strlen(message), MSG_NOSIGNAL,
                          (const struct sockaddr *)&s->to, s->to_len);
    if (sent >= 0 || errno == EAGAIN || errno == EINTR)
        return sent >= 0;
    if (!s->complained)
        log_event(shell->log, LOG_WARN, "service_manager_unreachable",
                  LOG_CSTR("error", strerror(errno)));
    s->complained = true;
    return false;
}

/* Sends RELOADING=1 and READY=1 as separate messages, because the manager reads each as a whole. */
static void tell_reload(struct shell *shell)
{
    struct service *s = &shell->service;
    char message[MESSAGE_BYTES];
    if (!s->asked || !s->ready || s->stopping)
        return;
    if (s->reload == SERVICE_RELOAD_DUE) {
        (void)snprintf(message, sizeof message, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\n",
                       s->reload_us);
        if (!send_message(shell, message))
            return;
        s->reload = s->reload_over ? SERVICE_RELOADED : SERVICE_RELOADING;
    }
    if (s->reload == SERVICE_RELOADED && send_message(shell, "READY=1\n"))
        s->reload = SERVICE_STEADY;
}

void service_reloads(struct shell *shell)
{
    struct service *s = &shell->service;
    s->reload = SERVICE_RELOAD_DUE;
    s->reload_over = false;
    s->reload_us = uv_hrtime() / 1000; /* CLOCK_MONOTONIC */
    tell_reload(shell);
}

void service_reloaded(struct shell *shell)
{
    struct service *s = &shell->service;
    s->reload_over = true;
    if (s->reload == SERVICE_RELOADING)
        s->reload = SERVICE_RELOADED;
    tell_reload(shell);
}

bool service_waits(const struct service *s)
{
    bool often = s->watchdog_ms > 0 && s->watchdog_ms < PROXY_TICK_IDLE_MS;
    bool unsaid = !s->ready || s->reload == SERVICE_RELOAD_DUE || s->reload == SERVICE_RELOADED;
    return s->asked && (often || unsaid);
}

void service_tick(struct shell *shell, uint64_t now_ms)
{
    struct service *s = &shell->service;
    if (!s->asked)
        return;
    tell_reload(shell);
    char message[MESSAGE_BYTES] = "";
    char status[SERVICE_STATUS_BYTES];
    size_t len = 0;
    const uint64_t stop_ms = shell->options->drain_delay_ms + shell->options->drain_timeout_ms;
    bool alive = s->watchdog_ms > 0 && now_ms >= s->alive_at_ms;
    bool stopping = shell->draining && !s->stopping;
    if (!s->ready)
        len += (size_t)snprintf(message + len, sizeof message - len, "READY=1\n");
    if (alive)
        len += (size_t)snprintf(message + len, sizeof message - len, "WATCHDOG=1\n");
    if (stopping)
        len += (size_t)snprintf(message + len, sizeof message - len,
                                "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64 "\n",
                                (stop_ms + SERVICE_STOP_SPARE_MS) * 1000);
    write_status(shell, status);
    bool news = strcmp(status, s->status) != 0 && (stopping || now_ms >= s->status_at_ms);
    if (news)
        len += (size_t)snprintf(message + len, sizeof message - len, "STATUS=%s\n", status);
    if (len == 0 || !send_message(shell, message))
        return;
    s->ready = true;
    s->stopping |= stopping;
    if (alive)
        s->alive_at_ms = now_ms + s->watchdog_ms;
    if (news) {
        s->status_at_ms = now_ms + SERVICE_STATUS_MS;
        memcpy(s->status, status, sizeof status);
    }
}
