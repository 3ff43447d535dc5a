/* Messages to the service manager that started this process, following sd_notify(3) of systemd:
 * datagrams of text to the socket in NOTIFY_SOCKET. Without the variable none are sent.
 *
 *   READY=1      the ports listen and the loop runs. Readiness to serve requests is something
 *                else: load balancers ask /readyz for that. A router without a single engine up
 *                has started well; otherwise systemd would restart it again and again, and each
 *                time the router would lose its knowledge.
 *   STATUS=      the words of /readyz, for `systemctl status`
 *   RELOADING=1  SIGHUP came, with the time (MONOTONIC_USEC, required by Type=notify-reload);
 *                READY=1 follows after the settings were read and applied. With that type (systemd
 *                253) `systemctl reload` returns then
 *   WATCHDOG=1   from the tick, three times within WATCHDOG_USEC: a hanging loop sends none, and
 *                systemd restarts the process
 *   STOPPING=1   the router drains; with EXTEND_TIMEOUT_USEC, so that TimeoutStopSec cuts no
 *                answers permitted by drain-delay and drain-timeout
 *
 * Own code instead of libsystemd: the protocol is a single datagram and stable by promise, and its
 * manual recommends reimplementing it over linking only for this. The library would load five more
 * into the process (lzma, zstd, lz4, gcrypt, cap), which are missing in the container.
 *
 * A later tick sends messages that cannot be sent now; nothing here waits. */
#ifndef NODE_IO_SERVICE_H
#define NODE_IO_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct shell;

enum {
    SERVICE_STATUS_BYTES = 256,
    SERVICE_STATUS_MS = 1000,     /* between two statuses */
    SERVICE_STOP_SPARE_MS = 10000 /* beyond the drain's limits, to announce the leave and exit */
};

/* Progress of a reload: the next message, or the last. */
enum service_reload {
    SERVICE_STEADY,
    SERVICE_RELOAD_DUE, /* RELOADING=1 */
    SERVICE_RELOADING,  /* none before the reload is over */
    SERVICE_RELOADED,   /* READY=1 */
};

struct service {
    bool asked;      /* NOTIFY_SOCKET is set */
    bool complained; /* that the socket cannot be reached */
    bool ready;      /* READY=1 was sent; likewise the next two */
    bool stopping;
    enum service_reload reload;
    bool reload_over;   /* the reload is done, reported or not */
    uint64_t reload_us; /* time of the request */
    char status[SERVICE_STATUS_BYTES];
    int fd;
    struct sockaddr_un to;
    socklen_t to_len;
    uint64_t watchdog_ms; /* between two signs of life; 0: none required */
    uint64_t alive_at_ms; /* when the next sign of life is due */
    uint64_t status_at_ms;
};

/* Reads the environment: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
void service_open(struct service *s);
/* Called from the loop under supervision. */
void service_tick(struct shell *shell, uint64_t now_ms);
/* True if a message is pending, or signs of life are frequent: the tick is needed soon. */
bool service_waits(const struct service *s);
/* Report that SIGHUP is being handled, and that the reload is over. Each first call is followed by
 * a second. */
void service_reloads(struct shell *shell);
void service_reloaded(struct shell *shell);
void service_close(struct service *s);

#endif
